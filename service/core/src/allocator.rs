//! The allocator and its housekeeping: memory that nobody uses goes back to the system, also when nothing happens any more; and what
//! it says of the heap.
//!
//! With the feature `jemalloc` that is the allocator of every program that this crate is part of (`docs/decisions/013`). By itself it
//! gives memory back only when more is asked for or freed; its background thread does so ten seconds after the burst, whatever comes
//! then. Without the feature there is the allocator of the system, which keeps what it has and says nothing.

#[cfg(feature = "jemalloc")]
pub use jemalloc::{NAME, give_memory_back, heap};
#[cfg(not(feature = "jemalloc"))]
pub use system::{NAME, give_memory_back, heap};

/// The heap as the allocator counts it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Handed out and not given back: what a leak shows in before anything else.
    pub allocated: usize,
    /// Mapped and touched, what is free and kept included.
    pub resident: usize,
}

#[cfg(feature = "jemalloc")]
mod jemalloc {
    use tikv_jemalloc_ctl::{Error, background_thread, epoch, max_background_threads, stats};

    use super::Heap;
    use crate::logs::names;

    /// Gives back what bursts of connections leave behind. It stands here and not in the programs, since each allocation goes through
    /// it and their crate is optimized less than this one (decision 023).
    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// Name of the allocator.
    pub const NAME: &str = "jemalloc";
    /// One is enough: it wakes a few times a second while there is something to give back, and not at all otherwise.
    const THREADS: usize = 1;

    /// Starts the thread. Without it the service works as well, so that is a warning.
    pub fn give_memory_back() {
        if let Err(error) = start() {
            tracing::warn!(name: names::MEMORY_LATE, %error, "memory that is free will be given back late");
        }
    }

    fn start() -> Result<(), Error> {
        max_background_threads::write(THREADS)?;
        background_thread::write(true)
    }

    /// The heap as it is now, where the allocator tells. It takes some tens of microseconds: each arena is asked.
    pub fn heap() -> Option<Heap> {
        // What is read is of the last epoch.
        epoch::advance().ok()?;
        Some(Heap { allocated: stats::allocated::read().ok()?, resident: stats::resident::read().ok()? })
    }
}

#[cfg(not(feature = "jemalloc"))]
mod system {
    use super::Heap;

    /// Name of the allocator.
    pub const NAME: &str = "system";

    /// Nothing: it knows no housekeeping.
    pub fn give_memory_back() {}

    /// Nothing: it does not tell.
    pub fn heap() -> Option<Heap> {
        None
    }
}
