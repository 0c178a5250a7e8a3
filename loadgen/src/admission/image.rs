//! [`Image`]: an image that a review may name, and whether it may run. Pure.

/// An image that the load may use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// As a user writes it, without a digest: `registry:5000/team/app:1.2`.
    pub reference: String,
    /// Its digest, `sha256:` and 64 hex digits. `None`: the image does not exist, and the right verdict is a denial.
    pub digest: Option<String>,
    /// The result of its signatures, if the webhook checks them; `None` if it does not.
    pub verified: Option<Result<(), Refusal>>,
    /// Whether only attacks name it.
    pub hostile: bool,
}

/// Why an image must not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The image does not exist.
    Missing,
    /// No acceptable signature is attached.
    Unsigned,
    /// The signatures are not by trusted signers, or there are too few of them.
    Invalid,
    /// The attached signatures are for another image.
    Mismatch,
}

impl Image {
    /// An image whose signatures are not checked.
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

    /// The text for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Missing => "does not exist",
            Self::Unsigned => "is not signed",
            Self::Invalid => "is not signed by a key of the policy",
            Self::Mismatch => "has the signature of another image",
        }
    }
}
