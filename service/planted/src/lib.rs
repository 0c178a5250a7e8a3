//! The list of planted bugs, and the code that plants them in the roles of the service.
//!
//! Each planted bug changes a role from outside. The module `role` changes a role's inputs and outputs, and `answers`
//! changes answers to callers. The module `relay` stands in for the API server and `witness` for the receiver of
//! observations; each falsifies data.
//!
//! One bug is inside the service: only the limit of open calls knows when an answer was sent, so the bug makes that
//! limit ignore unsent answers.

mod alerts;
mod answers;
mod believes;
mod chunk;
mod growth;
mod loopback;
mod page;
mod relay;
mod role;
mod slower;
mod stale;
mod upstream;
mod witness;

use anyhow::Context as _;

use service::cli::{Bugs, Find};
use service::roles::{self, Roles};

/// The planted bugs, as `service::cli::main` takes them.
pub const BUGS: Bugs = Bugs { roles, inject };

/// All roles, changed by the named bug until the process ends.
pub fn roles(name: &str) -> anyhow::Result<Roles> {
    let bug = Bug::parse(name).with_context(|| format!("no such bug: use one of {}", Bug::names()))?;
    Ok(role::around(&roles::all(), bug))
}

/// The connection of the `inject` commands to the API server, changed by the named bug.
fn inject(name: &str) -> anyhow::Result<Find> {
    anyhow::ensure!(name == chunk::LEAVES_A_CHUNK, "use one of {}", chunk::LEAVES_A_CHUNK);
    Ok(chunk::cluster)
}

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal),* $(,)?) => {
        /// A planted bug that a run can switch on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $bug),*
        }

        impl Bug {
            /// Every bug, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$bug),*];

            /// The bug's name in `LONGHAUL_PLANTED_BUG`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name),* }
            }
        }
    };
}

bugs! {
    /// Deletions are dropped: neither the store nor the witness receives them.
    MissedDelete = "missed-delete",
    /// 512 KiB are kept for each object that was added.
    LeakPerObject = "leak-per-object",
    /// A review whose image cannot be resolved is admitted without a patch.
    WrongAllow = "wrong-allow",
    /// After status 410, the watch is repeated with the same version for ever, without a new list.
    Ignore410 = "ignore-410",
    /// 64 B are kept for each object.
    Leak64PerObject = "leak-64-per-object",
    /// 1 KiB is kept for each object.
    Leak1kPerObject = "leak-1k-per-object",
    /// 64 B are kept for each review.
    Leak64PerRequest = "leak-64-per-request",
    /// 1 KiB is kept for each review.
    Leak1kPerRequest = "leak-1k-per-request",
    /// 16 KiB are kept for each review that is denied.
    LeakPerDenial = "leak-per-denial",
    /// 256 KiB are kept for each stream of a watch that has ended.
    LeakPerReconnect = "leak-per-reconnect",
    /// 256 KiB are kept for each complete list.
    LeakPerRelist = "leak-per-relist",
    /// No leak: 4 KiB are kept for each review, up to 32 MiB; then the oldest memory is freed.
    LargeCache = "large-cache",
    /// No leak: 16 KiB are kept for each review, and all memory is freed at 16 MiB.
    SawTooth = "saw-tooth",
    /// 32 MiB are kept from the 5,000th review on.
    Step = "step",
    /// Outside the heap: 4 KiB of a thread's stack are kept for each review, up to 256 MiB.
    OutsideTheHeap = "outside-the-heap",
    /// A file stays open for every 50th review.
    DescriptorLeak = "descriptor-leak",
    /// A thread stays alive for every 500th review.
    ThreadLeak = "thread-leak",
    /// Reviews make the process use 5 % more processor time.
    SlowerBy5 = "slower-by-5-percent",
    /// Reviews make the process use 10 % more processor time.
    SlowerBy10 = "slower-by-10-percent",
    /// Reviews make the process use 30 % more processor time.
    SlowerBy30 = "slower-by-30-percent",
    /// Every answer is 1 KiB longer.
    LongerAnswer = "answer-1k-longer",
    /// Each review makes two more system calls.
    MoreSyscalls = "two-more-syscalls",
    /// From 250 objects on, every review takes 20 ms longer.
    SlowAfter = "slow-after-250-objects",
    /// Every tenth event is reported twice.
    DuplicateEvents = "duplicate-events",
    /// Eight objects keep their first state in the diagnostics of the watch, even after their deletion. Events about
    /// these eight objects are still reported.
    StaleChild = "stale-child",
    /// If other clients change network policies, the changes are ignored until the package changes.
    NoChildWatch = "no-child-watch",
    /// The network policies of a deleted package lose their owner and are not deleted.
    OrphanedChild = "orphaned-child",
    /// An existing network policy is never updated.
    OldChild = "old-child",
    /// An image with any signature counts as verified, even if an unknown signer made it.
    AcceptsAnySignature = "accepts-any-signature",
    /// A signature of another image counts for this image.
    IgnoresDigestBinding = "ignores-digest-binding",
    /// If an image's signatures could not be checked, the next review of the image is admitted instead of denied.
    CachesCannotTell = "caches-cannot-tell",
    /// Two signatures of one signer count as two signers.
    ThresholdCountsTwice = "threshold-counts-twice",
    /// After a relist, the API that scales Deployments repeats its earlier answers for ever.
    ServesStaleAfterRelist = "serves-stale-after-relist",
    /// Certificate revocation lists are ignored.
    AcceptsRevoked = "accepts-revoked",
    /// Every fifth change of a replica count is reported as done and is not made.
    LostUpdate = "lost-update",
    /// All received bytes are kept in memory, without limit.
    HoldsEverything = "holds-everything",
    /// Open calls are counted and never refused, however many streams a client opens.
    UncountedStreams = "uncounted-streams",
    /// A call counts only until it has an answer, not until the answer is sent.
    UnboundedAnswers = "unbounded-answers",
    /// An image with too many or too large signatures is admitted, as if its registry were unavailable.
    EvidenceAsUnavailable = "evidence-as-unavailable",
    /// Only the number of waiting alerts is limited: to 10,000 alerts of any size, each with all images.
    AlertsByNumber = "alerts-by-number",
    /// Every tenth alert is not sent.
    AlertLost = "alert-lost",
    /// Every tenth alert is sent twice.
    AlertTwice = "alert-twice",
    /// Dry runs also cause alerts.
    AlertOnDryRun = "alert-on-dry-run",
    /// The lock file of digests is ignored.
    LockIgnored = "lock-ignored",
    /// Any value in the shared cache counts as the result of a signature check.
    BelievesRedis = "believes-redis",
    /// Deletions match none of the watcher's action filters.
    WatcherDropsDelete = "watcher-drops-delete",
    /// If a rule has several validators, only the first validator is called.
    AsksOneValidator = "asks-one-validator",
    /// The time that remains for a review is ignored.
    IgnoresDeadline = "ignores-deadline",
}

impl Bug {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|bug| bug.name() == name)
    }

    pub fn names() -> String {
        Self::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Bug;

    #[test]
    fn every_name_is_a_bug_and_other_names_are_not() {
        for bug in Bug::ALL {
            assert_eq!(Bug::parse(bug.name()), Some(*bug));
        }
        assert_eq!(Bug::parse("missed_delete"), None);
        assert!(Bug::names().starts_with("missed-delete, leak-per-object, "));
    }
}
