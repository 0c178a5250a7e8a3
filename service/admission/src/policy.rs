//! The policy: the rule of an image, and the action if the image has no digest or may not run.
//!
//! Pure, compiled once from the configuration. It sends no request: the resolver asks registries, and validators check
//! signatures.

mod explain;

use std::fmt;
use std::sync::Arc;

use crate::config::{self, Action, Mode, NoMatch, OnFailure, Recheck, Resources, ValidatorKind};
pub use explain::{Explanation, OnClass};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Image, Reference};

/// Most bytes of a text other than a reference that are matched: the length of the longest reference.
const MATCHED_BYTES_MAX: usize = 520;

/// Prefix of digests that signatures can refer to.
const BOUND_BY_SIGNATURES: &str = "sha256:";

#[derive(Debug)]
pub struct Policy {
    skip_prefixes: Vec<String>,
    settings: config::Policy,
    /// The answers of static validators, by rule; `None` for other rules.
    approvals: Vec<Option<bool>>,
    /// The names of validators, by rule.
    validators: Vec<Option<String>>,
    /// Whether any rule judges unchanged images; otherwise the rules need not be checked.
    rechecks: bool,
    /// Notes on validators that no rule uses.
    unasked: Vec<String>,
}

/// The displayed name of [`RuleName::BuiltIn`].
pub const BUILT_IN: &str = "built-in";

/// The rule that decided about an image; displays as the path of a configuration key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleName {
    /// An entry of `resolve.skipPrefixes`.
    SkipPrefix(usize),
    /// A rule of `policy.rules`.
    Rule(usize),
    /// A rule of a document, counted over all documents. Messages have its name.
    Document(usize),
    /// No rule matches, and `policy.noMatch` decides.
    NoMatch,
    /// No rule matches: the built-in rule, which resolves every image.
    BuiltIn,
}

/// The content whose signatures are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The content of a tag at the registry now.
    Tag(Reference),
    Digest {
        /// Host as configured.
        host: String,
        repository: String,
        /// The digest as written, of SHA-256.
        digest: Arc<str>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing to do: the image has its digest, or the configuration exempts it.
    LeaveAlone,
    Resolve {
        /// The reference to look up.
        reference: Reference,
        /// [`Reference::as_asked`] of it.
        name: String,
        rule: RuleName,
    },
    /// The validator of its rule verifies its signatures.
    Verify {
        target: Target,
        /// [`Reference::as_asked`] of a tag.
        name: String,
        rule: RuleName,
        /// Whether it then gets the digest.
        pin: bool,
    },
    Refuse {
        failure: Failure,
        /// The rule whose action applies.
        rule: RuleName,
    },
}

impl Policy {
    pub fn new(config: &config::Config) -> Self {
        let validator = |rule: &config::Rule| config.validators.get(rule.validator?);
        let approval = |rule: &config::Rule| match validator(rule)?.kind {
            ValidatorKind::Static { approve } => Some(approve),
            ValidatorKind::Cosign(_) | ValidatorKind::Remote(_) | ValidatorKind::ExternalData(_) => None,
        };
        let rules = &config.policy.rules;
        Self {
            skip_prefixes: config.resolve.skip_prefixes.clone(),
            approvals: rules.iter().map(approval).collect(),
            validators: rules.iter().map(|rule| validator(rule).map(|validator| validator.name.clone())).collect(),
            rechecks: rules.iter().any(|rule| rule.recheck == Recheck::Always),
            unasked: config.unasked(),
            settings: config.policy.clone(),
        }
    }

