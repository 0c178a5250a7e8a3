//! The example watcher with planted bugs. It has a separate name so that it never replaces the watcher without bugs.

#[path = "../bugs.rs"]
mod bugs;
#[path = "../lease.rs"]
mod lease;
#[path = "../net.rs"]
mod net;
#[path = "../watcher.rs"]
mod watcher;

fn main() -> anyhow::Result<()> {
    watcher::main()
}
