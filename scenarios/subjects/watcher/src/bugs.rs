//! Planted bugs, to prove that a run finds them. Never part of what is copied.

use std::collections::BTreeMap;
use std::time::Duration;

/// What `leak-per-object` keeps for every uid, in bytes.
const LEAK_BYTES: usize = 512 << 10;

/// How often `late-renewal` writes into its Lease of nine seconds.
const LATE: Duration = Duration::from_secs(8);

/// What is planted.
pub enum Bug {
    /// Nothing.
    None,
    /// Deletions go unnoticed.
    MissedDelete,
    /// 410 does not lead to a list.
    Ignore410,
    /// A Lease is free when the time in it is long ago by the own wall clock.
    WallClockLease,
    /// A Lease is written into just before it ends.
    LateRenewal,
    /// Memory grows with every object ever seen.
    LeakPerObject(BTreeMap<String, Vec<u8>>),
}

impl Bug {
    /// From `LONGHAUL_PLANTED_BUG`; an unknown name ends the program.
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

    /// Whether 410 does not lead to a list.
    pub const fn ignores_gone(&self) -> bool {
        matches!(self, Self::Ignore410)
    }

    /// How often a Lease is written into, if that is too seldom.
    pub fn lease_renewal() -> Option<Duration> {
        matches!(Self::from_environment(), Self::LateRenewal).then_some(LATE)
    }

    /// Whether another one's time in a Lease is believed.
    pub fn trusts_the_wall_clock() -> bool {
        matches!(Self::from_environment(), Self::WallClockLease)
    }

    /// An object was seen. Ones, not zeros: untouched pages would not be resident.
    pub fn sees(&mut self, uid: &str) {
        if let Self::LeakPerObject(kept) = self
            && !kept.contains_key(uid)
        {
            kept.insert(uid.to_owned(), vec![1; LEAK_BYTES]);
        }
    }
}
