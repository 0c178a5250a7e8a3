//! [`Image`]: what a review may name, and whether that may run. Pure.

/// An image that the load may use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// As a user writes it, without a digest: `registry:5000/team/app:1.2`.
    pub reference: String,
    /// What it resolves to, `sha256:` and 64 hex digits. `None`: it does not exist, the right verdict is a denial.
    pub digest: Option<String>,
    /// What its signatures say, where the webhook is to look at them; `None` where it is not.
    pub verified: Option<Result<(), Refusal>>,
    /// Only attacks name it.
    pub hostile: bool,
}

/// Why an image must not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// It does not exist.
    Missing,
    /// Nothing that could count signs it.
    Unsigned,
    /// What signs it is nobody's who is trusted, or there are too few who do.
    Invalid,
    /// What is attached signs another image.
    Mismatch,
}

impl Image {
    /// An image whose signatures nobody looks at.
    pub fn new(reference: impl Into<String>, digest: Option<String>) -> Self {
        Self { reference: reference.into(), digest, verified: None, hostile: false }
    }

    /// Why it must not run, if it must not.
    pub(super) fn refused(&self) -> Option<Refusal> {
        if self.digest.is_none() {
            return Some(Refusal::Missing);
        }
        self.verified.and_then(Result::err)
    }
}

impl Refusal {
    /// The class, as a denial names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "not-found",
            Self::Unsigned => "unsigned",
            Self::Invalid => "invalid",
            Self::Mismatch => "mismatch",
        }
    }

    /// In words, for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Missing => "does not exist",
            Self::Unsigned => "is not signed",
            Self::Invalid => "is not signed by a key of the policy",
            Self::Mismatch => "has the signature of another image",
        }
    }
}
