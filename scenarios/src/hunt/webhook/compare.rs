//! The differences between answers, and what is a sign of a bug.
//!
//! Owns the masks, the parts of an answer that are compared, and how signs become one line for each cause. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use reports::hunt::{Sign, What};
use serde_json::Value;

use super::answer::{Answer, Given, general, plain, shortened, steady};
use super::{CONSISTENT, Condition, Shown};

/// Maximum number of masked parts and of signs that are kept.
const KEPT_MAX: usize = 100;

/// A part of an answer, or a check of one answer. The order is that of a page: the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Facet {
    Verdict,
    Warned,
    Refused,
    Writes,
    Exited,
    Patch,
    Again,
    Undone,
    Denial,
    Warnings,
}

impl Facet {
    fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Warned => "error as a warning",
            Self::Refused => "patch refused",
            Self::Writes => "writes on a dry run",
            Self::Exited => "exited",
            Self::Patch => "patch",
            Self::Again => "not idempotent",
            Self::Undone => "patch undone",
            Self::Denial => "reason of the denial",
            Self::Warnings => "warnings",
        }
    }
}

/// One question to one webhook, for signs and masks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// The number of the question to this webhook.
    pub(crate) number: usize,
    /// The path of the webhook.
    pub(crate) webhook: String,
    /// The question in words.
    pub(crate) question: String,
    /// The kind of the object, such as `Cache`.
    pub(crate) kind: String,
    /// The name of the object.
    pub(crate) name: String,
}

/// Parts of answers that differ on a quiet system.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    verdicts: BTreeSet<usize>,
    messages: BTreeSet<String>,
    warnings: BTreeSet<String>,
    places: BTreeSet<(String, String)>,
    masked: Vec<String>,
}

impl Mask {
    /// Learns from two answers to the same question on a quiet system.
    pub(crate) fn learn(&mut self, about: &About, one: &Answer, other: &Answer) {
        let webhook = &about.webhook;
        let (one, other) = match (one, other) {
            (Answer::Given(one), Answer::Given(other)) => (one, other),
            (Answer::Failed(_), Answer::Failed(_)) => return,
            _ => {
                self.verdicts.insert(about.number);
                return self.note(format!("{webhook}: {}: one of two quiet answers failed", about.question));
            }
        };
        if one.allowed != other.allowed {
            self.verdicts.insert(about.number);
            return self.note(format!("{webhook}: {}: the verdict", about.question));
        }
        if reasons_differ(one, other) && self.messages.insert(webhook.clone()) {
            self.note(format!("{webhook}: the reasons of denials"));
        }
        if warnings_differ(one, other) && self.warnings.insert(webhook.clone()) {
            self.note(format!("{webhook}: the warnings"));
        }
        for place in places(one, other) {
            if self.places.insert((webhook.clone(), general(&place))) {
                self.note(format!("{webhook}: the patch of {}", general(&place)));
            }
        }
    }

    fn note(&mut self, text: String) {
        if self.masked.len() < KEPT_MAX {
            self.masked.push(text);
        }
    }

    fn hides(&self, webhook: &str, place: &str) -> bool {
        self.places.contains(&(webhook.to_owned(), general(place)))
    }

    /// All masked parts, for a reader.
    pub(crate) fn masked(&self) -> &[String] {
        &self.masked
    }
}

/// The signs of a play, one for each cause.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    all: BTreeMap<(String, Facet), Cause>,
}

#[derive(Debug)]
struct Cause {
    sign: Sign,
    conditions: BTreeSet<Condition>,
    answers: u32,
    /// Whether the example is an object that was allowed although it was denied before.
    is_allowed: bool,
    story: Vec<String>,
}

