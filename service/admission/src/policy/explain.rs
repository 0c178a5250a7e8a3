//! Explains to people how the policy treats one image.
//!
//! The explanation is made by the functions that a review uses, so explanation and review always agree.

use std::fmt::{self, Write as _};

use super::{Policy, RuleName};
use crate::config::{Action, Mode, NoMatch, Recheck, Roots};
use crate::text::printable;
use service_registry::verdicts::Class;
use service_registry::{Image, ReferenceError};

/// Maximum number of bytes of the image's text that are shown.
const IMAGE_BYTES_MAX: usize = 600;

/// The treatment of one image, with the reasons for it. The explanation is displayed as a few lines of text.
#[derive(Debug)]
pub struct Explanation {
    /// The image text as the caller wrote it.
    pub written: String,
    /// The image's components, or why the text is no image reference.
    pub image: Result<Image, ReferenceError>,
    /// The full image name that was matched against the patterns of rules.
    pub full_name: String,
    pub rule: String,
    decides: RuleName,
    approval: Option<bool>,
    no_match: NoMatch,
    /// The pattern or prefix of the rule that applies.
    pub pattern: String,
    pub why: String,
    /// All other rules that match the image, with their patterns; they are less specific.
    pub others: Vec<(String, String)>,
    /// The configuration key that exempts the namespace; `None` if the namespace is not exempt.
    pub exempt: Option<&'static str>,
    /// The validator and its demands as text; empty if there is no validator.
    pub validator: String,
    pub mode: Mode,
    pub recheck: Recheck,
    /// The actions on failures of the image by class; empty if the image cannot fail.
    pub on_failure: Vec<OnClass>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct OnClass {
    pub class: Class,
    pub action: Action,
    /// The configuration key that sets the action, or `built in`.
    pub origin: String,
}

pub(super) fn explain(policy: &Policy, written: &str, namespace: Option<&str>) -> Explanation {
    let image = Image::parse(written);
    let full_name = image.as_ref().map_or_else(|_| written.to_owned(), Image::full_name);
    let matching =
        policy.settings.rules.iter().enumerate().filter(|(index, rule)| policy.matches(*index, rule, &full_name));
    let mut others: Vec<_> =
        matching.map(|(index, rule)| (policy.rule_at(index), rule.pattern.as_str().to_owned())).collect();
    let (rule, pattern, why) = match policy.skip_prefix(written) {
        Some(index) => {
            let prefix = policy.skip_prefixes[index].clone();
            (
                RuleName::SkipPrefix(index),
                prefix,
                "the written text begins so, and prefixes come before rules".to_owned(),
            )
        }
        None => match policy.rule_of_text(written) {
            rule @ (RuleName::BuiltIn | RuleName::NoMatch) => (rule, "*".to_owned(), "no rule matches".to_owned()),
            rule => {
                others.retain(|(other, _)| *other != rule);
                let pattern = policy.pattern(rule).to_owned();
                let why = match others.len() {
                    0 => "the only rule that matches".to_owned(),
                    more => format!("the most specific of {} rules that match", more + 1),
                };
                (rule, pattern, why)
            }
        },
    };
    let mode = policy.mode(rule);
    let classes = match (policy.verifies(rule), mode) {
        _ if rule == RuleName::NoMatch || policy.approval(rule).is_some() => &[],
        (true, _) => Class::OF_SIGNATURES,
        (false, Mode::Skip) => &[],
        (false, _) => Class::OF_DIGESTS,
    };
    let on_failure = classes.iter().map(|&class| {
        let (action, origin) = policy.action_and_origin(rule, class);
        OnClass { class, action, origin }
    });
    let on_failure = on_failure.collect();
    let recheck = policy.recheck(rule);
    Explanation {
        written: written.to_owned(),
        image,
        full_name,
        rule: policy.name(rule),
        decides: rule,
        pattern,
        why,
        others: others.into_iter().map(|(rule, pattern)| (policy.name(rule), pattern)).collect(),
        exempt: namespace.and_then(|namespace| policy.exempts(Some(namespace))),
        validator: validator(policy, rule),
        approval: policy.approval(rule),
        no_match: policy.settings.no_match,
        mode: if policy.detects(rule) { Mode::Detect } else { mode },
        recheck,
        on_failure,
    }
}

fn validator(policy: &Policy, rule: RuleName) -> String {
    let name = policy.validator(rule);
    let Some(with) = policy.with(rule) else {
        let demands = policy.settings(rule).and_then(|settings| settings.passed.as_deref());
        return match (policy.approval(rule), demands) {
            (Some(_), _) => format!("`{name}` (static)"),
            (None, Some("")) => format!("`{name}` (another process)"),
            (None, Some(demands)) => format!("`{name}` (another process): {demands}"),
            (None, None) => String::new(),
        };
    };
    let roots = match &with.roots {
        Roots::All => "any of its trust roots".to_owned(),
        Roots::Named(names) => format!("trust root `{}`", names.join("`, `")),
    };
    let mut said = format!("`{name}` (cosign): {} signer(s), {roots}", with.threshold);
    if !with.required.is_empty() {
        let _ = write!(said, ", among them `{}`", with.required.join("`, `"));
    }
    if !with.transparency_log {
        said.push_str(", without transparency log");
    }
    for (key, value) in &with.annotations {
        let _ = write!(said, ", annotation {key}={value}");
    }
    for attestation in &with.attestations {
        let _ = write!(said, ", attestation {}", attestation.predicate_type);
    }
    said
}

impl Explanation {
    /// One sentence about the result for the image.
    pub fn outcome(&self) -> &'static str {
        let pinned = self.image.as_ref().is_ok_and(|image| image.digest.is_some());
        let verified = self.approval.is_none() && !self.validator.is_empty();
        match (self.decides, self.mode) {
            _ if self.exempt.is_some() => "let in: nothing in this namespace is looked at",
            (RuleName::SkipPrefix(_), _) => "left alone",
            (_, Mode::Detect) if self.image.is_err() => "reported: it is not an image reference",
            _ if self.image.is_err() => "fails with class misconfigured: it is not an image reference",
            (RuleName::NoMatch, mode) => match self.no_match {
                NoMatch::Deny if mode == Mode::Detect => "stays as it is, with a warning",
                NoMatch::Deny => "fails with class denied",
                NoMatch::Warn => "stays as it is, with a warning",
                NoMatch::Allow | NoMatch::Resolve => "left alone",
            },
            (_, mode) if self.approval == Some(false) => {
                if mode == Mode::Detect {
                    "stays as it is, with a warning"
                } else {
                    "fails with class denied"
                }
            }
            _ if self.approval == Some(true) => "left alone: its validator approves",
            (_, Mode::Detect) if verified => "is verified and stays as it is; a failure is a warning",
            (_, Mode::VerifyAndPin) if !pinned => "is verified, and gets the digest that was verified",
            (_, Mode::Verify | Mode::VerifyAndPin) => "is verified and stays as it is",
            _ if pinned => "left alone: it has its digest",
            (_, Mode::Skip) => "left alone",
            (_, Mode::Resolve) => "gets the digest that its registry has for it",
            (_, Mode::Detect) => "is looked up and stays as it is, with a warning",
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| printable(text, IMAGE_BYTES_MAX).into_owned();
        writeln!(out, "image:    {}", shown(&self.written))?;
        match &self.image {
            Ok(image) => {
                write!(out, "parsed:   host {}, repository {}", image.host, image.repository)?;
                match (&image.tag, &image.digest) {
                    (Some(tag), None) => write!(out, ", tag {tag}")?,
                    (None, None) => write!(out, ", tag latest (none is written)")?,
                    (Some(tag), Some(digest)) => write!(out, ", tag {tag}, digest {digest}")?,
                    (None, Some(digest)) => write!(out, ", digest {digest}")?,
                }
                writeln!(out)?;
            }
            Err(error) => writeln!(out, "parsed:   {}", shown(&error.to_string()))?,
        }
        writeln!(out, "matched:  {}", shown(&self.full_name))?;
        writeln!(out, "rule:     {} (`{}`): {}", shown(&self.rule), shown(&self.pattern), self.why)?;
        for (rule, pattern) in &self.others {
            writeln!(out, "          also matches: {} (`{}`)", shown(rule), shown(pattern))?;
        }
        if let Some(key) = self.exempt {
            writeln!(out, "exempt:   by {key}")?;
        }
        if !self.validator.is_empty() {
            writeln!(out, "asks:     {}", shown(&self.validator))?;
        }
        writeln!(out, "outcome:  {}", self.outcome())?;
        if self.mode != Mode::Skip {
            let recheck = match self.recheck {
                Recheck::Changed => "when an update changes it (changed)",
                Recheck::Always => "at every update (always)",
            };
            writeln!(out, "recheck:  {recheck}")?;
        }
        for OnClass { class, action, origin } in &self.on_failure {
            let action = name(*action);
            let detect = if self.mode == Mode::Detect { "; only a warning in mode detect" } else { "" };
            writeln!(out, "failure:  {class}: {action} ({origin}){detect}")?;
        }
        Ok(())
    }
}

fn name(action: Action) -> &'static str {
    match action {
        Action::Deny => "deny",
        Action::Allow => "allow",
        Action::Error => "error",
    }
}
