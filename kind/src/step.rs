//! One call of another program, with a name, a time limit, repetitions if they help, and a command that repairs a
//! failure.
//!
//! Callers define the calls.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The time limit of a call that waits for no condition.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of bytes of a program's output that an error shows.
const SAID_BYTES_MAX: usize = 4 << 10;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A program and its first arguments, for example `docker exec -i NODE kubectl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) program: PathBuf,
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Step<'a> {
    name: &'static str,
    mend: String,
    tool: &'a Tool,
    words: Vec<OsString>,
    input: Vec<u8>,
    limit: Duration,
    attempts: u32,
}

/// A call of a program that failed.
#[derive(Debug)]
pub struct Failed {
    /// The name of the call, which follows "failed to".
    pub step: &'static str,
    /// The command line of the call.
    pub command: String,
    /// How the call ended: the program's status and output, or the system's error.
    pub reason: String,
    /// A command with which the user repairs the failure.
    pub mend: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, command, reason, mend } = self;
        write!(f, "failed to {step}: `{command}` {reason}\n  to fix it: {mend}")
    }
}

impl std::error::Error for Failed {}

/// Runs a future to its end, for code that cannot await, such as a destructor.
pub(crate) fn now<T, E>(steps: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Failed> + Send + 'static,
{
    let failed = |reason: String| {
        let mend = "longhaul cluster down".to_owned();
        E::from(Failed { step: "take a step in a destructor", command: String::new(), reason, mend })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(could_not(&error)))?;
    // A thread of its own: the dropping thread may belong to a runtime, which must not be entered twice.
    let ended = std::thread::spawn(move || runtime.block_on(steps)).join();
    ended.unwrap_or_else(|_| Err(failed("panicked".to_owned())))
}

impl Tool {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, words: Vec::new(), environment: Vec::new() }
    }

    pub(crate) fn with<T: Into<OsString>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }
}

impl<'a> Step<'a> {
    /// A step. `name` is a text that follows "failed to"; `mend` is a command that repairs a failure.
    pub(crate) fn new<T: Into<OsString>>(
        name: &'static str,
        mend: impl Into<String>,
        tool: &'a Tool,
        words: impl IntoIterator<Item = T>,
    ) -> Self {
        let words = words.into_iter().map(Into::into).collect();
        Self { name, mend: mend.into(), tool, words, input: Vec::new(), limit: LIMIT, attempts: 1 }
    }

    pub(crate) fn reading(self, input: Vec<u8>) -> Self {
        Self { input, ..self }
    }

    pub(crate) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Sets the maximum number of attempts. A program that failed is called again; a program that took too long is not.
    pub(crate) fn tried(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Calls the program and returns its standard output. The called program is killed if it takes too long, or if the
    /// future is dropped.
    pub(crate) async fn call(self) -> Result<String, Failed> {
        let mut attempt = 1;
        loop {
            match self.once().await {
                Err((_, true)) if attempt < self.attempts => attempt += 1,
                outcome => return outcome.map_err(|(reason, _)| self.failed(reason)),
            }
        }
    }

    /// Calls the program, for code that cannot await. The program gets no standard input.
    pub(crate) fn call_now(self) -> Result<String, Failed> {
        let mut command = std::process::Command::new(&self.tool.program);
        command.args(&self.tool.words).args(&self.words).envs(self.tool.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.failed(could_not(&error)))?;
        let deadline = Instant::now() + self.limit;
        loop {
            match child.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() < deadline => std::thread::park_timeout(LOOK_EVERY),
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(self.failed(self.late()));
                }
            }
        }
        let output = child.wait_with_output().map_err(|error| self.failed(could_not(&error)))?;
        heard(&output).map_err(|reason| self.failed(reason))
    }

    /// Calls the program once. Returns the program's output, or the error and whether the program itself failed.
    async fn once(&self) -> Result<String, (String, bool)> {
        let mut command = Command::new(&self.tool.program);
        command.args(&self.tool.words).args(&self.words).envs(self.tool.environment.iter().cloned());
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| (could_not(&error), false))?;
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // If a program does not read to the end, its own error gives the reason.
                let _ = stdin.write_all(&self.input).await;
            }
        };
        let done = tokio::time::timeout(self.limit, async { tokio::join!(child.wait_with_output(), feed).0 });
        let done = done.await.map_err(|_| (self.late(), false))?;
        heard(&done.map_err(|error| (could_not(&error), false))?).map_err(|reason| (reason, true))
    }

    fn late(&self) -> String {
        format!("did not end within {} s", self.limit.as_secs())
    }

    fn failed(&self, reason: String) -> Failed {
        let words = self.tool.words.iter().chain(&self.words).map(|word| word.to_string_lossy().into_owned());
        let command: Vec<String> = std::iter::once(self.tool.program.display().to_string()).chain(words).collect();
        Failed { step: self.name, command: command.join(" "), reason, mend: self.mend.clone() }
    }
}

fn could_not(error: &std::io::Error) -> String {
    format!("could not be called: {error}")
}

fn heard(output: &std::process::Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    // The end of the output has the reason.
    let from = said.char_indices().map(|(at, _)| at).find(|at| said.len() - at <= SAID_BYTES_MAX).unwrap_or(0);
    Err(format!("ended with {}: {}", output.status, &said[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell() -> Tool {
        Tool::new("/bin/sh".into()).with(["-c"])
    }

    #[tokio::test]
    async fn a_step_that_fails_names_its_command_its_words_and_what_mends_it() {
        let shell = shell();
        let failed = Step::new("load the image", "docker pull x", &shell, ["echo gone >&2; exit 3"]).call().await;
        assert_eq!(
            failed.unwrap_err().to_string(),
            "failed to load the image: `/bin/sh -c echo gone >&2; exit 3` ended with exit status: 3: gone\n  to fix it: docker pull x"
        );
    }

    #[tokio::test]
    async fn a_step_is_tried_as_often_as_it_may_and_reads_its_input_each_time() {
        let (shell, folder) = (shell(), tempfile::tempdir().unwrap());
        let file = folder.path().join("times");
        let script = format!("read word; echo $word >>{0}; test $(wc -l <{0}) = 3", file.display());
        for (attempts, good) in [(2, false), (1, true)] {
            let step = Step::new("x", "y", &shell, [&script]).reading(b"word\n".to_vec()).tried(attempts);
            assert_eq!(step.call().await.is_ok(), good);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "word\nword\nword\n");
    }

    #[tokio::test]
    async fn a_step_that_takes_too_long_is_ended_and_not_tried_again() {
        let shell = shell();
        let step = |name| Step::new(name, "y", &shell, ["exec sleep 600"]).within(Duration::from_millis(20)).tried(3);
        let began = Instant::now();
        assert!(step("x").call().await.unwrap_err().reason.contains("did not end within"));
        assert!(step("x").call_now().unwrap_err().reason.contains("did not end within"));
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