impl Signs {
    /// Compares an answer with the quiet answer to the same question. Returns whether both could be compared.
    pub(crate) fn compare(
        &mut self,
        about: &About,
        quiet: &Answer,
        now: &Answer,
        condition: Condition,
        mask: &Mask,
    ) -> bool {
        let (Some(before), Some(after)) = (quiet.given(), now.given()) else { return false };
        if mask.verdicts.contains(&about.number) {
            return false;
        }
        let excused = condition.excuses_denials();
        let webhook = &about.webhook;
        let facet = match (before.allowed, after.allowed) {
            (false, true) => Some(Facet::Verdict),
            (true, false) => (!excused).then_some(Facet::Verdict),
            (false, false) => {
                let differs = reasons_differ(before, after) && !mask.messages.contains(webhook);
                (differs && !excused).then_some(Facet::Denial)
            }
            (true, true) => {
                let is_patch = places(before, after).iter().any(|place| !mask.hides(webhook, place));
                let is_warning = warnings_differ(before, after) && !mask.warnings.contains(webhook);
                if is_patch { Some(Facet::Patch) } else { (is_warning && !excused).then_some(Facet::Warnings) }
            }
        };
        let Some(facet) = facet else { return true };
        let was = match facet {
            Facet::Patch => patch(before, after, webhook, mask),
            _ => quiet.describe(),
        };
        let is = match facet {
            Facet::Patch => patch(after, before, webhook, mask),
            _ => now.describe(),
        };
        let happened = format!("{} it is {is}", condition.phrase());
        let expected = format!("asked alone on a quiet system it is {was}");
        self.add(about, facet, Some(condition), happened, expected, after.allowed && !before.allowed);
        true
    }

    /// Adds a sign that one answer shows by itself.
    pub(crate) fn found(&mut self, about: &About, facet: Facet, happened: String, expected: &str) {
        self.add(about, facet, None, happened, expected.to_owned(), false);
    }

    fn add(
        &mut self,
        about: &About,
        facet: Facet,
        condition: Option<Condition>,
        happened: String,
        expected: String,
        is_allowed: bool,
    ) {
        let key = (about.webhook.clone(), facet);
        if self.all.len() >= KEPT_MAX && !self.all.contains_key(&key) {
            return;
        }
        let sign = Sign {
            what: What::Answer,
            subject: CONSISTENT.to_owned(),
            object: Some(format!("{}: {}", about.webhook, about.question)),
            field: Some(format!("{} {}", about.webhook, facet.name())),
            happened,
            expected,
            most: None,
            value: None,
        };
        let line = || format!("{}: {}; {}", about.question, sign.happened, sign.expected);
        if let Some(cause) = self.all.get_mut(&key) {
            cause.answers += 1;
            cause.conditions.extend(condition);
            if cause.story.len() < STORY_MAX {
                cause.story.push(line());
            }
            if is_allowed && !cause.is_allowed {
                (cause.sign, cause.is_allowed) = (sign, true);
            }
            return;
        }
        let story = vec![line()];
        let conditions = condition.into_iter().collect();
        self.all.insert(key, Cause { sign, conditions, answers: 1, is_allowed, story });
    }

    /// The signs, the gravest first.
    pub(crate) fn shown(self) -> Vec<Shown> {
        let mut all: Vec<_> = self.all.into_iter().collect();
        all.sort_by_key(|((_, facet), _)| *facet);
        let one = |cause: Cause| Shown {
            sign: cause.sign,
            conditions: cause.conditions.into_iter().collect(),
            answers: cause.answers,
            story: cause.story,
        };
        all.into_iter().map(|(_, cause)| one(cause)).collect()
    }
}

/// Maximum number of answers in the story of a sign.
const STORY_MAX: usize = 12;

/// Checks that need only one quiet answer: a patch that cannot be applied, and an error that became a warning.
pub(crate) fn check(about: &About, answer: &Answer, signs: &mut Signs) {
    let Some(given) = answer.given() else { return };
    if let Some(why) = &given.unusable {
        let happened = format!("its patch cannot be applied ({})", shortened(why));
        signs.found(about, Facet::Refused, happened, "the API server refuses the request with an internal error");
    }
    let error = given.warnings.iter().find(|warning| is_error(warning, about));
    if let Some(warning) = error.filter(|_| given.allowed) {
        let happened = format!("the object is allowed, and a warning says: {}", shortened(warning));
        signs.found(about, Facet::Warned, happened, "an error of validation denies the request");
    }
}

