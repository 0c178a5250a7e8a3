//! Starts this program again for one run in its own process, so that the run cannot affect other runs.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Longest wait for the end of a run. A run first stops its subject, which may take as long as a scenario allows (30 s
/// by default).
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs `longhaul` with these arguments in a separate process group, which only this function signals; the run stops
/// its subject itself. Returns the output, or `None` if `stop` was cancelled. An error says why there is no output.
pub(crate) async fn play(
    arguments: &[String],
    patience: Duration,
    stop: &CancellationToken,
) -> Option<Result<Output, String>> {
    play_in(arguments, patience, stop, |_| {}).await
}

/// Like [`play`]. `started` receives the process ID before the process has started any child process.
pub(crate) async fn play_in(
    arguments: &[String],
    patience: Duration,
    stop: &CancellationToken,
    started: impl FnOnce(u32),
) -> Option<Result<Output, String>> {
    let child = std::env::current_exe().and_then(|longhaul| {
        let mut command = Command::new(longhaul);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    });
    let child = match child {
        Ok(child) => child,
        Err(error) => return Some(Err(format!("failed to start longhaul: {error}"))),
    };
    if let Some(pid) = child.id() {
        started(pid);
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let mut output = std::pin::pin!(child.wait_with_output());
    let ended = tokio::select! {
        output = &mut output => return Some(output.map_err(|error| error.to_string())),
        () = stop.cancelled() => None,
        () = tokio::time::sleep(patience) => Some(Err("the run did not end".to_owned())),
    };
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let _ = tokio::time::timeout(STOP_TIMEOUT, output).await;
    ended
}

/// The last line of a run's messages, if the run left nothing else.
pub(crate) fn last_words(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    format!("({}): {}", output.status, said.lines().last().unwrap_or("it said nothing"))
}
