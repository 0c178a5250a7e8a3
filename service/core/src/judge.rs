//! Questions about images and their answers: the interface between the role that verifies images and the roles that ask
//! it.
//!
//! Question and answer have the form in which they travel between processes (docs/contract.md). Failure classes are
//! plain texts here; their writers and readers know the list.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// The version of the contract between processes.
pub const CONTRACT: u32 = 1;
/// The verdict of an image that may run.
pub const VERIFIED: &str = "verified";

/// The question whether one image may run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    pub contract: u32,
    /// The name of the validator, as in its configuration.
    pub validator: String,
    pub image: Subject,
    /// The rule's demands: its `with`, as configurations write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<Box<RawValue>>,
    /// The credentials of the image's pod for its registry, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Login>,
}

/// An image whose digest is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The registry's host, spelled as in images.
    pub host: String,
    pub repository: String,
    pub digest: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// The registry for which it is valid, spelled as in docker configurations.
    pub registry: String,
    pub username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A token that only token services accept, instead of a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Login({})", self.registry)
    }
}

/// The answer about one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    pub contract: u32,
    /// A text that changes when the trust changes.
    pub generation: String,
    pub digest: String,
    /// [`VERIFIED`], or the class of the failure.
    pub verdict: String,
    /// The accepted signers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<Signed>,
    /// Why the image may not run, for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Whether the registry was not asked, because it is left alone after failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signed {
    /// The trust root that accepts the signature, and its signer.
    pub name: String,
    /// The form of the signature and where it was found.
    pub evidence: String,
}

/// Description of a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub contract: u32,
    /// As in [`Ruling::generation`].
    pub generation: String,
    /// Validators that questions may name.
    pub validators: Vec<String>,
}

/// Verifies images for other roles.
pub trait Judge: Send + Sync + 'static {
    fn about(&self) -> About;

    /// Answers a question by `deadline`.
    fn judge(&self, inquiry: Inquiry, deadline: Instant) -> BoxFuture<'static, Ruling>;

    /// Judges an image reference as a pod would write it, under its rule of the policy.
    fn judge_by_policy(&self, image: String, deadline: Instant) -> BoxFuture<'static, Ruling>;
}
