//! The explanation of a policy for one image, for people.
//!
//! Pure. It uses the very functions that a review uses, so that it cannot say something else.

use std::fmt;

use super::{Policy, RuleName};
use crate::admission::text::printable;
use crate::config::{Action, Mode, Recheck};
use crate::registry::{Image, ReferenceError};
use crate::verdicts::Class;

/// Bytes of the image that are shown.
const IMAGE_BYTES_MAX: usize = 600;

/// What would be done with one image, and why. Displays as a few lines of text.
#[derive(Debug)]
pub struct Explanation {
    /// The image as it was asked about.
    pub written: String,
    /// Its parts, or why it is no reference.
    pub image: Result<Image, ReferenceError>,
    /// What the patterns were matched against.
    pub full_name: String,
    /// What decides.
    pub rule: RuleName,
    /// Its pattern or prefix.
    pub pattern: String,
    /// Why it is this one.
    pub why: String,
    /// The other rules that match, with their patterns; they are less specific.
    pub others: Vec<(RuleName, String)>,
    /// What is done with such images.
    pub mode: Mode,
    /// When they are looked at.
    pub recheck: Recheck,
    /// What a failure does, by class; empty where nothing can fail.
    pub on_failure: Vec<OnClass>,
}

/// What a failure of one class does.
#[derive(Debug, PartialEq, Eq)]
pub struct OnClass {
    /// The class.
    pub class: Class,
    /// What it does to an object that is created.
    pub created: Action,
    /// What it does to an object that is updated.
    pub updated: Action,
    /// The configuration key that says so, or `built in`.
    pub origin: String,
}

pub(super) fn explain(policy: &Policy, written: &str) -> Explanation {
    let image = Image::parse(written);
    let full_name = image.as_ref().map_or_else(|_| written.to_owned(), Image::full_name);
    let mut others: Vec<_> = policy.rules.iter().enumerate().collect();
    others.retain(|(_, rule)| rule.pattern.matches(&full_name));
    let mut others: Vec<_> =
        others.into_iter().map(|(index, rule)| (RuleName::Rule(index), rule.pattern.as_str().to_owned())).collect();
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
            RuleName::BuiltIn => (RuleName::BuiltIn, "*".to_owned(), "no rule matches".to_owned()),
            rule => {
                others.retain(|(other, _)| *other != rule);
                let pattern = policy.settings(rule).map(|rule| rule.pattern.as_str().to_owned()).unwrap_or_default();
                let why = match others.len() {
                    0 => "the only rule that matches".to_owned(),
                    more => format!("the most specific of {} rules that match", more + 1),
                };
                (rule, pattern, why)
            }
        },
    };
    let mode = policy.mode(rule);
    let classes = if mode == Mode::Skip { &[][..] } else { &Class::ALL };
    let on_failure = classes.iter().map(|&class| {
        let (created, origin) = policy.action_and_origin(rule, class, false);
        OnClass { class, created, updated: policy.action(rule, class, true), origin }
    });
    let on_failure = on_failure.collect();
    let recheck = policy.recheck(rule);
    Explanation { written: written.to_owned(), image, full_name, rule, pattern, why, others, mode, recheck, on_failure }
}

impl Explanation {
    /// One sentence that says what happens.
    pub fn outcome(&self) -> &'static str {
        match (&self.image, self.rule, self.mode) {
            (_, RuleName::SkipPrefix(_), _) => "left alone",
            (Err(_), _, Mode::Detect) => "reported: it is not an image reference",
            (Err(_), _, _) => "fails with class misconfigured: it is not an image reference",
            (Ok(Image { digest: Some(_), .. }), _, _) => "left alone: it has its digest",
            (Ok(_), _, Mode::Skip) => "left alone",
            (Ok(_), _, Mode::Resolve) => "gets the digest that its registry has for it",
            (Ok(_), _, Mode::Detect) => "is looked up and stays as it is, with a warning",
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
        writeln!(out, "rule:     {} (`{}`): {}", self.rule, shown(&self.pattern), self.why)?;
        for (rule, pattern) in &self.others {
            writeln!(out, "          also matches: {rule} (`{}`)", shown(pattern))?;
        }
        writeln!(out, "outcome:  {}", self.outcome())?;
        if self.mode != Mode::Skip {
            let recheck = match self.recheck {
                Recheck::Changed => "when an update changes it (changed)",
                Recheck::Always => "at every update (always)",
            };
            writeln!(out, "recheck:  {recheck}")?;
        }
        for OnClass { class, created, updated, origin } in &self.on_failure {
            let (created, updated) = (name(*created), name(*updated));
            let on_update = if created == updated { String::new() } else { format!(", {updated} on update") };
            let detect = if self.mode == Mode::Detect { "; only a warning in mode detect" } else { "" };
            writeln!(out, "failure:  {class}: {created}{on_update} ({origin}){detect}")?;
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
