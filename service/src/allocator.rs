//! The allocator's housekeeping: memory that nobody uses goes back to the system, also when nothing happens any more.
//!
//! The binaries bring jemalloc (`docs/decisions/013`). By itself it gives memory back only when more is asked for or freed; its
//! background thread does so ten seconds after the burst, whatever comes then.

use tikv_jemalloc_ctl::{Error, background_thread, max_background_threads};

/// One is enough: it wakes a few times a second while there is something to give back, and not at all otherwise.
const THREADS: usize = 1;

/// Starts the thread.
pub fn give_memory_back() -> Result<(), Error> {
    max_background_threads::write(THREADS)?;
    background_thread::write(true)
}
