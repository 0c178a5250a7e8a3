//! The classes of failure, each with one metric label and one rule for caching.

use std::fmt;
use std::time::Duration;

/// How long a definite failure may be reused: a user who pushes the missing tag does not wait long.
const DEFINITE_TTL: Duration = Duration::from_secs(10);

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
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NotFound,
        Self::Auth,
        Self::Unavailable,
        Self::Misconfigured,
        Self::Internal,
        Self::Unsigned,
        Self::Invalid,
        Self::Mismatch,
        Self::Denied,
    ];
    /// The classes of an image whose digest alone is asked for.
    pub const OF_DIGESTS: &[Self] =
        &[Self::NotFound, Self::Auth, Self::Unavailable, Self::Misconfigured, Self::Internal];
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
        }
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether an image fails by its signatures or by the policy, and not for want of a digest.
    pub fn is_of_policy(self) -> bool {
        matches!(self, Self::Unsigned | Self::Invalid | Self::Mismatch | Self::Denied)
    }

    /// How long a failure of this class may be reused; only a definite one may.
    pub fn cache_ttl(self) -> Option<Duration> {
        matches!(self, Self::NotFound | Self::Unsigned | Self::Invalid | Self::Mismatch).then_some(DEFINITE_TTL)
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
    /// The kind of failure.
    pub class: Class,
    /// The reason, for a person.
    pub cause: String,
    /// Nobody was asked, because the registry's breaker is open.
    pub unasked: bool,
}

impl Failure {
    /// A failure of `class`.
    pub fn new(class: Class, cause: impl Into<String>) -> Self {
        Self { class, cause: cause.into(), unasked: false }
    }

    /// The same failure in other words.
    #[must_use]
    pub fn in_words(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }
}
