//! The section `policy`: which rule an image is under, and what a failure of each class does.
//!
//! Owns the spelling of modes, actions and patterns, and refuses rules of which one could never count. What the built-in actions
//! are and how a review uses all this is in `admission`.

mod pattern;

use serde::Deserialize;

use super::{Checker, Error};
pub use pattern::Pattern;

/// Most rules: each is matched against each image and compared with each other one, and more than this nobody keeps in mind.
const RULES_MAX: usize = 200;

/// What is done with which image.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// What a failure does when the image's rule does not say.
    pub on_failure: OnFailure,
    /// The rules, in the order of the file.
    pub rules: Vec<Rule>,
}

/// What is done with images that match a pattern.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Which images.
    pub pattern: Pattern,
    /// What is done with them.
    pub mode: Mode,
    /// When they are looked at.
    pub recheck: Recheck,
    /// What a failure does.
    pub on_failure: OnFailure,
}

/// What is done with an image.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It gets its digest.
    #[default]
    Resolve,
    /// Nothing.
    Skip,
    /// It is resolved and nothing is changed or refused: what would have been done becomes a warning.
    Detect,
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

/// What a failure does.
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
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawPolicy {
    pub on_failure: OnFailure,
    pub rules: Vec<RawRule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRule {
    pub pattern: String,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub recheck: Recheck,
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl Checker<'_> {
    pub(super) fn policy(&self, raw: RawPolicy) -> Result<Policy, Error> {
        self.within("policy.rules", raw.rules.len() as u64, 0, RULES_MAX as u64)?;
        let mut rules: Vec<Rule> = Vec::with_capacity(raw.rules.len());
        for (index, raw) in raw.rules.into_iter().enumerate() {
            let key = format!("policy.rules[{index}].pattern");
            let pattern = Pattern::new(&raw.pattern).map_err(|what| self.value(&key, what.to_string()))?;
            for (other, rule) in rules.iter().enumerate() {
                let theirs = rule.pattern.as_str();
                if rule.pattern.equals(&pattern) {
                    let what =
                        format!("matches the same images as policy.rules[{other}] (`{theirs}`): keep one of them");
                    return Err(self.value(key, what));
                }
                if rule.pattern.ties_with(&pattern) {
                    let what = format!(
                        "is as specific as policy.rules[{other}] (`{theirs}`) for images that match both: write more of the \
                         name before or after one of them"
                    );
                    return Err(self.value(key, what));
                }
            }
            let idle =
                raw.mode == Mode::Skip && (raw.recheck == Recheck::Always || raw.on_failure != OnFailure::default());
            if idle {
                let what = "neither recheck nor onFailure has an effect with `mode: skip`: remove them";
                return Err(self.value(format!("policy.rules[{index}].mode"), what));
            }
            rules.push(Rule { pattern, mode: raw.mode, recheck: raw.recheck, on_failure: raw.on_failure });
        }
        Ok(Policy { on_failure: raw.on_failure, rules })
    }
}
