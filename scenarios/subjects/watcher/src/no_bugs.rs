//! No planted bug: the functions that a bug would change, without one. The compiler removes them.

#![expect(clippy::unused_self, reason = "the same functions as `bugs`, which has something to ask")]

/// The planted bug: there is none.
pub struct Bug;

impl Bug {
    /// Refuses a bug that is not compiled in, instead of running a clean program under its name.
    pub fn from_environment() -> Self {
        if std::env::var_os("LONGHAUL_PLANTED_BUG").is_some() {
            eprintln!("LONGHAUL_PLANTED_BUG is set, and this program has no bugs: `example-watcher-planted` has them");
            std::process::exit(64);
        }
        Self
    }

    /// Whether deletions go unnoticed.
    pub const fn misses_deletes(&self) -> bool {
        false
    }

    /// Whether a 410 does not lead to a list.
    pub const fn ignores_gone(&self) -> bool {
        false
    }

    /// Interval of writes to a Lease, if it is too long.
    pub const fn lease_renewal() -> Option<std::time::Duration> {
        None
    }

    /// Whether the time of another holder in a Lease is trusted.
    pub const fn trusts_the_wall_clock() -> bool {
        false
    }

    pub const fn sees(&mut self, _uid: &str) {}
}
