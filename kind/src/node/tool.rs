//! One call of another program, bounded, whose words are kept for the error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::Error;

/// For calls that have nothing to wait for.
const LIMIT: Duration = Duration::from_secs(20);

/// What is called.
pub(super) struct Call<'a> {
    step: &'static str,
    program: &'a Path,
    arguments: Vec<OsString>,
    input: Vec<u8>,
    limit: Duration,
}

impl<'a> Call<'a> {
    pub(super) fn new<T: Into<OsString>>(
        step: &'static str,
        program: &'a Path,
        arguments: impl IntoIterator<Item = T>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { step, program, arguments, input: Vec::new(), limit: LIMIT }
    }

    /// What it reads, and how long it may take.
    pub(super) fn reading(self, input: Vec<u8>, limit: Duration) -> Self {
        Self { input, limit, ..self }
    }
}

/// What it wrote to its standard output. It is killed when it takes too long.
pub(super) async fn call(call: Call<'_>) -> Result<String, Error> {
    let Call { step, program, arguments, input, limit } = call;
    let failed = |source| Error::Call { step, program: PathBuf::from(program), source };
    let mut command = Command::new(program);
    command.args(&arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read to the end says itself why.
            let _ = stdin.write_all(&input).await;
        }
    };
    let done = tokio::time::timeout(limit, async { tokio::join!(child.wait_with_output(), feed).0 });
    let done = done.await.map_err(|_| failed(std::io::Error::from(std::io::ErrorKind::TimedOut)))?.map_err(failed)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let (command, said) = (words.join(" "), String::from_utf8_lossy(&done.stderr).trim().to_owned());
    Err(Error::Refused { step, program: PathBuf::from(program), command, status: done.status.to_string(), said })
}
