//! [`Image`]: an image that a review may name, and whether it may run. Pure: no I/O.

/// An image that the load may use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// The reference as a user writes it, without a digest: `registry:5000/team/app:1.2`.
    pub reference: String,
    /// The image's digest: `sha256:` and 64 hex digits. `None` means that the image does not exist, and the right
    /// answer is a denial.
    pub digest: Option<String>,
    /// The result of checking the image's signatures; `None` if the webhook does not check signatures.
    pub verified: Option<Result<(), Refusal>>,
    /// Whether only attacks use the image.
    pub hostile: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    Missing,
    /// No acceptable signature is attached.
    Unsigned,
    /// The signatures are not by trusted signers, or too few of them are.
    Invalid,
    /// The attached signatures are made for another image.
    Mismatch,
}

impl Image {
    /// An image whose signatures are not checked.
    pub fn new(reference: impl Into<String>, digest: Option<String>) -> Self {
        Self { reference: reference.into(), digest, verified: None, hostile: false }
    }

    /// Why the image must not run; `None` if it may run.
    pub(super) fn refused(&self) -> Option<Refusal> {
        if self.digest.is_none() {
            return Some(Refusal::Missing);
        }
        self.verified.and_then(Result::err)
    }
}

impl Refusal {
    /// The name of this reason in a denial.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "not-found",
            Self::Unsigned => "unsigned",
            Self::Invalid => "invalid",
            Self::Mismatch => "mismatch",
        }
    }

    /// Why the image must not run, as text for people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Missing => "does not exist",
            Self::Unsigned => "is not signed",
            Self::Invalid => "is not signed by a key of the policy",
            Self::Mismatch => "has the signature of another image",
        }
    }
}
