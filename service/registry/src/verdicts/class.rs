//! The classes of failure, each with one metric label and one rule for caching.

use std::fmt;
use std::time::Duration;

use service_core::wire::Silence;

/// How long a definite failure may be reused: a user who pushes the missing tag does not wait long.
const DEFINITE_TTL: Duration = Duration::from_secs(10);

/// Said beside what was not ready in time, where that was not for want of a peer's answer.
const OWN_TIME: &str = "most of the time went by here, waiting for a turn or looking at what there is";

/// Why an image has no digest, or may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The registry says that tag or repository does not exist.
    NotFound,
    /// The registry refused us.
    Auth,
    /// Cannot tell: timeout, overload, broken connection.
    Unavailable,
    /// The reference or our own configuration cannot work.
    Misconfigured,
    /// A defect of this program: a task panicked.
    Internal,
    /// No signature that could count, in any format.
    Unsigned,
    /// A signature that does not verify, or too few of them.
    Invalid,
    /// A signature that verifies, of something else than this image.
    Mismatch,
    /// The policy lets no such image in, whoever signed it.
    Denied,
    /// There is more to look at than one review may look at.
    TooMuchEvidence,
    /// A limit of this program, which others reached: there was no turn in time.
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
    /// The classes of an image whose digest alone is asked for.
    pub const OF_DIGESTS: &[Self] = &[
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::TooMuchEvidence,
        Self::Busy,
    ];
    /// The classes of an image whose signatures are verified.
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

    /// The name in messages and metric labels.
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

    /// Whether an image fails by its signatures or by the policy, and not for want of a digest.
    pub fn is_of_policy(self) -> bool {
        matches!(self, Self::Unsigned | Self::Invalid | Self::Mismatch | Self::Denied)
    }

    /// Whether a limit of this program is the reason. It says nothing about registry and image, and always denies: whoever can reach a
    /// limit would else choose what runs.
    pub fn is_own_limit(self) -> bool {
        matches!(self, Self::TooMuchEvidence | Self::Busy)
    }

    /// How long a failure of this class may be reused; only a definite one may.
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

/// A failure with its cause, cheap enough to hand to every waiter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {cause}")]
pub struct Failure {
    pub class: Class,
    /// The reason, for a person.
    pub cause: String,
    /// Nobody was asked, because the registry's breaker is open.
    pub unasked: bool,
}

impl Failure {
    pub fn new(class: Class, cause: impl Into<String>) -> Self {
        Self { class, cause: cause.into(), unasked: false }
    }

    /// What was not ready in time: the peer's failure when that was waited for most of the time, else ours.
    pub fn late(silence: &Silence, cause: &str) -> Self {
        Self::late_when(silence.is_most(), cause)
    }

    /// The same of the work in which this is called.
    pub fn late_here(cause: &str) -> Self {
        Self::late_when(Silence::is_most_here(), cause)
    }

    fn late_when(peer: bool, cause: &str) -> Self {
        if peer { Self::new(Class::Unavailable, cause) } else { Self::new(Class::Busy, format!("{cause}: {OWN_TIME}")) }
    }

    /// The same failure in other words.
    #[must_use]
    pub fn in_words(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }
}
