//! Planted bugs: the list, and the code that plants them in the roles of the service.
//!
//! Each bug wraps a role and knows only the role's outside. `role` changes a role's inputs and outputs, and
//! `answers` changes the answers to callers. `relay` is an API server that lies, and `witness` a receiver of
//! observations that lies.
//!
//! One bug is inside: only the room of open calls knows when an answer is taken, so a bug makes it forget answers.

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
use service::roles::{ROLES, Roles};

/// The parts of `longhaul-service-planted` besides the service.
pub const BUGS: Bugs = Bugs { roles, inject };

/// Every role with the bug of that name, which stays until the process ends.
pub fn roles(name: &str) -> anyhow::Result<Roles> {
    let bug = Bug::parse(name).with_context(|| format!("no such bug: use one of {}", Bug::names()))?;
    Ok(role::around(ROLES, bug))
}

/// The connection of the `inject` commands to the API server, with the bug of that name.
fn inject(name: &str) -> anyhow::Result<Find> {
    anyhow::ensure!(name == chunk::LEAVES_A_CHUNK, "use one of {}", chunk::LEAVES_A_CHUNK);
    Ok(chunk::cluster)
}

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal),* $(,)?) => {
        /// A known bug that a run can switch on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$doc])* $bug),*
        }

        impl Bug {
            /// Every bug, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$bug),*];

            /// Its name in `LONGHAUL_PLANTED_BUG`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name),* }
            }
        }
    };
}

bugs! {
    /// Deletions are dropped: neither the store nor the witness gets them.
    MissedDelete = "missed-delete",
    /// 512 KiB are kept for each object that was added.
    LeakPerObject = "leak-per-object",
    /// A review with a failing image is admitted without a patch.
    WrongAllow = "wrong-allow",
    /// A 410 resumes from the same version for ever; there is no second list.
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
    /// No leak: 4 KiB are kept for each review, up to 32 MiB, and then the oldest go.
    LargeCache = "large-cache",
    /// No leak: 16 KiB are kept for each review, and all of it goes at 16 MiB.
    SawTooth = "saw-tooth",
    /// 32 MiB are kept from the 5,000th review on.
    Step = "step",
    /// No leak of the heap: 4 KiB of a thread's stack for each review, up to 256 MiB.
    OutsideTheHeap = "outside-the-heap",
    /// A file stays open for every 50th review.
    DescriptorLeak = "descriptor-leak",
    /// A thread stays for every 500th review.
    ThreadLeak = "thread-leak",
    /// The process needs a twentieth more processor time, review by review.
    SlowerBy5 = "slower-by-5-percent",
    /// The process needs a tenth more processor time, review by review.
    SlowerBy10 = "slower-by-10-percent",
    /// The process needs three tenths more processor time, review by review.
    SlowerBy30 = "slower-by-30-percent",
    /// Every answer is 1 KiB longer.
    LongerAnswer = "answer-1k-longer",
    /// Two more system calls for each review.
    MoreSyscalls = "two-more-syscalls",
    /// From 250 objects on, every review takes 20 ms longer.
    SlowAfter = "slow-after-250-objects",
    /// Every tenth event is reported twice.
    DuplicateEvents = "duplicate-events",
    /// Eight objects keep their first state in the reported store, also after their deletion. The events are reported.
    StaleChild = "stale-child",
    /// Foreign changes to network policies are ignored until their package changes.
    NoChildWatch = "no-child-watch",
    /// The network policies of a deleted package lose their owner and stay.
    OrphanedChild = "orphaned-child",
    /// An existing network policy is never updated.
    OldChild = "old-child",
    /// An image with any signature, by any signer, is verified.
    AcceptsAnySignature = "accepts-any-signature",
    /// A signature of another image counts for this image.
    IgnoresDigestBinding = "ignores-digest-binding",
    /// An image whose signatures could not be verified is admitted when it should be denied later.
    CachesCannotTell = "caches-cannot-tell",
    /// Two signatures of one signer count as two signers.
    ThresholdCountsTwice = "threshold-counts-twice",
    /// After a relist the API over Deployments repeats its earlier answers for ever.
    ServesStaleAfterRelist = "serves-stale-after-relist",
    /// Lists of revoked certificates are ignored.
    AcceptsRevoked = "accepts-revoked",
    /// Every fifth count is reported as set and is not.
    LostUpdate = "lost-update",
    /// All received bytes are held, without limit.
    HoldsEverything = "holds-everything",
    /// Open calls are counted and never refused, however many streams a client opens.
    UncountedStreams = "uncounted-streams",
    /// A call counts until it has an answer, and not until its answer is taken.
    UnboundedAnswers = "unbounded-answers",
    /// An image whose evidence is more than is looked at is let in, as if its registry were unavailable.
    EvidenceAsUnavailable = "evidence-as-unavailable",
    /// Alerts wait whole, with all of their images: 10,000 of them, however large.
    AlertsByNumber = "alerts-by-number",
    /// Every tenth alert is not sent.
    AlertLost = "alert-lost",
    /// Every tenth alert is sent twice.
    AlertTwice = "alert-twice",
    /// Dry runs also cause alerts.
    AlertOnDryRun = "alert-on-dry-run",
    /// The digest lock is ignored.
    LockIgnored = "lock-ignored",
    /// Any value in the shared cache counts as a verdict.
    BelievesRedis = "believes-redis",
    /// Deletions pass no filter of the watcher's actions.
    WatcherDropsDelete = "watcher-drops-delete",
    /// Of several validators only the first one is ever asked.
    AsksOneValidator = "asks-one-validator",
    /// The remaining time of a review is ignored.
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