/// The beginnings of the reasons of API errors, after kind and name of the object.
const ERRORS: [&str; 2] = ["invalid: ", "forbidden: "];

/// Whether a warning is the text of an API error about this object. Only code that lost an error writes such a warning.
fn is_error(warning: &str, about: &About) -> bool {
    let Some((kind, rest)) = warning.trim().split_once(" \"") else { return false };
    let Some((name, rest)) = rest.split_once("\" is ") else { return false };
    let is_refusal = ERRORS.iter().any(|error| rest.starts_with(error));
    let kind = kind.split('.').next().unwrap_or_default().to_lowercase();
    let own = about.kind.to_lowercase();
    let is_kind = kind == own || kind == format!("{own}s") || kind == format!("{own}es");
    is_refusal && is_kind && (name == about.name || name.is_empty())
}

/// The answer to a review of the result of a mutation, which must change nothing.
pub(crate) fn check_again(about: &About, again: &Answer, mask: &Mask, signs: &mut Signs) {
    let Some(given) = again.given().filter(|given| given.allowed) else { return };
    let changed = given.changes.iter().find(|(place, _)| !mask.hides(&about.webhook, place));
    if let Some((place, value)) = changed {
        let happened =
            format!("asked about its own result, it changes {place} again, to {}", shortened(&value.to_string()));
        signs.found(about, Facet::Again, happened, "a second call changes nothing");
    }
}

/// Two webhooks that never agree. `further` is the answer to a call after another webhook, and `last` the answer of the
/// other webhook to a call after that. A further call may complete what the other webhook added.
pub(crate) fn check_order(about: &About, further: &Answer, last: &Answer, mask: &Mask, signs: &mut Signs) {
    let allowed = |answer: &'_ Answer| answer.given().filter(|given| given.allowed).map(|given| given.changes.clone());
    let (Some(further), Some(last)) = (allowed(further), allowed(last)) else { return };
    let is_below = |place: &str, other: &str| {
        place == other || place.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
    };
    let undone = further.keys().find(|place| {
        let of_other = |other: &String| is_below(place, other) || is_below(other, place);
        !mask.hides(&about.webhook, place) && last.keys().any(of_other)
    });
    if let Some(place) = undone {
        let happened =
            format!("called again after another webhook, it changes {place}, and the other webhook changes it back");
        signs.found(about, Facet::Undone, happened, "a further call keeps the changes of other webhooks");
    }
}

fn reasons_differ(one: &Given, other: &Given) -> bool {
    !one.allowed && !other.allowed && (one.code != other.code || plain(&one.message) != plain(&other.message))
}

fn warnings_differ(one: &Given, other: &Given) -> bool {
    let all = |given: &Given| {
        let mut all: Vec<_> = given.warnings.iter().map(|warning| plain(warning)).collect();
        all.sort_unstable();
        all
    };
    all(one) != all(other)
}

/// The places that two patches change differently.
fn places(one: &Given, other: &Given) -> Vec<String> {
    let differs = |place: &String, value: &Value| other.changes.get(place).is_none_or(|known| !is_same(value, known));
    let mut places: Vec<String> =
        one.changes.iter().filter(|(place, value)| differs(place, value)).map(|(place, _)| place.clone()).collect();
    places.extend(other.changes.keys().filter(|place| !one.changes.contains_key(*place)).cloned());
    if one.unusable.is_some() != other.unusable.is_some() {
        places.push(String::new());
    }
    places
}

/// Whether two values are equal but for times and uids.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || (steady(&one.to_string()) == steady(&other.to_string()))
}

/// The first place at which a patch differs from another one, in words.
fn patch(of: &Given, other: &Given, webhook: &str, mask: &Mask) -> String {
    let place = places(of, other).into_iter().find(|place| !mask.hides(webhook, place)).unwrap_or_default();
    match of.changes.get(&place) {
        Some(value) => format!("patched: {place} = {}", shortened(&value.to_string())),
        None if of.unusable.is_some() => "patched in a way that cannot be applied".to_owned(),
        None => format!("not patched at {place}"),
    }
}

#[cfg(test)]
mod tests;
