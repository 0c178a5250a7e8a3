//! Bugs of the injector that can be planted; compiled only with the feature `planted-bugs`. Those of the seed are its own.

use std::sync::OnceLock;

/// Clean-up forgets one chunk and says that all is well.
pub const LEAVES_A_CHUNK: &str = "leaves-a-chunk";
/// Every bug.
pub const ALL: [&str; 1] = [LEAVES_A_CHUNK];

static ON: OnceLock<&'static str> = OnceLock::new();

/// Switches the bug of that name on; `false` when there is none.
pub fn switch_on(name: &str) -> bool {
    ALL.into_iter().find(|bug| *bug == name).is_some_and(|bug| ON.set(bug).is_ok())
}

/// Whether a bug is switched on.
pub fn is_on(bug: &str) -> bool {
    ON.get() == Some(&bug)
}
