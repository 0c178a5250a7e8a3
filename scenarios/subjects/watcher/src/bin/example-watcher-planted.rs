//! The example watcher with planted bugs. Because of its separate name this program never replaces the watcher without
//! bugs.

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
