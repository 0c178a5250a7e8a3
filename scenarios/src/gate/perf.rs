//! Counts events of a process tree with `perf stat`: system calls, and instructions if the processor has usable
//! counters.
//!
//! Counting slows down each system call, so the gate counts in separate passes and never while it compares the builds
//! under load. `perf` reports on its control pipe when it has started to count, so that a pass begins at the right
//! time.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

/// Longest wait until `perf` starts, and until `perf` reports its counts.
const PATIENCE: Duration = Duration::from_secs(10);
/// The perf event for each system call.
const SYSCALLS: &str = "raw_syscalls:sys_enter";
/// The perf event for instructions in user mode.
const INSTRUCTIONS: &str = "instructions:u";

pub(super) struct Perf {
    child: Child,
    output: std::path::PathBuf,
}

/// The counts; `None` for events that this machine cannot count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) syscalls: Option<u64>,
    pub(super) instructions: Option<u64>,
}

/// Tries to count events with `perf`. The error names the missing requirement.
pub(super) async fn works(folder: &Path) -> Result<Counts> {
    let perf = Perf::start(&[std::process::id()], folder).await?;
    // This makes at least one system call.
    tokio::fs::metadata(folder).await?;
    perf.stop().await
}

impl Perf {
    /// Starts to count events of these processes and their threads.
    pub(super) async fn start(pids: &[u32], folder: &Path) -> Result<Self> {
        let [control, answer, output] = ["perf.control", "perf.answer", "perf.csv"].map(|name| folder.join(name));
        for path in [&control, &answer] {
            let _ = std::fs::remove_file(path);
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .with_context(|| format!("failed to make the pipe {}", path.display()))?;
        }
        let mut ask = pipe::OpenOptions::new().read_write(true).open_sender(&control)?;
        let mut told = pipe::OpenOptions::new().read_write(true).open_receiver(&answer)?;
        let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-D", "-1", "-e", SYSCALLS, "-e", INSTRUCTIONS, "-p", &pids, "-o"]);
        command.arg(&output).arg(format!("--control=fifo:{},{}", control.display(), answer.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().context("needs `perf`")?;
        let enabled = async {
            ask.write_all(b"enable\n").await?;
            told.read_u8().await
        };
        tokio::select! {
            enabled = tokio::time::timeout(PATIENCE, enabled) => {
                enabled.context("`perf` does not begin to count")?.context("`perf` does not begin to count")?;
            }
            status = child.wait() => bail!("`perf` may not count here ({}): {}", status?, last_words(&mut child).await),
        }
        Ok(Self { child, output })
    }

    pub(super) async fn stop(mut self) -> Result<Counts> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).context("`perf` is gone")?;
        rustix::process::kill_process(pid, Signal::INT).context("`perf` is gone")?;
        tokio::time::timeout(PATIENCE, self.child.wait()).await.context("`perf` does not end")??;
        let text = std::fs::read_to_string(&self.output).context("`perf` wrote nothing")?;
        Ok(Counts { syscalls: counted(&text, SYSCALLS), instructions: counted(&text, INSTRUCTIONS) })
    }
}

/// The count of an event in the output of `perf stat -x,`; `None` for `<not supported>` or `<not counted>`.
fn counted(text: &str, event: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(',').nth(2) == Some(event))?;
    line.split(',').next()?.parse().ok()
}

async fn last_words(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(stderr) = child.stderr.as_mut() {
        let _ = tokio::time::timeout(PATIENCE, stderr.take(4096).read_to_string(&mut text)).await;
    }
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_none() {
        let text = "# started\n\n1834,,raw_syscalls:sys_enter,1032729,100.00,28.081,K/sec\n<not supported>,,instructions:u,0,100.00,,\n";
        assert_eq!((counted(text, SYSCALLS), counted(text, INSTRUCTIONS)), (Some(1834), None));
    }

    /// If `perf` may be used, it counts the system calls of a busy child process.
    #[tokio::test]
    async fn the_calls_of_a_child_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        if let Err(why) = works(folder.path()).await {
            println!("skipped: {why:#}");
            return;
        }
        let script = "read go; i=0; while [ $i -lt 500 ]; do echo $i; i=$((i+1)); done; read go";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let perf = Perf::start(&[child.id().unwrap()], folder.path()).await.unwrap();
        child.stdin.as_mut().unwrap().write_all(b"\n").await.unwrap();
        let mut said = String::new();
        let mut stdout = child.stdout.take().unwrap();
        while !said.contains("499\n") {
            let mut more = [0; 4096];
            let bytes = stdout.read(&mut more).await.unwrap();
            said += std::str::from_utf8(&more[..bytes]).unwrap();
        }
        let counts = perf.stop().await.unwrap();
        assert!((500..5000).contains(&counts.syscalls.unwrap()), "{counts:?}");
    }
}
