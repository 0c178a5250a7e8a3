//! The policy: finds the rule for an image, and the action if the image fails.
//!
//! The policy is compiled once from the configuration and sends no requests: the resolver asks registries, and
//! validators check signatures.

mod explain;

use std::fmt;
use std::sync::Arc;

use crate::config::{self, Action, Mode, NoMatch, OnFailure, Recheck, Resources, ValidatorKind};
pub use explain::{Explanation, OnClass};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Image, Reference};

/// If a text is no image reference, patterns are matched against at most this many of its bytes: the length of the
/// longest reference.
const MATCHED_BYTES_MAX: usize = 520;

/// Prefix of the digests to which signatures can refer.
const BOUND_BY_SIGNATURES: &str = "sha256:";

#[derive(Debug)]
pub struct Policy {
    skip_prefixes: Vec<String>,
    settings: config::Policy,
    /// The verdict of the rule's static validator, by rule; `None` for other rules.
    approvals: Vec<Option<bool>>,
    /// The name of the rule's validator, by rule.
    validators: Vec<Option<String>>,
    /// Whether any rule judges unchanged images. If false, no rule is searched for an unchanged image.
    rechecks: bool,
    unasked: Vec<String>,
}

/// The displayed name of [`RuleName::BuiltIn`].
pub const BUILT_IN: &str = "built-in";

/// The rule that applies to an image. The rule is displayed as the path of its configuration key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleName {
    /// An entry of `resolve.skipPrefixes`, by index.
    SkipPrefix(usize),
    /// A rule of `policy.rules`, by index.
    Rule(usize),
    /// A rule of an `ImagePolicy` document, numbered over all documents. Messages show the name of the document.
    Document(usize),
    /// No rule matches, and `policy.noMatch` decides.
    NoMatch,
    /// No rule matches, so the built-in rule applies, which resolves every image.
    BuiltIn,
}

/// The image content whose signatures are verified: the content of a tag or of a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The content to which a tag points now.
    Tag(Reference),
    Digest {
        /// The registry host, spelled as in the configuration.
        host: String,
        repository: String,
        digest: Arc<str>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The image is not changed, because it has a digest or the configuration exempts it.
    LeaveAlone,
    Resolve {
        reference: Reference,
        /// The reference's text from [`Reference::as_asked`].
        name: String,
        rule: RuleName,
    },
    /// The validator of the rule verifies the image's signatures.
    Verify {
        target: Target,
        /// The text from [`Reference::as_asked`], if the image has a tag.
        name: String,
        rule: RuleName,
        /// Whether the image is pinned to the verified digest.
        pin: bool,
    },
    Refuse {
        failure: Failure,
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

    /// The treatment of `image`, whose text is spelled as the user wrote it.
    ///
    /// No rule can exempt a text that is not a valid reference, because container runtimes could read such a text
    /// differently. The prefixes in `skipPrefixes` are compared with the user's text before the rules are searched.
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

    /// Whether `image` is judged even if it did not change.
    pub fn rechecks(&self, image: &str) -> bool {
        self.rechecks && self.recheck(self.rule_of_text(image)) == Recheck::Always
    }

    pub fn unasked(&self) -> &[String] {
        &self.unasked
    }

    /// Whether failures of images under `rule` are only reported.
    pub fn detects(&self, rule: RuleName) -> bool {
        self.settings.detection || self.mode(rule) == Mode::Detect
    }

    /// Whether failures of images in objects other than Pods are only reported.
    pub fn judges_pods_only(&self) -> bool {
        self.settings.resources == Resources::PodsOnly
    }

    /// Whether an owner may approve images of its children. With `podsOnly` an owner may not approve images, because
    /// owners are admitted without checks.
    pub fn approves_children(&self) -> bool {
        self.settings.child_approval && !self.judges_pods_only()
    }

    /// Whether an owner's image under `rule` was certainly verified. The image may be unverified if the rule admits
    /// images despite a failure, or if the policy refuses nothing.
    pub fn is_inherited(&self, rule: RuleName) -> bool {
        let lets_in = |class: &Class| self.action(rule, *class) == Action::Allow;
        self.approves_children() && !self.detects(rule) && !Class::OF_SIGNATURES.iter().any(lets_in)
    }

    /// The reason for not examining objects in `namespace`, to be printed after "exempt:"; `None` if they are examined.
    pub fn exempts(&self, namespace: Option<&str>) -> Option<&'static str> {
        if self.settings.namespaces.are_all() {
            return None;
        }
        // An object without a namespace counts as in the empty one.
        self.settings.namespaces.out(namespace.unwrap_or_default())
    }

    /// Whether `image` may start in `namespace` without verified signatures.
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

    pub fn name(&self, rule: RuleName) -> String {
        self.settings(rule).map_or_else(|| rule.to_string(), |settings| settings.name.clone())
    }

    /// The action on a failure of `class` for an image under `rule`.
    pub fn action(&self, rule: RuleName, class: Class) -> Action {
        self.action_and_origin(rule, class).0
    }

    /// The action on the failure `failure` of an image under `rule`. If signatures are demanded and the registry's
    /// breaker is open (requests are held back after failures), the action is always a refusal, even if the rule admits
    /// images of unavailable registries. If the rule's action applied, an attacker that makes the registry fail could
    /// choose the images that run.
    pub fn action_on(&self, rule: RuleName, failure: &Failure) -> Action {
        if failure.unasked && self.verifies(rule) {
            return Action::Deny;
        }
        self.action(rule, failure.class)
    }

    /// The action on a defect that occurred before a review's images were examined.
    pub fn action_of_defect(&self) -> Action {
        self.action(RuleName::BuiltIn, Class::Internal)
    }

    /// Explains the treatment of `image` in `namespace`: reference, rule and reason, mode, and actions by class.
    /// `explain` sends no request and never fails.
    pub fn explain(&self, image: &str, namespace: Option<&str>) -> Explanation {
        explain::explain(self, image, namespace)
    }

    fn skip_prefix(&self, image: &str) -> Option<usize> {
        self.skip_prefixes.iter().position(|prefix| image.starts_with(prefix.as_str()))
    }

    /// The rule for an image text as the user wrote it, which may be an invalid reference.
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

    /// The most specific matching rule; of equally specific rules the last rule, as in Connaisseur.
    fn rule(&self, full_name: &str) -> RuleName {
        let matching =
            self.settings.rules.iter().enumerate().filter(|(index, rule)| self.matches(*index, rule, full_name));
        let best = matching.max_by(|(_, left), (_, right)| left.pattern.compare(&right.pattern, full_name));
        best.map_or_else(|| self.no_match(), |(index, _)| self.rule_at(index))
    }

    /// Whether the rule with this index matches an image. A rule that admits images without a check must match the
    /// image's host.
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

    /// The demands on signatures under `rule`; `None` if the rule has no demands.
    fn with(&self, rule: RuleName) -> Option<&config::With> {
        self.settings(rule)?.with.as_ref()
    }

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

    /// The action and the configuration key that sets it; `built in` if no key sets it.
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

/// The built-in action for failures of `class`. In new and changed objects, an image whose check had no result is
/// refused like an image with a definite failure. Unchanged images are not judged. For a failure by a defect of this
/// program, the webhook's `failurePolicy` decides.
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
