//! `longhaul worker`: one of several processes that send one plan. `longhaul load --workers N` starts it, or `--worker COMMAND` elsewhere.

use std::io::IsTerminal as _;

use anyhow::{Result, ensure};
use reports::exit;

use crate::load::workers::worker::work;

/// Works for one coordinator, then ends.
pub(super) fn worker() -> u8 {
    let Err(error) = super::block_on(run()) else { return exit::PASS };
    crate::out::err!("longhaul: {error:#}");
    exit::INVALID
}

async fn run() -> Result<()> {
    ensure!(
        !std::io::stdin().is_terminal(),
        "a worker talks to the process that started it: use `longhaul load --workers N`, or `--worker COMMAND` for one elsewhere"
    );
    work(tokio::io::stdin(), tokio::io::stdout()).await.map_err(anyhow::Error::msg)
}
