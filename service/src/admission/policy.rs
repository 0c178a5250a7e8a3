//! The policy: which rule an image is under, and what becomes of it when it has no digest.
//!
//! Pure, compiled once from the configuration. It asks nobody; what a registry says is the resolver's business.

mod explain;

use std::fmt;

use crate::config::{self, Action, Mode, OnFailure, Recheck};
use crate::registry::{Image, Reference, ReferenceError};
use crate::verdicts::{Class, Failure};
pub use explain::{Explanation, OnClass};

/// Bytes of a text that is no reference which patterns look at: no more than the longest reference.
const MATCHED_BYTES_MAX: usize = 520;

/// What the configuration says about images.
#[derive(Debug)]
pub struct Policy {
    skip_prefixes: Vec<String>,
    rules: Vec<config::Rule>,
    on_failure: OnFailure,
    /// Whether any rule looks at images that nobody changed, so that the others need not be asked.
    rechecks: bool,
}

/// How [`RuleName::BuiltIn`] displays.
pub const BUILT_IN: &str = "built-in";

/// What decided about an image; displays as the path of a configuration key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleName {
    /// An entry of `resolve.skipPrefixes`.
    SkipPrefix(usize),
    /// A rule of `policy.rules`.
    Rule(usize),
    /// No rule matches: the built-in one, which resolves every image.
    BuiltIn,
}

/// What is done with an image.
#[derive(Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing: it has its digest, or the configuration says so.
    LeaveAlone,
    /// It is resolved.
    Resolve {
        /// What the registry is asked.
        reference: Reference,
        /// [`Reference::canonical`] of it.
        name: String,
        /// The rule that says so.
        rule: RuleName,
    },
    /// It has failed already.
    Refuse {
        /// Why.
        failure: Failure,
        /// The rule whose action counts.
        rule: RuleName,
    },
}

impl Policy {
    /// The policy of a configuration.
    pub fn new(policy: &config::Policy, resolve: &config::Resolve) -> Self {
        Self {
            skip_prefixes: resolve.skip_prefixes.clone(),
            rules: policy.rules.clone(),
            on_failure: policy.on_failure,
            rechecks: policy.rules.iter().any(|rule| rule.recheck == Recheck::Always),
        }
    }

    /// What is done with `image` as somebody wrote it.
    ///
    /// A text that is no reference cannot be left alone by a rule: whatever it means to the next program, it is not what the rule's
    /// author had in mind. A skip prefix is about written texts and is asked first.
    pub fn treatment(&self, image: &str) -> Treatment {
        if self.skip_prefix(image).is_some() {
            return Treatment::LeaveAlone;
        }
        let parsed = match Image::parse(image) {
            Ok(parsed) => parsed,
            Err(error) => return self.refuse(&error, self.rule_of_text(image)),
        };
        if parsed.digest.is_some() {
            return Treatment::LeaveAlone;
        }
        // Without rules the full name is not needed.
        let rule = if self.rules.is_empty() { RuleName::BuiltIn } else { self.rule(&parsed.full_name()) };
        if self.mode(rule) == Mode::Skip {
            return Treatment::LeaveAlone;
        }
        match parsed.into_reference() {
            Ok(reference) => Treatment::Resolve { name: reference.canonical(), reference, rule },
            Err(error) => self.refuse(&error, rule),
        }
    }

    /// Whether `image` is looked at although nobody changed it.
    pub fn rechecks(&self, image: &str) -> bool {
        self.rechecks && self.recheck(self.rule_of_text(image)) == Recheck::Always
    }

    /// Whether images under `rule` are only reported.
    pub fn detects(&self, rule: RuleName) -> bool {
        self.mode(rule) == Mode::Detect
    }

    /// What a failure of `class` does to an image under `rule`, in an object that is `stored` already or is new.
    pub fn action(&self, rule: RuleName, class: Class, stored: bool) -> Action {
        self.action_and_origin(rule, class, stored).0
    }

    /// What a defect does to a review that did not come as far as its images.
    pub fn action_of_defect(&self) -> Action {
        self.action(RuleName::BuiltIn, Class::Internal, false)
    }

    /// Explains what would be done with `image`: reference, rule and why, mode, and actions by class. Asks nobody, never fails.
    pub fn explain(&self, image: &str) -> Explanation {
        explain::explain(self, image)
    }

    #[expect(clippy::unused_self, reason = "the failure belongs to a rule of this policy")]
    fn refuse(&self, error: &ReferenceError, rule: RuleName) -> Treatment {
        Treatment::Refuse { failure: Failure::new(Class::Misconfigured, error.to_string()), rule }
    }

    fn skip_prefix(&self, image: &str) -> Option<usize> {
        self.skip_prefixes.iter().position(|prefix| image.starts_with(prefix.as_str()))
    }

    /// The rule of a written text, reference or not.
    fn rule_of_text(&self, image: &str) -> RuleName {
        if self.rules.is_empty() {
            return RuleName::BuiltIn;
        }
        if let Ok(parsed) = Image::parse(image) {
            return self.rule(&parsed.full_name());
        }
        let end = (0..=MATCHED_BYTES_MAX.min(image.len())).rev().find(|&end| image.is_char_boundary(end)).unwrap_or(0);
        self.rule(&image[..end])
    }

    /// The most specific rule that matches; of equals the later one, as in Connaisseur.
    fn rule(&self, full_name: &str) -> RuleName {
        let matching = self.rules.iter().enumerate().filter(|(_, rule)| rule.pattern.matches(full_name));
        let best = matching.max_by(|(_, left), (_, right)| left.pattern.compare(&right.pattern, full_name));
        best.map_or(RuleName::BuiltIn, |(index, _)| RuleName::Rule(index))
    }

    fn settings(&self, rule: RuleName) -> Option<&config::Rule> {
        match rule {
            RuleName::Rule(index) => self.rules.get(index),
            RuleName::SkipPrefix(_) | RuleName::BuiltIn => None,
        }
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

    /// The action and the configuration key that says so, `built in` when none does.
    fn action_and_origin(&self, rule: RuleName, class: Class, stored: bool) -> (Action, String) {
        let by_rule = self.settings(rule).and_then(|rule| named(rule.on_failure, class));
        if let Some(action) = by_rule {
            return (action, format!("{rule}.onFailure"));
        }
        match named(self.on_failure, class) {
            Some(action) => (action, "policy.onFailure".to_owned()),
            None => (built_in(class, stored), "built in".to_owned()),
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
    }
}

/// What is definite is refused. Whether a registry's outage or a defect of ours may stop a change of what runs already is for the
/// webhook's `failurePolicy` to say.
fn built_in(class: Class, stored: bool) -> Action {
    match class {
        Class::Unavailable if stored => Action::Error,
        Class::Internal => Action::Error,
        Class::NotFound | Class::Auth | Class::Unavailable | Class::Misconfigured => Action::Deny,
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SkipPrefix(index) => write!(out, "resolve.skipPrefixes[{index}]"),
            Self::Rule(index) => write!(out, "policy.rules[{index}]"),
            Self::BuiltIn => out.write_str(BUILT_IN),
        }
    }
}

#[cfg(test)]
mod tests;
