//! The section `policy`: the rule of an image, and the action on a failure of each class.
//!
//! This module owns the spelling of modes, actions and patterns, and refuses rules that can never apply. The built-in
//! actions, and the use in a review, are in `admission`.

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

/// Most rules: each is matched against each image and compared with every other rule, and people lose track of more.
const RULES_MAX: usize = 200;
/// How long an image stays verified: the cache key contains its digest, the rule and the trust.
const VERIFIED_TTL: Duration = Duration::from_hours(1);
/// About 8,000 verdicts at some 500 bytes each.
const VERDICTS_BYTES: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The actions on failures, unless the image's rule has its own.
    pub on_failure: OnFailure,
    /// The rules in the order of the file, then those of documents.
    pub rules: Vec<Rule>,
    /// How many of the rules are the file's own.
    pub own_rules: usize,
    pub no_match: NoMatch,
    /// Whether nothing is refused or changed, whatever the rules say.
    pub detection: bool,
    pub resources: Resources,
    /// Whether a child object may keep the images that its owner already has.
    pub child_approval: bool,
    /// Namespaces whose objects are not examined.
    pub namespaces: Namespaces,
    /// Images that start without verified signatures.
    pub bootstrap: Option<Bootstrap>,
    pub verdicts: Verdicts,
}

/// Settings of the memory of verdicts.
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
    /// The image gets its digest.
    #[default]
    Resolve,
    /// The image is left alone.
    Allow,
    /// The image is left alone, with a warning.
    Warn,
    Deny,
}

/// The objects whose images are judged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resources {
    #[default]
    All,
    /// Images of Pods; those of other objects are only reported.
    PodsOnly,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The image gets its digest.
    #[default]
    Resolve,
    /// The image is not examined.
    Skip,
    /// Its signatures are verified.
    Verify,
    /// Its signatures are verified, and it gets the digest that they sign.
    VerifyAndPin,
    /// The image is examined and nothing is changed or refused: the change or refusal becomes a warning.
    Detect,
}

impl Mode {
    /// The name in the configuration.
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
    /// When it differs from the stored one.
    #[default]
    Changed,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Deny,
    /// The image stays as it is, with a warning.
    Allow,
    /// The review is answered with HTTP 500, so that the webhook's `failurePolicy` decides.
    Error,
}

/// Actions by class of failure; for absent classes the next level decides.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OnFailure {
    /// The registry reports that tag or repository does not exist.
    pub not_found: Option<Action>,
    /// The registry refuses our credentials.
    pub auth: Option<Action>,
    /// The result is unknown: timeout, overload, broken connection.
    pub unavailable: Option<Action>,
    /// The reference or our own configuration cannot work.
    pub misconfigured: Option<Action>,
    /// A defect of this program.
    pub internal: Option<Action>,
    /// The image has no signature that could count.
    pub unsigned: Option<Action>,
    /// A signature is not valid, or there are too few.
    pub invalid: Option<Action>,
    /// A signature is of another image.
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
    /// Overrules file and rules; only the environment can set it.
    #[serde(skip)]
    pub recheck_of_all: Option<Recheck>,
    pub namespaces: RawNamespaces,
    pub bootstrap: Option<RawBootstrap>,
    pub cache: RawCache,
    pub rules: Vec<RawRule>,
    pub documents: Vec<PathBuf>,
}

/// Defaults for rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub recheck: Recheck,
    /// Overrules the rule's own value.
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
    /// Defaults for the rules and documents.
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

    /// Checks the section. Its own rules are the first `own_rules` of `rules`; the others come from documents.
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

    /// Refuses two rules if one of them can never apply, or if neither takes precedence for some image.
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
