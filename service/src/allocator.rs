//! The allocator's housekeeping: memory that nobody uses goes back to the system, also when nothing happens any more; and what it says
//! of the heap.
//!
//! The binaries bring jemalloc (`docs/decisions/013`). By itself it gives memory back only when more is asked for or freed; its
//! background thread does so ten seconds after the burst, whatever comes then.

use tikv_jemalloc_ctl::{Error, background_thread, epoch, max_background_threads, stats};

/// One is enough: it wakes a few times a second while there is something to give back, and not at all otherwise.
const THREADS: usize = 1;

/// Starts the thread.
pub fn give_memory_back() -> Result<(), Error> {
    max_background_threads::write(THREADS)?;
    background_thread::write(true)
}

/// What the allocator says of the heap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Handed out and not given back: what a leak shows in before anything else.
    pub allocated: usize,
    /// Mapped and touched, what is free and kept included.
    pub resident: usize,
}

/// The heap as it is now. It takes some tens of microseconds: each arena is asked.
pub fn heap() -> Result<Heap, Error> {
    // What is read is of the last epoch.
    epoch::advance()?;
    Ok(Heap { allocated: stats::allocated::read()?, resident: stats::resident::read()? })
}
