//! What is asked about an image and what is answered: the seam between the role that has the trust and those that ask it.
//!
//! Owns the question and the answer, in the form that goes between processes (docs/contract.md). Classes are texts here: which there
//! are is known to whoever makes and reads them.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// The version of the contract between processes.
pub const CONTRACT: u32 = 1;
/// How an image is called that may run.
pub const VERIFIED: &str = "verified";

/// May this image run?
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    /// [`CONTRACT`].
    pub contract: u32,
    /// Whom the question is for, by the name in its configuration.
    pub validator: String,
    /// The image.
    pub image: Subject,
    /// What the rule demands: its `with`, as configurations write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<Box<RawValue>>,
    /// What the image's pod brings along for its registry, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Login>,
}

/// An image whose digest is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its host, as images write it.
    pub host: String,
    /// Its repository.
    pub repository: String,
    /// Its digest.
    pub digest: String,
}

/// A credential for a registry.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// Where it fits, as docker configurations write it.
    pub registry: String,
    /// The user.
    pub username: String,
    /// Proves who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The same for token services alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Login({})", self.registry)
    }
}

/// What is said of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// [`CONTRACT`].
    pub contract: u32,
    /// A text that is another one as soon as what is trusted is.
    pub generation: String,
    /// The digest that it is about.
    pub digest: String,
    /// [`VERIFIED`], or the class of the failure.
    pub verdict: String,
    /// Who signed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<Signed>,
    /// Why it may not run, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Nobody was asked, because the registry was left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// Whoever signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signed {
    /// What accepts the signature, and who made it.
    pub name: String,
    /// The form of the signature and where it was found.
    pub evidence: String,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// [`CONTRACT`].
    pub contract: u32,
    /// As in [`Ruling::generation`].
    pub generation: String,
    /// Whom questions may be for.
    pub validators: Vec<String>,
}

/// Whoever has the trust.
pub trait Judge: Send + Sync + 'static {
    /// Who answers.
    fn about(&self) -> About;

    /// The answer, at the latest at `deadline`.
    fn judge(&self, inquiry: Inquiry, deadline: Instant) -> BoxFuture<'static, Ruling>;

    /// The same of an image as a pod would write it, by the rule of the policy that it is under.
    fn judge_by_policy(&self, image: String, deadline: Instant) -> BoxFuture<'static, Ruling>;
}
