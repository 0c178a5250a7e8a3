//! The example watcher with planted bugs, under a separate name so that it never replaces the clean one.

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
