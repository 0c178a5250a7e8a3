//! Planted bugs of the example watcher, which prove that a run finds such bugs. Users who copy the example do not need
//! these bugs.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes that `leak-per-object` keeps for each uid.
const LEAK_BYTES: usize = 512 << 10;

/// With the bug `late-renewal`: interval of the holder's writes to a Lease that is valid for nine seconds.
const LATE: Duration = Duration::from_secs(8);

pub enum Bug {
    None,
    /// `missed-delete`: deletions are not noticed.
    MissedDelete,
    /// `ignore-410`: after a 410 the watcher does not list.
    Ignore410,
    /// `wall-clock-lease`: a Lease counts as free if the time in it is old by the local wall clock.
    WallClockLease,
    /// `late-renewal`: the holder renews its Lease only just before it ends.
    LateRenewal,
    /// `leak-per-object`: memory grows with every object ever seen.
    LeakPerObject(BTreeMap<String, Vec<u8>>),
}

impl Bug {
    /// Reads `LONGHAUL_PLANTED_BUG`. The name of an unknown bug ends the program.
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

    /// Whether the watcher does not notice deletions.
    pub const fn misses_deletes(&self) -> bool {
        matches!(self, Self::MissedDelete)
    }

    /// Whether the watcher does not list after a 410.
    pub const fn ignores_gone(&self) -> bool {
        matches!(self, Self::Ignore410)
    }

    /// Interval of writes to a Lease, if a bug makes it too long.
    pub fn lease_renewal() -> Option<Duration> {
        matches!(Self::from_environment(), Self::LateRenewal).then_some(LATE)
    }

    /// Whether the watcher trusts the time that another holder wrote into a Lease.
    pub fn trusts_the_wall_clock() -> bool {
        matches!(Self::from_environment(), Self::WallClockLease)
    }

    /// Keeps bytes for an object, if the bug `leak-per-object` is planted. The bytes have the value 1, because
    /// untouched zero pages would not be resident.
    pub fn sees(&mut self, uid: &str) {
        if let Self::LeakPerObject(kept) = self
            && !kept.contains_key(uid)
        {
            kept.insert(uid.to_owned(), vec![1; LEAK_BYTES]);
        }
    }
}
