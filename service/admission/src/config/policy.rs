//! The section `policy`: the rules for images, and the action for each class of failures.
//!
//! This module owns how modes, actions and patterns are written, and refuses rules that can never apply. The file
//! `policy.rs` of this crate has the default actions.

mod bootstrap;
mod namespaces;
mod pattern;
mod rule;
mod with;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::validators::Validator;
use super::{Checker, Error};
pub use bootstrap::Bootstrap;
use bootstrap::RawBootstrap;
pub use namespaces::Namespaces;
use namespaces::RawNamespaces;
pub use pattern::{Matcher, Pattern};
pub(super) use rule::RawRule;
pub use rule::Rule;
use service_core::config::quantity::{Size, Span};
pub(super) use with::RawWith;
#[cfg(feature = "verify")]
pub use with::demanded;
pub use with::{Attestation, Roots, With};

/// Maximum number of rules. Each rule is compared with each image and with every other rule; also, people cannot
/// oversee more rules.
const RULES_MAX: usize = 200;
/// Default time for which an image stays verified. The cache key contains the image's digest, the rule and the trusted
/// keys.
const VERIFIED_TTL: Duration = Duration::from_hours(1);
/// Default size of the cache of verdicts: about 8,000 at some 500 bytes each.
const VERDICTS_BYTES: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The actions on failures of images whose rule sets no action for the failure.
    pub on_failure: OnFailure,
    /// The rules of the configuration file in order, then the rules of `ImagePolicy` objects.
    pub rules: Vec<Rule>,
    /// The number of rules in the configuration file, without the rules of `ImagePolicy` objects.
    pub own_rules: usize,
    pub no_match: NoMatch,
    /// Whether no object is refused or changed, whatever the rules demand.
    pub detection: bool,
    pub resources: Resources,
    /// Whether an object that has an owner may keep images that the owner already has.
    pub child_approval: bool,
    /// The namespaces whose objects are examined or exempt.
    pub namespaces: Namespaces,
    /// Images that may start before the service can verify signatures.
    pub bootstrap: Option<Bootstrap>,
    pub verdicts: Verdicts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdicts {
    pub ttl: Duration,
    pub max_bytes: usize,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { ttl: VERIFIED_TTL, max_bytes: usize::try_from(VERDICTS_BYTES).unwrap_or(usize::MAX) }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoMatch {
    /// The image is pinned to its digest.
    #[default]
    Resolve,
    /// The object keeps the image as it is written.
    Allow,
    Warn,
    Deny,
}

/// The kinds of objects whose images are judged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resources {
    #[default]
    All,
    /// Images of Pods are judged; failures of images in other objects are only reported.
    PodsOnly,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The image is pinned to its digest.
    #[default]
    Resolve,
    /// The image is not examined.
    Skip,
    /// The image's signatures are verified.
    Verify,
    /// The image's signatures are verified, and the image is pinned to the signed digest.
    VerifyAndPin,
    /// The image is examined, but every change or refusal is only a warning.
    Detect,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Skip => "skip",
            Self::Verify => "verify",
            Self::VerifyAndPin => "verify-and-pin",
            Self::Detect => "detect",
        }
    }
}

/// When an image of a stored object is judged again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recheck {
    /// When the image differs from the image in the stored object.
    #[default]
    Changed,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Deny,
    Allow,
    /// The review is answered with HTTP 500, so that the webhook's `failurePolicy` decides.
    Error,
}

