//! The memory allocator: when it returns freed memory to the system, and how much heap it reports.
//!
//! With the feature `jemalloc`, every program that contains this crate uses jemalloc (`docs/decisions/013`). Without
//! its background thread, jemalloc returns memory to the system only during later allocations and frees. The background
//! thread returns freed memory to the system after ten seconds, even without later activity. Without the feature
//! `jemalloc`, the system's allocator is used, which keeps freed memory and reports no figures.

#[cfg(feature = "jemalloc")]
pub use jemalloc::{NAME, give_memory_back, heap};
#[cfg(not(feature = "jemalloc"))]
pub use system::{NAME, give_memory_back, heap};

/// The allocator's own figures of the heap, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Bytes that are allocated and not freed. This figure shows a memory leak earliest.
    pub allocated: usize,
    /// Bytes that are mapped and touched; free memory counts too.
    pub resident: usize,
}

#[cfg(feature = "jemalloc")]
mod jemalloc {
    use tikv_jemalloc_ctl::{Error, background_thread, epoch, max_background_threads, stats};

    use super::Heap;
    use crate::logs::names;

    /// The allocator, which must return memory to the system after many connections have closed. The allocator is set
    /// in this crate and not in the programs, because every allocation passes through this code, and this crate is
    /// compiled with more optimization (decision 023).
    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    pub const NAME: &str = "jemalloc";
    /// Number of background threads of jemalloc. One thread is enough: it wakes a few times a second while memory can
    /// be returned, and otherwise sleeps.
    const THREADS: usize = 1;

    /// Starts jemalloc's background thread. If the thread cannot be started, the service only logs a warning.
    pub fn give_memory_back() {
        if let Err(error) = start() {
            tracing::warn!(name: names::MEMORY_LATE, %error, "memory that is free will be given back late");
        }
    }

    fn start() -> Result<(), Error> {
        max_background_threads::write(THREADS)?;
        background_thread::write(true)
    }

    /// The present figures of the heap, if the allocator reports them. A call takes some tens of microseconds, because
    /// it reads every arena.
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

    /// Does nothing: the system's allocator has no background thread.
    pub fn give_memory_back() {}

    /// Always `None`: the system's allocator reports no figures.
    pub fn heap() -> Option<Heap> {
        None
    }
}
