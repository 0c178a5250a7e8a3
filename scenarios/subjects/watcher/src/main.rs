//! An example subject to copy. `watcher.rs` and `net.rs` are the whole example. Copy `lease.rs` too if several watchers
//! run and one of them reports.

#[path = "no_bugs.rs"]
mod bugs;
mod lease;
mod net;
mod watcher;

fn main() -> anyhow::Result<()> {
    watcher::main()
}
