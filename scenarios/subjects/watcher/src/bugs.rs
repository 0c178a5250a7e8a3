//! Planted bugs, to prove that a run finds them. They are not part of the example to copy.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes that `leak-per-object` keeps for every uid.
const LEAK_BYTES: usize = 512 << 10;

/// Interval of writes in `late-renewal`, for a Lease of nine seconds.
const LATE: Duration = Duration::from_secs(8);

pub enum Bug {
    None,
    /// Deletions go unnoticed.
    MissedDelete,
    /// A 410 does not lead to a list.
    Ignore410,
    /// A Lease counts as free if the time in it is long ago by the local wall clock.
    WallClockLease,
    /// A Lease is renewed just before it ends.
    LateRenewal,
    /// Memory grows with every object ever seen.
    LeakPerObject(BTreeMap<String, Vec<u8>>),
}

impl Bug {
    /// Reads `LONGHAUL_PLANTED_BUG`; an unknown name ends the program.
    pub fn from_environment() -> Self {
        match std::env::var("LONGHAUL_PLANTED_BUG").as_deref() {
            Err(_) => Self::None,
            Ok("missed-delete") => Self::MissedDelete,
            Ok("ignore-410") => Self::Ignore410,
            Ok("wall-clock-lease") => Self::WallClockLease,
            Ok("late-renewal") => Self::LateRenewal,
            Ok("leak-per-object") => Self::LeakPerObject(BTreeMap::new()),
            Ok(other) => {
                eprintln!(
                    "LONGHAUL_PLANTED_BUG={other}: write missed-delete, ignore-410, wall-clock-lease, late-renewal or leak-per-object"
                );
                std::process::exit(64);
            }
        }
    }

    /// Whether deletions go unnoticed.
    pub const fn misses_deletes(&self) -> bool {
        matches!(self, Self::MissedDelete)
    }

    /// Whether a 410 does not lead to a list.
    pub const fn ignores_gone(&self) -> bool {
        matches!(self, Self::Ignore410)
    }

    /// Interval of writes to a Lease, if it is too long.
    pub fn lease_renewal() -> Option<Duration> {
        matches!(Self::from_environment(), Self::LateRenewal).then_some(LATE)
    }

    /// Whether the time of another holder in a Lease is trusted.
    pub fn trusts_the_wall_clock() -> bool {
        matches!(Self::from_environment(), Self::WallClockLease)
    }

    /// Keeps something for a seen object. The bytes are ones, because untouched zero pages would not be resident.
    pub fn sees(&mut self, uid: &str) {
        if let Self::LeakPerObject(kept) = self
            && !kept.contains_key(uid)
        {
            kept.insert(uid.to_owned(), vec![1; LEAK_BYTES]);
        }
    }
}
