//! One policy rule: the images to which it applies, their treatment, and the demands on their signatures.

use serde::Deserialize;

use super::super::validators::{self, Kind, Validator};
use super::super::{Checker, Error};
use super::with::{Flow, RawWith, With};
use super::{Defaults, Mode, OnFailure, Pattern, Recheck};

/// A rule for images that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The rule's name in messages: the path of its configuration key, or the name of its `ImagePolicy`.
    pub name: String,
    pub pattern: Pattern,
    pub mode: Mode,
    pub recheck: Recheck,
    pub on_failure: OnFailure,
    /// Index of the validator; `None` if the rule has none.
    pub validator: Option<usize>,
    /// The demands on signatures; `None` if the validator checks no signatures.
    pub with: Option<With>,
    /// The demands as JSON, for a validator in another process; `None` if the rule has no demands.
    pub passed: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::config) struct RawRule {
    pub pattern: String,
    pub mode: Option<Mode>,
    pub recheck: Option<Recheck>,
    #[serde(default)]
    pub on_failure: OnFailure,
    pub validator: Option<String>,
    pub with: Option<RawWith>,
}

impl Checker<'_> {
    /// Checks the rule that messages call `name`.
    pub(in crate::config) fn rule(
        &self,
        name: String,
        raw: RawRule,
        defaults: Defaults,
        validators: &[Validator],
    ) -> Result<Rule, Error> {
        let key = |part: &str| format!("{name}.{part}");
        let pattern = Pattern::with(&raw.pattern, defaults.matcher)
            .map_err(|what| self.value(key("pattern"), what.to_string()))?;
        let asks = raw.validator.is_some()
            || raw.with.is_some()
            || matches!(raw.mode, Some(Mode::Verify | Mode::VerifyAndPin));
        if !asks && raw.mode.is_none() && validators.iter().any(|validator| validator.name == validators::DEFAULT) {
            let what = "does not say whether the validator `default` is asked: write `validator: default` to ask it, or `mode: resolve` \
                        to pin its images and ask nobody";
            return Err(self.value(name, what));
        }
        if !asks {
            let mode = raw.mode.unwrap_or_default();
            let idle =
                mode == Mode::Skip && (raw.recheck == Some(Recheck::Always) || raw.on_failure != OnFailure::default());
            if idle {
                let what = "neither recheck nor onFailure has an effect with `mode: skip`: remove them";
                return Err(self.value(key("mode"), what));
            }
            // Under `skip` nothing is examined, whatever the other defaults say.
            let of_others = || defaults.recheck_of_all.or(raw.recheck).unwrap_or(defaults.recheck);
            let recheck = if mode == Mode::Skip { Recheck::Changed } else { of_others() };
            let on_failure = raw.on_failure;
            return Ok(Rule { name, pattern, mode, recheck, on_failure, validator: None, with: None, passed: None });
        }
        let wanted = raw.validator.as_deref().unwrap_or(validators::DEFAULT);
        let index = validators.iter().position(|validator| validator.name == wanted).ok_or_else(|| {
            let known: Vec<_> = validators.iter().map(|validator| format!("`{}`", validator.name)).collect();
            let known =
                if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
            self.value(key("validator"), format!("there is no validator `{wanted}`; {known}"))
        })?;
        let mut passed = None;
        let (mode, with) = match &validators[index].kind {
            Kind::Static { .. } => {
                if raw.with.is_some() {
                    return Err(self.value(key("with"), format!("has no effect with the static validator `{wanted}`")));
                }
                if let Some(mode) = raw.mode.filter(|mode| *mode != Mode::Detect) {
                    let what = format!(
                        "{} has no effect with the static validator `{wanted}`: remove it, or write detect",
                        mode.name()
                    );
                    return Err(self.value(key("mode"), what));
                }
                // In every mode of such a rule, no digest is looked up.
                (raw.mode.unwrap_or(Mode::Verify), None)
            }
            Kind::Cosign(cosign) => {
                let (with, flow) = self.with(&key("with"), raw.with.unwrap_or_default(), cosign)?;
                (self.verifying(&key, raw.mode, flow)?, Some(with))
            }
            Kind::Remote(_) => {
                let mut with = raw.with;
                let flow = with.as_mut().and_then(|with| with.mode.take());
                passed = Some(with.map(RawWith::passed).unwrap_or_default());
                (self.verifying(&key, raw.mode, flow)?, None)
            }
            Kind::ExternalData(_) => {
                if raw.with.is_some() {
                    let what =
                        format!("has no effect: the provider of `{wanted}` is asked about the image and nothing else");
                    return Err(self.value(key("with"), what));
                }
                passed = Some(String::new());
                (self.verifying(&key, raw.mode, None)?, None)
            }
        };
        let recheck = defaults.recheck_of_all.or(raw.recheck).unwrap_or(defaults.recheck);
        Ok(Rule { name, pattern, mode, recheck, on_failure: raw.on_failure, validator: Some(index), with, passed })
    }

    fn verifying(&self, key: &dyn Fn(&str) -> String, mode: Option<Mode>, flow: Option<Flow>) -> Result<Mode, Error> {
        match (mode, flow) {
            (None, None | Some(Flow::Mutate)) => Ok(Mode::VerifyAndPin),
            (None, Some(Flow::InsecureValidateOnly)) => Ok(Mode::Verify),
            (Some(mode @ (Mode::Verify | Mode::VerifyAndPin | Mode::Detect)), None) => Ok(mode),
            (Some(_), Some(_)) => Err(self.value(key("with.mode"), "is there beside mode: keep one of them")),
            (Some(mode), None) => {
                let what = format!(
                    "{} asks no validator: remove `validator` and `with`, or write verify, verify-and-pin or detect",
                    mode.name()
                );
                Err(self.value(key("mode"), what))
            }
        }
    }
}

impl Rule {
    pub fn verifies(&self) -> bool {
        self.with.is_some() || self.passed.is_some()
    }
}
