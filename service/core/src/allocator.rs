//! The memory allocator: its housekeeping, and its own count of the heap.
//!
//! With the feature `jemalloc`, every program that contains this crate uses that allocator (`docs/decisions/013`). By
//! itself, jemalloc gives memory back only when more is asked for or freed. Its background thread gives memory back ten
//! seconds after a burst, even if nothing happens afterwards. Without the feature, the system's allocator is used: it
//! keeps freed memory and reports no figures.

#[cfg(feature = "jemalloc")]
pub use jemalloc::{NAME, give_memory_back, heap};
#[cfg(not(feature = "jemalloc"))]
pub use system::{NAME, give_memory_back, heap};

/// The allocator's own figures of the heap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Handed out and not given back. A leak shows here first.
    pub allocated: usize,
    /// Mapped and touched, free memory included.
    pub resident: usize,
}

#[cfg(feature = "jemalloc")]
mod jemalloc {
    use tikv_jemalloc_ctl::{Error, background_thread, epoch, max_background_threads, stats};

    use super::Heap;
    use crate::logs::names;

    /// Gives back the memory that bursts of connections leave behind. The allocator is set here and not in the
    /// programs: each allocation goes through it, and the programs' crate is optimized less than this one (decision
    /// 023).
    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    pub const NAME: &str = "jemalloc";
    /// One thread is enough: it wakes a few times a second while memory can be given back, and otherwise not at all.
    const THREADS: usize = 1;

    /// Starts the background thread. A failure is only a warning, because the service works without it.
    pub fn give_memory_back() {
        if let Err(error) = start() {
            tracing::warn!(name: names::MEMORY_LATE, %error, "memory that is free will be given back late");
        }
    }

    fn start() -> Result<(), Error> {
        max_background_threads::write(THREADS)?;
        background_thread::write(true)
    }

    /// The heap now, if the allocator reports it. The call takes some tens of microseconds, because each arena is
    /// asked.
    pub fn heap() -> Option<Heap> {
        // jemalloc's figures are those of the last epoch, so a new one begins here.
        epoch::advance().ok()?;
        Some(Heap { allocated: stats::allocated::read().ok()?, resident: stats::resident::read().ok()? })
    }
}

#[cfg(not(feature = "jemalloc"))]
mod system {
    use super::Heap;

    pub const NAME: &str = "system";

    /// Does nothing: the system's allocator has no housekeeping.
    pub fn give_memory_back() {}

    /// Always `None`: the system's allocator reports no figures.
    pub fn heap() -> Option<Heap> {
        None
    }
}