    /// The treatment of `image` as written by the user.
    ///
    /// No rule can leave a text alone that is no reference: its meaning for the next program is unknown, and the rule's
    /// author did not intend it. A skip prefix concerns written texts and is checked first.
    pub fn treatment(&self, image: &str) -> Treatment {
        if self.skip_prefix(image).is_some() {
            return Treatment::LeaveAlone;
        }
        let parsed = match Image::parse(image) {
            Ok(parsed) => parsed,
            Err(error) => return refuse(Class::Misconfigured, error.to_string(), self.rule_of_text(image)),
        };
        // Without rules the full name is not needed.
        let rule = if self.settings.rules.is_empty() { self.no_match() } else { self.rule(&parsed.full_name()) };
        match (rule, self.approval(rule)) {
            (RuleName::NoMatch, _) if self.settings.no_match == NoMatch::Allow => return Treatment::LeaveAlone,
            (RuleName::NoMatch, _) => {
                return refuse(Class::Denied, "no rule of the policy matches (policy.noMatch)", rule);
            }
            (_, Some(true)) => return Treatment::LeaveAlone,
            (_, Some(false)) => {
                let (name, pattern) = (self.name(rule), self.pattern(rule));
                let what =
                    format!("the static validator `{}` lets in no image of {name} (`{pattern}`)", self.validator(rule));
                return refuse(Class::Denied, what, rule);
            }
            (_, None) => {}
        }
        if self.verifies(rule) {
            return self.verify(parsed, rule);
        }
        if parsed.digest.is_some() || self.mode(rule) == Mode::Skip {
            return Treatment::LeaveAlone;
        }
        match parsed.into_reference() {
            Ok(reference) => Treatment::Resolve { name: reference.as_asked(), reference, rule },
            Err(error) => refuse(Class::Misconfigured, error.to_string(), rule),
        }
    }

    fn verify(&self, image: Image, rule: RuleName) -> Treatment {
        match image.digest.as_deref() {
            None => match image.into_reference() {
                Ok(reference) => {
                    let (name, pin) = (reference.as_asked(), self.mode(rule) == Mode::VerifyAndPin);
                    Treatment::Verify { target: Target::Tag(reference), name, rule, pin }
                }
                Err(error) => refuse(Class::Misconfigured, error.to_string(), rule),
            },
            Some(digest) if digest.starts_with(BOUND_BY_SIGNATURES) => {
                let digest = Arc::from(digest);
                let target = Target::Digest { host: image.host, repository: image.repository, digest };
                Treatment::Verify { target, name: String::new(), rule, pin: false }
            }
            Some(_) => {
                let what = "signatures bind digests of SHA-256, and this one is of another kind: write sha256:…";
                refuse(Class::Misconfigured, what, rule)
            }
        }
    }

    /// Whether `image` is judged although it did not change.
    pub fn rechecks(&self, image: &str) -> bool {
        self.rechecks && self.recheck(self.rule_of_text(image)) == Recheck::Always
    }

    /// Notes on validators of signatures that no rule uses, one sentence each.
    pub fn unasked(&self) -> &[String] {
        &self.unasked
    }

    /// Whether images under `rule` are only reported.
    pub fn detects(&self, rule: RuleName) -> bool {
        self.settings.detection || self.mode(rule) == Mode::Detect
    }

    /// Whether images of objects other than Pods are only reported.
    pub fn judges_pods_only(&self) -> bool {
        self.settings.resources == Resources::PodsOnly
    }

    /// Whether a child may keep its owner's images at all. With `podsOnly`, owners are admitted without a check.
    pub fn approves_children(&self) -> bool {
        self.settings.child_approval && !self.judges_pods_only()
    }

    /// Whether an owner's image under `rule` was verified for certain. That is not so if a failure may admit an image,
    /// or if nothing is refused.
    pub fn is_inherited(&self, rule: RuleName) -> bool {
        let lets_in = |class: &Class| self.action(rule, *class) == Action::Allow;
        self.approves_children() && !self.detects(rule) && !Class::OF_SIGNATURES.iter().any(lets_in)
    }

