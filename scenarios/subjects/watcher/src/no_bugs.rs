//! For the example watcher without planted bugs: functions that change nothing, in place of the planted bugs. The
//! compiler removes these functions.

#![expect(clippy::unused_self, reason = "the same functions as `bugs`, which has something to ask")]

/// Replaces the type of the planted bug in the build without bugs.
pub struct Bug;

impl Bug {
    /// Ends the program if a bug is requested, because this build has none. Otherwise a program without the bug would
    /// run under the bug's name.
    pub fn from_environment() -> Self {
        if std::env::var_os("LONGHAUL_PLANTED_BUG").is_some() {
            eprintln!("LONGHAUL_PLANTED_BUG is set, and this program has no bugs: `example-watcher-planted` has them");
            std::process::exit(64);
        }
        Self
    }

    /// Whether the watcher does not notice deletions.
    pub const fn misses_deletes(&self) -> bool {
        false
    }

    /// Whether the watcher does not list after a 410.
    pub const fn ignores_gone(&self) -> bool {
        false
    }

    /// Interval of writes to a Lease, if a bug makes it too long.
    pub const fn lease_renewal() -> Option<std::time::Duration> {
        None
    }

    /// Whether the watcher trusts the time that another holder wrote into a Lease.
    pub const fn trusts_the_wall_clock() -> bool {
        false
    }

    pub const fn sees(&mut self, _uid: &str) {}
}
