//! The failure classes, each with a metric label and a rule for caching.

use std::fmt;
use std::time::Duration;

use service_core::wire::Silence;

/// Time for which a definite failure may be used again: short, so that a user that pushes a missing tag does not wait
/// long.
const DEFINITE_TTL: Duration = Duration::from_secs(10);

/// Text that is added to the message of a timeout that no other server caused.
const OWN_TIME: &str = "most of the time went by here, waiting for a turn or looking at what there is";

/// Why an image has no digest, or may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The registry says that the tag or repository does not exist.
    NotFound,
    Auth,
    /// The check had no result: timeout, overload or broken connection.
    Unavailable,
    /// The image reference is invalid, or this program's configuration is wrong.
    Misconfigured,
    /// A defect of this program: a task panicked.
    Internal,
    /// The image has no signature in any supported format.
    Unsigned,
    /// A signature is invalid, or there are too few signatures.
    Invalid,
    /// A valid signature belongs to another image.
    Mismatch,
    /// The policy refuses the image, whatever its signatures are.
    Denied,
    /// The image has too many or too large objects with signatures.
    TooMuchEvidence,
    /// Other callers used up a limit of this program until the deadline.
    Busy,
}

impl Class {
    pub const ALL: [Self; 11] = [
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::Unsigned,
        Self::Invalid,
        Self::Mismatch,
        Self::Denied,
        Self::TooMuchEvidence,
        Self::Busy,
    ];
    /// The failure classes of images without signature checks.
    pub const OF_DIGESTS: &[Self] = &[
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::TooMuchEvidence,
        Self::Busy,
    ];
    /// The failure classes of images with signature checks.
    pub const OF_SIGNATURES: &[Self] = &[
        Self::Unsigned,
        Self::Invalid,
        Self::Mismatch,
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::TooMuchEvidence,
        Self::Busy,
    ];

    /// The class's name in messages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Auth => "auth",
            Self::Unavailable => "unavailable",
            Self::Misconfigured => "misconfigured",
            Self::Internal => "internal",
            Self::Unsigned => "unsigned",
            Self::Invalid => "invalid",
            Self::Mismatch => "mismatch",
            Self::Denied => "denied",
            Self::TooMuchEvidence => "too-much-evidence",
            Self::Busy => "busy",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the failure is about signatures or the policy, and not about a missing digest.
    pub fn is_of_policy(self) -> bool {
        matches!(self, Self::Unsigned | Self::Invalid | Self::Mismatch | Self::Denied)
    }

    /// Whether a limit of this program caused the failure. A failure by a limit of this program says nothing about
    /// registry and image. If a limit of this program causes the failure, the image is denied; otherwise an attacker
    /// that can reach a limit would choose the images that run.
    pub fn is_own_limit(self) -> bool {
        matches!(self, Self::TooMuchEvidence | Self::Busy)
    }

    /// Time for which a failure of this class may be used again; `None` for uncertain failures.
    pub fn cache_ttl(self) -> Option<Duration> {
        let definite =
            matches!(self, Self::NotFound | Self::Unsigned | Self::Invalid | Self::Mismatch | Self::TooMuchEvidence);
        definite.then_some(DEFINITE_TTL)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A failure with its class and cause. A clone of a failure costs little, so each waiting caller gets a clone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {cause}")]
pub struct Failure {
    pub class: Class,
    pub cause: String,
    /// Whether no request was sent, because the registry's breaker is open.
    pub unasked: bool,
}

impl Failure {
    pub fn new(class: Class, cause: impl Into<String>) -> Self {
        Self { class, cause: cause.into(), unasked: false }
    }

    /// The failure for a timeout of a task with the clock `silence`. The class depends on whether the task spent most
    /// of its time waiting for other servers.
    pub fn late(silence: &Silence, cause: &str) -> Self {
        Self::late_when(silence.is_most(), cause)
    }

    /// Like [`Self::late`], for the current task.
    pub fn late_here(cause: &str) -> Self {
        Self::late_when(Silence::is_most_here(), cause)
    }

    fn late_when(peer: bool, cause: &str) -> Self {
        if peer { Self::new(Class::Unavailable, cause) } else { Self::new(Class::Busy, format!("{cause}: {OWN_TIME}")) }
    }

    #[must_use]
    pub fn in_words(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }
}