    /// The reason for not examining `namespace`, if there is one; follows "exempt:".
    pub fn exempts(&self, namespace: Option<&str>) -> Option<&'static str> {
        if self.settings.namespaces.are_all() {
            return None;
        }
        // An object without a namespace counts as in the empty one.
        self.settings.namespaces.out(namespace.unwrap_or_default())
    }

    /// Whether `image` starts in `namespace` without verified signatures.
    pub fn bootstraps(&self, namespace: Option<&str>, image: &str) -> bool {
        self.settings.bootstrap.as_ref().is_some_and(|bootstrap| bootstrap.lists(namespace, image))
    }

    /// The rule's index among all rules of the configuration.
    pub fn index(&self, rule: RuleName) -> Option<usize> {
        match rule {
            RuleName::Rule(index) => Some(index),
            RuleName::Document(index) => Some(self.settings.own_rules + index),
            RuleName::SkipPrefix(_) | RuleName::NoMatch | RuleName::BuiltIn => None,
        }
    }

    /// The name of `rule` in messages.
    pub fn name(&self, rule: RuleName) -> String {
        self.settings(rule).map_or_else(|| rule.to_string(), |settings| settings.name.clone())
    }

    /// The action on a failure of `class` for an image under `rule`.
    pub fn action(&self, rule: RuleName, class: Class) -> Action {
        self.action_and_origin(rule, class).0
    }

    /// The action on `failure` for an image under `rule`. Where signatures are demanded, a registry left alone after
    /// failures admits no image, even if the rule admits images of registries that do not answer. Otherwise an attacker
    /// that makes the registry fail could choose the images that run.
    pub fn action_on(&self, rule: RuleName, failure: &Failure) -> Action {
        if failure.unasked && self.verifies(rule) {
            return Action::Deny;
        }
        self.action(rule, failure.class)
    }

    /// The action on a defect of a review before its images were examined.
    pub fn action_of_defect(&self) -> Action {
        self.action(RuleName::BuiltIn, Class::Internal)
    }

    /// Explains the treatment of `image` in `namespace`: reference, rule and why, mode, and actions by class. Sends no
    /// request, never fails.
    pub fn explain(&self, image: &str, namespace: Option<&str>) -> Explanation {
        explain::explain(self, image, namespace)
    }

    fn skip_prefix(&self, image: &str) -> Option<usize> {
        self.skip_prefixes.iter().position(|prefix| image.starts_with(prefix.as_str()))
    }

    /// The rule of a written text, reference or not.
    fn rule_of_text(&self, image: &str) -> RuleName {
        if self.settings.rules.is_empty() {
            return self.no_match();
        }
        if let Ok(parsed) = Image::parse(image) {
            return self.rule(&parsed.full_name());
        }
        let end = (0..=MATCHED_BYTES_MAX.min(image.len())).rev().find(|&end| image.is_char_boundary(end)).unwrap_or(0);
        self.rule(&image[..end])
    }

    /// The most specific matching rule; of equals the later one, as in Connaisseur.
    fn rule(&self, full_name: &str) -> RuleName {
        let matching =
            self.settings.rules.iter().enumerate().filter(|(index, rule)| self.matches(*index, rule, full_name));
        let best = matching.max_by(|(_, left), (_, right)| left.pattern.compare(&right.pattern, full_name));
        best.map_or_else(|| self.no_match(), |(index, _)| self.rule_at(index))
    }

    /// Whether the rule with this index applies to an image. A rule that admits without a check must match the image's
    /// host.
    fn matches(&self, index: usize, rule: &config::Rule, full_name: &str) -> bool {
        let lets_in = rule.mode == Mode::Skip || self.approvals.get(index) == Some(&Some(true));
        if lets_in { rule.pattern.matches_at_its_host(full_name) } else { rule.pattern.matches(full_name) }
    }

    fn rule_at(&self, index: usize) -> RuleName {
        index.checked_sub(self.settings.own_rules).map_or(RuleName::Rule(index), RuleName::Document)
    }

    fn no_match(&self) -> RuleName {
        if self.settings.no_match == NoMatch::Resolve { RuleName::BuiltIn } else { RuleName::NoMatch }
    }

    fn settings(&self, rule: RuleName) -> Option<&config::Rule> {
        self.settings.rules.get(self.index(rule)?)
    }

    fn approval(&self, rule: RuleName) -> Option<bool> {
        *self.approvals.get(self.index(rule)?)?
    }

    /// The demands on signatures under `rule`, if there are any.
    fn with(&self, rule: RuleName) -> Option<&config::With> {
        self.settings(rule)?.with.as_ref()
    }

    /// Whether signatures of images under `rule` are verified.
    fn verifies(&self, rule: RuleName) -> bool {
        self.settings(rule).is_some_and(config::Rule::verifies)
    }

    fn pattern(&self, rule: RuleName) -> &str {
        self.settings(rule).map_or("*", |settings| settings.pattern.as_str())
    }

    fn validator(&self, rule: RuleName) -> &str {
        self.index(rule).and_then(|index| self.validators.get(index)?.as_deref()).unwrap_or_default()
    }

    fn mode(&self, rule: RuleName) -> Mode {
        match rule {
            RuleName::SkipPrefix(_) => Mode::Skip,
            _ => self.settings(rule).map_or(Mode::Resolve, |rule| rule.mode),
        }
    }

    fn recheck(&self, rule: RuleName) -> Recheck {
        self.settings(rule).map_or(Recheck::Changed, |rule| rule.recheck)
    }

    /// The action and its configuration key, `built in` if there is none.
    fn action_and_origin(&self, rule: RuleName, class: Class) -> (Action, String) {
        if rule == RuleName::NoMatch && class == Class::Denied {
            let warns = self.settings.no_match == NoMatch::Warn;
            return (if warns { Action::Allow } else { Action::Deny }, rule.to_string());
        }
        let by_rule = self.settings(rule).and_then(|rule| named(rule.on_failure, class));
        if let Some(action) = by_rule {
            return (action, format!("{}.onFailure", self.name(rule)));
        }
        match named(self.settings.on_failure, class) {
            Some(action) => (action, "policy.onFailure".to_owned()),
            None => (built_in(class), "built in".to_owned()),
        }
    }
}

