//! Bugs that can be planted; compiled only with the feature `planted-bugs`.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::failure::Failure;

/// A known bug that a run can switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// The digest of every second chunk is not compared, nor that of the whole.
    SkipsAChecksum = 1,
    /// A link in the payload is made, and served through.
    FollowsALink = 2,
}

impl Bug {
    /// Every bug.
    pub const ALL: &'static [Self] = &[Self::SkipsAChecksum, Self::FollowsALink];

    /// As `LONGHAUL_PLANTED_BUG` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SkipsAChecksum => "skips-a-checksum",
            Self::FollowsALink => "follows-a-link",
        }
    }

    /// Whether it is switched on.
    pub fn is_on(self) -> bool {
        ON.load(Ordering::Relaxed) == self as u8
    }
}

static ON: AtomicU8 = AtomicU8::new(0);

/// Switches the bug of that name on.
pub fn switch_on(name: &str) -> Result<(), Failure> {
    let bug = Bug::ALL.iter().find(|bug| bug.name() == name);
    let names = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
    let bug = bug.ok_or_else(|| Failure::Usage(format!("no planted bug `{name}`: use one of {}", names())))?;
    ON.store(*bug as u8, Ordering::Relaxed);
    Ok(())
}
