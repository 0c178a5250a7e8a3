//! An example subject to copy: `watcher.rs` and `net.rs` are all of it, and `lease.rs` if one of several reports.

#[path = "no_bugs.rs"]
mod bugs;
mod lease;
mod net;
mod watcher;

fn main() -> anyhow::Result<()> {
    watcher::main()
}
