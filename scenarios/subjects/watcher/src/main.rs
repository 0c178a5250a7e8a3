//! An example of a subject, which users may copy. The files `watcher.rs` and `net.rs` are the whole example. Copy also
//! the file `lease.rs` if several watchers run and only one of them reports.

#[path = "no_bugs.rs"]
mod bugs;
mod lease;
mod net;
mod watcher;

fn main() -> anyhow::Result<()> {
    watcher::main()
}
