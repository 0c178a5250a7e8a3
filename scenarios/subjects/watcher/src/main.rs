//! An example subject, made to be copied: `watcher.rs` and `net.rs` are all of it.

#[path = "no_bugs.rs"]
mod bugs;
mod net;
mod watcher;

fn main() -> anyhow::Result<()> {
    watcher::main()
}
