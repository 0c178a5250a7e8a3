//! Facts that change the right answers during the load. Tags move, a faulty registry makes images unresolvable, and
//! signatures become valid or invalid.
//!
//! Owns the facts that other modules report and the oracle reads. No fact makes it right to allow an object that must
//! be denied. A fault of a registry makes a refusal right. After a tag has moved, two digests are right for a while. An
//! image whose key was removed may run for one more second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::image::Refusal;

/// How long after a registry's recovery a refusal because of its fault is still right: for a review that was in flight,
/// and for a client that pauses after an error of the registry.
const RECOVERS: Duration = Duration::from_secs(5);
/// How soon an answer must use changed keys: an image of a removed key is refused within a second.
const TRUSTED_WITHIN: Duration = Duration::from_secs(1);
/// Maximum number of digests that are remembered of one tag; the oldest are dropped.
const VERSIONS_MAX: usize = 32;

/// The facts that have changed since the plan was made.
#[derive(Debug, Default)]
pub struct Truth {
    /// False as long as nothing has changed, so that most answers need no lock.
    changed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sick: Vec<Sick>,
    moved: BTreeMap<String, Vec<Version>>,
    stale: Option<Duration>,
    turned: BTreeMap<String, Turn>,
    locked: bool,
}

/// A change of an image's verdict, and its time.
#[derive(Debug)]
struct Turn {
    at: Instant,
    was: Option<Refusal>,
    is: Option<Refusal>,
}

#[derive(Debug)]
struct Sick {
    by: u32,
    /// The image references that the fault affects; `None` means all references.
    references: Option<BTreeSet<String>>,
    well: Option<Instant>,
}

/// A digest that a tag has or had.
#[derive(Debug)]
struct Version {
    digest: String,
    left: Option<Instant>,
}

impl Truth {
    /// From now on these image references, or all references, may be unresolvable. `by` identifies the fault for
    /// [`Truth::well`].
    pub fn sick(&self, by: u32, references: Option<BTreeSet<String>>) {
        self.inner.lock().sick.push(Sick { by, references, well: None });
        self.changed.store(true, Ordering::Release);
    }

    /// Ends the registry fault with the number `by`.
    pub fn well(&self, by: u32) {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        for sick in inner.sick.iter_mut().filter(|sick| sick.by == by) {
            sick.well.get_or_insert(now);
        }
        inner.sick.retain(|sick| sick.well.is_none_or(|well| now < well + RECOVERS || sick.by == by));
    }

    /// Reports that a tag changes its digest. Call this function before any client can read the new digest.
    pub fn moved(&self, reference: &str, was: &str, digest: &str) {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let versions = inner.moved.entry(reference.to_owned()).or_default();
        if versions.is_empty() {
            versions.push(Version { digest: was.to_owned(), left: None });
        }
        for version in versions.iter_mut() {
            version.left.get_or_insert(now);
        }
        versions.retain(|version| version.digest != digest);
        if versions.len() == VERSIONS_MAX {
            versions.remove(0);
        }
        versions.push(Version { digest: digest.to_owned(), left: None });
        self.changed.store(true, Ordering::Release);
    }

    /// From now on only the first digest of each tag is right, whatever digest the tag has.
    pub fn lock(&self) {
        self.inner.lock().locked = true;
    }

    /// Sets how long an answer may use the previous digest of a tag. Without this call, an answer may use the previous
    /// digest for ever.
    pub fn may_be_stale(&self, stale: Duration) {
        self.inner.lock().stale = Some(stale);
    }

    /// Reports a change of the trusted keys: an image has another verdict now (`None` means that it may run).
    pub fn turn(&self, reference: &str, was: Option<Refusal>, is: Option<Refusal>) {
        self.inner.lock().turned.insert(reference.to_owned(), Turn { at: Instant::now(), was, is });
        self.changed.store(true, Ordering::Release);
    }

    /// The right verdicts on an image in the answer to a call that began at `begun`, the newest first; `None` for an
    /// image that never changed.
    pub(super) fn turned(&self, reference: &str, begun: Instant) -> Option<Vec<Option<Refusal>>> {
        let inner = self.inner.lock();
        let Turn { at, was, is } = inner.turned.get(reference)?;
        Some(if begun < *at + TRUSTED_WITHIN { vec![*is, *was] } else { vec![*is] })
    }

    /// Whether any fact has ever changed, so that the oracle must check for changes.
    pub(super) fn changed(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    /// Whether an answer that came just now may say that this reference could not be resolved.
    pub(super) fn is_sick(&self, reference: &str, now: Instant) -> bool {
        self.inner.lock().sick.iter().any(|sick| {
            sick.references.as_ref().is_none_or(|all| all.contains(reference))
                && sick.well.is_none_or(|well| now < well + RECOVERS)
        })
    }

    /// For a locked image whose tag has moved: whether the tag has or had this digest; `None` for all other images.
    pub(super) fn locked(&self, reference: &str, digest: &str) -> Option<bool> {
        let inner = self.inner.lock();
        let versions = inner.moved.get(reference).filter(|_| inner.locked)?;
        Some(versions.iter().any(|version| version.digest == digest))
    }

    /// Whether the answer to a call that began at `begun` may contain this digest; `None` for a tag that never moved.
    pub(super) fn may_name(&self, reference: &str, digest: &str, begun: Instant) -> Option<bool> {
        let inner = self.inner.lock();
        let versions = inner.moved.get(reference)?;
        Some(versions.iter().filter(|version| version.digest == digest).any(|version| match version.left {
            None => true,
            Some(left) => inner.stale.is_none_or(|stale| begun <= left + stale),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "registry.test/a:1";

    #[test]
    fn a_sick_registry_excuses_what_it_is_about_until_it_is_well() {
        let truth = Truth::default();
        assert!(!truth.changed());
        truth.sick(1, Some([TAG.to_owned()].into()));
        let now = Instant::now();
        assert!(truth.changed() && truth.is_sick(TAG, now) && !truth.is_sick("registry.test/b:1", now));
        truth.well(1);
        let later = Instant::now() + RECOVERS;
        assert!(truth.is_sick(TAG, now) && !truth.is_sick(TAG, later));
        truth.sick(2, None);
        assert!(truth.is_sick("registry.test/b:1", later));
    }

    #[test]
    fn a_tag_that_moved_may_be_named_by_both_digests_for_a_while() {
        let truth = Truth::default();
        truth.may_be_stale(Duration::from_secs(30));
        truth.moved(TAG, "old", "new");
        let (now, late) = (Instant::now(), Instant::now() + Duration::from_secs(31));
        let may = |digest: &str, begun| truth.may_name(TAG, digest, begun);
        assert_eq!((may("old", now), may("new", now), may("other", now)), (Some(true), Some(true), Some(false)));
        assert_eq!((may("old", late), may("new", late)), (Some(false), Some(true)));
        assert_eq!(truth.may_name("registry.test/b:1", "old", now), None);
        truth.moved(TAG, "new", "old");
        assert_eq!((may("old", late), may("new", late)), (Some(true), Some(false)), "a digest may come back");
        assert_eq!(truth.locked(TAG, "old"), None);
        truth.lock();
        assert_eq!((truth.locked(TAG, "old"), truth.locked(TAG, "x")), (Some(true), Some(false)));
        assert_eq!(truth.locked("registry.test/b:1", "old"), None, "it never moved");
    }
}