/// Actions by failure class. For a class that a rule leaves out, the policy's action applies, and else the built-in
/// action.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OnFailure {
    /// The registry says that the tag or repository does not exist.
    pub not_found: Option<Action>,
    /// The registry refuses the credentials.
    pub auth: Option<Action>,
    /// The result for the image is unknown, because of a timeout, an overload or a broken connection.
    pub unavailable: Option<Action>,
    /// The image reference is invalid, or this program's configuration is wrong.
    pub misconfigured: Option<Action>,
    /// The check failed because of a defect of this program.
    pub internal: Option<Action>,
    /// The image has no signature in any supported format.
    pub unsigned: Option<Action>,
    /// A signature is invalid, or there are too few signatures.
    pub invalid: Option<Action>,
    /// A signature belongs to another image.
    pub mismatch: Option<Action>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawPolicy {
    pub on_failure: OnFailure,
    pub matcher: Matcher,
    pub no_match: NoMatch,
    pub detection: bool,
    pub resources: Resources,
    pub automatic_child_approval: bool,
    pub recheck: Recheck,
    /// A value that replaces `recheck` of every rule; only an environment variable can set it.
    #[serde(skip)]
    pub recheck_of_all: Option<Recheck>,
    pub namespaces: RawNamespaces,
    pub bootstrap: Option<RawBootstrap>,
    pub cache: RawCache,
    pub rules: Vec<RawRule>,
    pub documents: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub recheck: Recheck,
    /// A value that replaces `recheck` of every rule.
    pub recheck_of_all: Option<Recheck>,
    pub matcher: Matcher,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawCache {
    pub ttl: Option<Span>,
    pub max_bytes: Option<Size>,
}

impl RawPolicy {
    /// The default values for rules of the configuration file and of `ImagePolicy` objects.
    pub(super) fn defaults(&self) -> Defaults {
        Defaults { recheck: self.recheck, recheck_of_all: self.recheck_of_all, matcher: self.matcher }
    }
}

impl Checker<'_> {
    pub(super) fn rules(
        &self,
        raw: Vec<RawRule>,
        defaults: Defaults,
        validators: &[Validator],
    ) -> Result<Vec<Rule>, Error> {
        let named = raw.into_iter().enumerate().map(|(index, raw)| (format!("policy.rules[{index}]"), raw));
        named.map(|(name, raw)| self.rule(name, raw, defaults, validators)).collect()
    }

    /// Checks the section `policy`. The first `own_rules` of `rules` come from the configuration file; the others come
    /// from `ImagePolicy` objects.
    pub(super) fn policy(&self, raw: RawPolicy, rules: Vec<Rule>, own_rules: usize) -> Result<Policy, Error> {
        self.within("policy.rules", rules.len() as u64, 0, RULES_MAX as u64)?;
        for (index, rule) in rules.iter().enumerate() {
            for other in &rules[..index] {
                self.both_count(rule, other)?;
            }
        }
        if raw.automatic_child_approval && raw.resources == Resources::PodsOnly {
            let what = "goes around `resources: podsOnly`, which judges nothing but the Pods themselves: remove one of them, here or \
                        from the environment (LONGHAUL_AUTOMATIC_CHILD_APPROVAL, LONGHAUL_RESOURCE_VALIDATION_MODE)";
            return Err(self.value("policy.automaticChildApproval", what));
        }
        let bytes = raw.cache.max_bytes.map_or(VERDICTS_BYTES, |size| size.0);
        Ok(Policy {
            on_failure: raw.on_failure,
            rules,
            own_rules,
            no_match: raw.no_match,
            detection: raw.detection,
            resources: raw.resources,
            child_approval: raw.automatic_child_approval,
            namespaces: self.namespaces(raw.namespaces)?,
            bootstrap: raw.bootstrap.map(|raw| self.bootstrap(raw)).transpose()?,
            verdicts: Verdicts {
                ttl: raw.cache.ttl.map_or(VERIFIED_TTL, |span| span.0),
                max_bytes: self.within("policy.cache.maxBytes", bytes, 0, 1 << 30)?,
            },
        })
    }

    /// Refuses two rules if one of the two can never apply, or if some image matches both and neither is more specific.
    fn both_count(&self, rule: &Rule, other: &Rule) -> Result<(), Error> {
        let (key, theirs) = (format!("{}.pattern", rule.name), other.pattern.as_str());
        if other.pattern.equals(&rule.pattern) {
            let what = format!("matches the same images as {} (`{theirs}`): keep one of them", other.name);
            return Err(self.value(key, what));
        }
        if other.pattern.ties_with(&rule.pattern) {
            let what = format!(
                "is as specific as {} (`{theirs}`) for images that match both: write more of the name before or after one of them",
                other.name
            );
            return Err(self.value(key, what));
        }
        Ok(())
    }
}
