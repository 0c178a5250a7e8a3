//! The section `policy`: which rule an image is under, and what a failure of each class does.
//!
//! Owns the spelling of modes, actions and patterns, and refuses rules of which one could never count. What the built-in actions
//! are and how a review uses all this is in `admission`.

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

/// Most rules: each is matched against each image and compared with each other one, and more than this nobody keeps in mind.
const RULES_MAX: usize = 200;
/// How long an image stays verified: its digest, the rule and the trust are part of what is remembered.
const VERIFIED_TTL: Duration = Duration::from_hours(1);
/// About 8,000 verdicts at some 500 bytes each.
const VERDICTS_BYTES: u64 = 4 << 20;

/// The treatment of images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The actions on failures where the image's rule does not say.
    pub on_failure: OnFailure,
    /// The rules in the order of the file, then those of documents.
    pub rules: Vec<Rule>,
    /// How many of the rules are the file's own.
    pub own_rules: usize,
    /// The treatment of an image that no rule matches.
    pub no_match: NoMatch,
    /// Whether nothing is refused and nothing changed, whatever the rules say.
    pub detection: bool,
    /// The objects whose images are judged.
    pub resources: Resources,
    /// Whether what an owner has already is let in with its child.
    pub child_approval: bool,
    /// Namespaces in which nothing is looked at.
    pub namespaces: Namespaces,
    /// Images that start although nobody can say who signed them.
    pub bootstrap: Option<Bootstrap>,
    /// The memory of verdicts.
    pub verdicts: Verdicts,
}

/// The memory of verdicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdicts {
    /// How long an image stays verified.
    pub ttl: Duration,
    /// Largest size, bytes.
    pub max_bytes: usize,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { ttl: VERIFIED_TTL, max_bytes: usize::try_from(VERDICTS_BYTES).unwrap_or(usize::MAX) }
    }
}

/// The treatment of an image that no rule matches.
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
    /// The image is refused.
    Deny,
}

/// The objects whose images are judged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resources {
    /// Images of every object.
    #[default]
    All,
    /// Images of Pods: those of other objects are reported.
    PodsOnly,
}

/// The treatment of an image.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The image gets its digest.
    #[default]
    Resolve,
    /// Nothing.
    Skip,
    /// Its signatures are verified.
    Verify,
    /// Its signatures are verified, and it gets the digest that they are of.
    VerifyAndPin,
    /// The image is looked at and nothing is changed or refused: what would have been done becomes a warning.
    Detect,
}

impl Mode {
    /// As it is written.
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

/// When an image of a stored object is looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recheck {
    /// When it differs from the stored one.
    #[default]
    Changed,
    /// At every update.
    Always,
}

/// The action on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object is refused.
    Deny,
    /// The image stays as it is, with a warning.
    Allow,
    /// The review is answered HTTP 500, so that the webhook's `failurePolicy` decides.
    Error,
}

/// Actions by class of failure; a class that is not named is decided further up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OnFailure {
    /// The registry says that tag or repository does not exist.
    pub not_found: Option<Action>,
    /// The registry refuses us.
    pub auth: Option<Action>,
    /// Cannot tell: timeout, overload, broken connection.
    pub unavailable: Option<Action>,
    /// The reference or our own configuration cannot work.
    pub misconfigured: Option<Action>,
    /// A defect of this program.
    pub internal: Option<Action>,
    /// No signature that could count.
    pub unsigned: Option<Action>,
    /// A signature that does not verify, or too few of them.
    pub invalid: Option<Action>,
    /// A signature of something else than this image.
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
    /// Whatever file and rules say: the environment alone says this.
    #[serde(skip)]
    pub recheck_of_all: Option<Recheck>,
    pub namespaces: RawNamespaces,
    pub bootstrap: Option<RawBootstrap>,
    pub cache: RawCache,
    pub rules: Vec<RawRule>,
    pub documents: Vec<PathBuf>,
}

/// Values of rules that do not say them themselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    pub recheck: Recheck,
    /// What counts before what a rule says itself.
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
    /// Values of its rules and documents that do not say them themselves.
    pub(super) fn defaults(&self) -> Defaults {
        Defaults { recheck: self.recheck, recheck_of_all: self.recheck_of_all, matcher: self.matcher }
    }
}

impl Checker<'_> {
    /// Checks the rules of the section itself.
    pub(super) fn rules(
        &self,
        raw: Vec<RawRule>,
        defaults: Defaults,
        validators: &[Validator],
    ) -> Result<Vec<Rule>, Error> {
        let named = raw.into_iter().enumerate().map(|(index, raw)| (format!("policy.rules[{index}]"), raw));
        named.map(|(name, raw)| self.rule(name, raw, defaults, validators)).collect()
    }

    /// Checks the section. Its own rules are the first `own_rules` of `rules`; the others are those of documents.
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

    /// Refuses two rules of which one could never count, or neither for some image.
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
