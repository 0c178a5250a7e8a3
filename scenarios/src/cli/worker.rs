//! `longhaul worker`: one of several processes that together send the requests of one plan. `longhaul load --workers N`
//! starts workers on this machine, and `--worker COMMAND` starts a worker elsewhere.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result, ensure};
use reports::exit;

use crate::load::workers::worker::work;

/// Longest wait for the coordinator, which attaches to this worker's Pod as soon as all Pods run.
const HEARD_LIMIT: std::time::Duration = std::time::Duration::from_mins(5);

/// Sends load for one coordinator, then exits.
pub(super) fn worker(attached: bool) -> u8 {
    let Err(error) = super::block_on(run(attached)) else { return exit::PASS };
    crate::out::err!("longhaul: {error:#}");
    exit::INVALID
}

async fn run(attached: bool) -> Result<()> {
    ensure!(
        !std::io::stdin().is_terminal(),
        "a worker needs the process that started it: use `longhaul load --workers N`, or `--worker COMMAND` for another machine"
    );
    let heard =
        async { tokio::time::timeout(HEARD_LIMIT, is_heard()).await.context("no coordinator attached to this Pod")? };
    if attached && !heard.await? {
        return Ok(());
    }
    work(tokio::io::stdin(), tokio::io::stdout()).await.map_err(anyhow::Error::msg)
}

/// Waits for the empty line that the coordinator sends after it attached to a Pod's stdin. Output that the worker
/// printed earlier would not reach the coordinator. Returns whether the empty line came before the end of the input.
/// Reads only one byte, because the rest of the input belongs to the coordinator.
async fn is_heard() -> Result<bool> {
    let byte = tokio::task::spawn_blocking(|| {
        use std::io::Read as _;
        let mut byte = [0];
        // The standard library's stdin has a buffer and would read more.
        let mut stdin = std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?);
        std::io::Result::Ok(if stdin.read(&mut byte)? == 0 { None } else { Some(byte[0]) })
    });
    let byte = byte.await?.context("failed to read stdin")?;
    ensure!(byte.is_none_or(|byte| byte == b'\n'), "the first line on stdin must be empty");
    Ok(byte.is_some())
}
