//! The classes of failure, each with one metric label and one rule for caching.

use std::fmt;
use std::time::Duration;

use service_core::wire::Silence;

/// How long a definite failure may be reused: a user that pushes the missing tag does not wait long.
const DEFINITE_TTL: Duration = Duration::from_secs(10);

/// Added to the message of a timeout that was not caused by a peer.
const OWN_TIME: &str = "most of the time went by here, waiting for a turn or looking at what there is";

/// Why an image has no digest, or may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The registry reports that tag or repository does not exist.
    NotFound,
    /// The registry refused our credentials.
    Auth,
    /// The result is unknown: timeout, overload, broken connection.
    Unavailable,
    /// The reference or our own configuration cannot work.
    Misconfigured,
    /// A defect of this program: a task panicked.
    Internal,
    /// No signature that could count, in any format.
    Unsigned,
    /// A signature is not valid, or there are too few.
    Invalid,
    /// A valid signature is of another image.
    Mismatch,
    /// The policy refuses such images, whatever their signatures.
    Denied,
    /// The evidence exceeds the limit of one review.
    TooMuchEvidence,
    /// Other callers reached a limit of this program: there was no turn in time.
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
    /// The failure classes of an image without signature verification.
    pub const OF_DIGESTS: &[Self] = &[
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::TooMuchEvidence,
        Self::Busy,
    ];
    /// The failure classes of an image with signature verification.
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

    /// Whether signatures or policy cause the failure, and not a missing digest.
    pub fn is_of_policy(self) -> bool {
        matches!(self, Self::Unsigned | Self::Invalid | Self::Mismatch | Self::Denied)
    }

    /// Whether a limit of this program is the reason. That says nothing about registry and image, and always denies:
    /// otherwise an attacker that can reach a limit would choose the images that run.
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

/// A failure with its cause, cheap to clone for every waiter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {cause}")]
pub struct Failure {
    pub class: Class,
    /// The reason, for a person.
    pub cause: String,
    /// Whether no request was sent because the registry's breaker is open.
    pub unasked: bool,
}

impl Failure {
    pub fn new(class: Class, cause: impl Into<String>) -> Self {
        Self { class, cause: cause.into(), unasked: false }
    }

    /// A timeout: the peer's failure if most of the time was spent waiting for it, else ours.
    pub fn late(silence: &Silence, cause: &str) -> Self {
        Self::late_when(silence.is_most(), cause)
    }

    /// Like [`Self::late`], for the current work.
    pub fn late_here(cause: &str) -> Self {
        Self::late_when(Silence::is_most_here(), cause)
    }

    fn late_when(peer: bool, cause: &str) -> Self {
        if peer { Self::new(Class::Unavailable, cause) } else { Self::new(Class::Busy, format!("{cause}: {OWN_TIME}")) }
    }

    /// The same failure with another cause.
    #[must_use]
    pub fn in_words(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }
}