fn named(actions: OnFailure, class: Class) -> Option<Action> {
    match class {
        Class::NotFound => actions.not_found,
        Class::Auth => actions.auth,
        Class::Unavailable => actions.unavailable,
        Class::Misconfigured => actions.misconfigured,
        Class::Internal => actions.internal,
        Class::Unsigned => actions.unsigned,
        Class::Invalid => actions.invalid,
        Class::Mismatch => actions.mismatch,
        // The rule itself denies; and our own limits are not configurable here.
        Class::Denied | Class::TooMuchEvidence | Class::Busy => None,
    }
}

/// The built-in action. An image with an unknown result is refused like one with a definite failure, in new objects and
/// for new images of old ones alike; unchanged images are not judged. For a defect of ours the webhook's
/// `failurePolicy` decides.
fn built_in(class: Class) -> Action {
    match class {
        Class::Internal => Action::Error,
        Class::NotFound
        | Class::Auth
        | Class::Unavailable
        | Class::Misconfigured
        | Class::Unsigned
        | Class::Invalid
        | Class::Mismatch
        | Class::Denied
        | Class::TooMuchEvidence
        | Class::Busy => Action::Deny,
    }
}

fn refuse(class: Class, cause: impl Into<String>, rule: RuleName) -> Treatment {
    Treatment::Refuse { failure: Failure::new(class, cause), rule }
}

impl fmt::Display for RuleName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SkipPrefix(index) => write!(out, "resolve.skipPrefixes[{index}]"),
            Self::Rule(index) => write!(out, "policy.rules[{index}]"),
            Self::Document(index) => write!(out, "policy.documents (rule {index})"),
            Self::NoMatch => out.write_str("policy.noMatch"),
            Self::BuiltIn => out.write_str(BUILT_IN),
        }
    }
}

#[cfg(test)]
mod tests;
