//! Inquiries about images and the rulings on them: the interface between the role that verifies images and its callers.
//!
//! `Inquiry` and `Ruling` have the format in which they are sent between processes (docs/contract.md). In `Inquiry` and
//! `Ruling`, failure classes are plain texts.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// The version of the protocol that docs/contract.md describes.
pub const CONTRACT: u32 = 1;
/// The value of `verdict` for an image that may run.
pub const VERIFIED: &str = "verified";

/// The inquiry whether one image may run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    pub contract: u32,
    pub validator: String,
    pub image: Subject,
    /// The demands of the policy rule: the rule's key `with`, as written in a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<Box<RawValue>>,
    /// The Pod's credentials for the image's registry, the best credential first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Login>,
}

/// An image with a known digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The registry's host, spelled as in image references.
    pub host: String,
    pub repository: String,
    pub digest: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// The registry for which the login is meant, spelled as in Docker configurations.
    pub registry: String,
    pub username: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A token for token services, used instead of a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Login({})", self.registry)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    pub contract: u32,
    /// A text that changes when the trusted keys or roots change.
    pub generation: String,
    pub digest: String,
    /// [`VERIFIED`], or the class of the failure.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<Signed>,
    /// Why the image may not run, as text for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Whether no request was sent: after failures, the registry gets no requests for a while.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signed {
    /// The name of the trust root that accepts the signature, and the signer.
    pub name: String,
    /// The format of the signature, and where it was found.
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub contract: u32,
    /// The same text as [`Ruling::generation`].
    pub generation: String,
    /// Names of validators that inquiries may use.
    pub validators: Vec<String>,
}

/// Verifies images for other roles.
pub trait Judge: Send + Sync + 'static {
    fn about(&self) -> About;

    /// Rules on an inquiry by `deadline`.
    fn judge(&self, inquiry: Inquiry, deadline: Instant) -> BoxFuture<'static, Ruling>;

    /// Rules on an image reference as a Pod writes it. The policy chooses the rule for the image.
    fn judge_by_policy(&self, image: String, deadline: Instant) -> BoxFuture<'static, Ruling>;
}
