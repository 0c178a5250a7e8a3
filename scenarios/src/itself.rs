//! This program, started again: one run in a process of its own, so that nothing of it can reach into another.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// A run that is told to end stops its client first, which may take as long as a scenario allows (30 s by default).
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// Plays `longhaul` with these arguments in a group of its own: it is told to end here and by nobody else, and ends its client itself.
/// None when `stop` was cancelled; an error says why there is nothing to read.
pub(crate) async fn play(
    arguments: &[String],
    patience: Duration,
    stop: &CancellationToken,
) -> Option<Result<Output, String>> {
    play_in(arguments, patience, stop, |_| {}).await
}

/// The same; `started` is told the process before it has started anything itself.
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

/// The last line that a run said to people, for those that left nothing else.
pub(crate) fn last_words(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    format!("({}): {}", output.status, said.lines().last().unwrap_or("it said nothing"))
}
