//! The right answer to each review, and what is wrong about an answer. Pure.
//!
//! Right is: every image of the object pinned to its digest in the user's own spelling, images that were pinned already
//! untouched, and nothing else changed; a denial when an image does not exist; a DELETE allowed as it is. Where signatures are looked
//! at, an image that they do not let run is a reason to deny as well, by tag or by digest, and the denial has to name its class;
//! what an update leaves as it was is not looked at.

mod turned;

use std::collections::BTreeMap;
use std::time::Instant;

use go_rules::admission::Verdict;
use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::answer;
use super::expected::{Expected, Field, Refused};
use super::image::{Image, Refusal};
use super::objects::{self, Kind};
use super::review::Template;
use super::truth::Truth;
use crate::failure::Failure;
use crate::socket::Seen;

/// How a valid answer compares with the right one.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub allowed: bool,
    /// It was refused, which is right only because a registry is sick.
    pub unavailable: bool,
    /// It was let in with a locked image whose tag has moved.
    pub moved: bool,
    /// It was let in with another digest of such an image than the locked one; how.
    pub unlocked: Option<String>,
    pub wrong: Option<Wrong>,
}

#[derive(Debug)]
pub(super) struct Wrong {
    /// Something was let in that must not be, or not in this form.
    pub allow: bool,
    pub why: String,
}

/// Images by reference.
pub(super) type Digests = BTreeMap<String, Image>;

pub(super) fn digests(images: &[Image]) -> Digests {
    images.iter().map(|image| (image.reference.clone(), image.clone())).collect()
}

/// What is right for a review of this object (`None`: a DELETE), of which `old` was let in before.
pub(super) fn expected(kind: Kind, object: Option<&Value>, old: Option<&Value>, digests: &Digests) -> Expected {
    let mut images = Vec::new();
    let mut refused = Vec::new();
    for (pointer, written) in object.map(|object| objects::images(kind, object)).unwrap_or_default() {
        let stays = old.and_then(|old| old.pointer(&pointer)).and_then(Value::as_str) == Some(&written);
        let (reference, pinned) = written.split_once('@').map_or((&*written, false), |(name, _)| (name, true));
        let image = digests.get(reference);
        let right = match image.and_then(|image| image.digest.as_ref()) {
            _ if pinned => written.clone(),
            Some(digest) => format!("{written}@{digest}"),
            None => {
                refused.push(Refused { written, why: Refusal::Missing, named: false });
                continue;
            }
        };
        let verified = image.and_then(|image| image.verified).filter(|_| !stays);
        if let Some(Err(why)) = verified {
            refused.push(Refused { written: written.clone(), why, named: true });
        }
        images.push(Field { pointer, asked: !pinned || verified.is_some(), written, right });
    }
    if refused.is_empty() { Expected::Allow { images } } else { Expected::Deny { images, refused } }
}

/// Checks and judges an answer to a call that was begun then, by what is right while it came.
pub(super) fn judge_in(
    truth: &Truth,
    template: &Template,
    begun: Instant,
    seen: Seen<'_>,
    uid: &[u8],
) -> Result<Judgement, Failure> {
    let status = seen.status;
    let checked = answer::check(seen, uid, template.mutating);
    if template.hostile {
        // Its own crowd may be why it is refused, whatever is said then; only to let it in can be wrong.
        let is_refused = checked.as_ref().map_or(SHED.contains(&status), |verdict| !verdict.allowed);
        if is_refused {
            return Ok(UNAVAILABLE);
        }
    }
    if !truth.changed() {
        return checked.and_then(|verdict| judge(template, verdict));
    }
    let now = Instant::now();
    let right = |allowed| turned::expected(truth, template, begun, allowed);
    match checked {
        Ok(verdict) if verdict.allowed => match right(true) {
            Some(right) => judge_by(template, &right, verdict),
            None => judge_moved(truth, template, begun, verdict),
        },
        Ok(verdict) => {
            let right = right(false);
            let judgement = judge_by(template, right.as_ref().unwrap_or(&template.expected), verdict)?;
            let excused = judgement.wrong.is_some() && may_be_unavailable(truth, template, now);
            Ok(if excused { UNAVAILABLE } else { judgement })
        }
        // So that the webhook's failurePolicy decides about an object that exists.
        Err(_) if status == 500 && template.updates && may_be_unavailable(truth, template, now) => Ok(UNAVAILABLE),
        Err(failure) => Err(failure),
    }
}

/// How what is too large, or too much at one time, is sent away.
const SHED: [u16; 2] = [413, 429];
/// A refusal that a sick registry makes right.
const UNAVAILABLE: Judgement =
    Judgement { allowed: false, unavailable: true, moved: false, unlocked: None, wrong: None };

/// Whether an image of the object has to be resolved and cannot be.
fn may_be_unavailable(truth: &Truth, template: &Template, now: Instant) -> bool {
    let is_sick = |written: &str| truth.is_sick(written.split_once('@').map_or(written, |(name, _)| name), now);
    match &template.expected {
        Expected::Allow { images } => images.iter().any(|field| field.asked && is_sick(&field.written)),
        Expected::Deny { images, refused } => {
            let asked = images.iter().filter(|field| field.asked).map(|field| &*field.written);
            asked.chain(refused.iter().map(|refused| &*refused.written)).any(is_sick)
        }
        Expected::Admit | Expected::Refuse | Expected::Any => false,
    }
}

/// Judges an admission where a tag may have moved: what it has, and what it had a moment ago, is right.
fn judge_moved(truth: &Truth, template: &Template, begun: Instant, verdict: Verdict) -> Result<Judgement, Failure> {
    let Expected::Allow { images } = &template.expected else { return judge(template, verdict) };
    let object = apply(template, verdict.patch)?;
    let mut images = images.clone();
    let (mut moved, mut unlocked) = (false, None);
    for field in images.iter_mut().filter(|field| field.must_change()) {
        let Some(got) = object.pointer(&field.pointer).and_then(Value::as_str) else { continue };
        let digest = got.strip_prefix(&field.written).and_then(|rest| rest.strip_prefix('@')).unwrap_or_default();
        if let Some(had) = truth.locked(&field.written, digest) {
            moved = true;
            // A digest that it has or had is right for whoever has no lock.
            if had && field.right != got {
                unlocked = Some(format!("{} became `{got}`, locked is `{}`", template.label, field.right));
                field.right = got.to_owned();
            }
            continue;
        }
        match truth.may_name(&field.written, digest, begun) {
            Some(true) => field.right = got.to_owned(),
            // The digest that the plan knows may be one that the tag has left long ago.
            Some(false) if field.right == got => "a digest that the tag has now".clone_into(&mut field.right),
            _ => {}
        }
    }
    Ok(Judgement { allowed: true, moved, unlocked, wrong: compare(template, &images, &object), ..Judgement::default() })
}

/// Judges an answer that was well-formed. Fails when its patch does not apply, which kube-apiserver treats as a failed
/// call and not as a verdict.
pub(super) fn judge(template: &Template, verdict: Verdict) -> Result<Judgement, Failure> {
    judge_by(template, &template.expected, verdict)
}

fn judge_by(template: &Template, right: &Expected, verdict: Verdict) -> Result<Judgement, Failure> {
    let label = &template.label;
    let Verdict { allowed, patch, message, .. } = verdict;
    if !allowed {
        let why = match right {
            Expected::Allow { .. } | Expected::Admit => Some("allowing it is right".to_owned()),
            Expected::Deny { refused, .. } => unnamed(refused, &message),
            Expected::Refuse | Expected::Any => None,
        };
        let wrong =
            why.map(|why| Wrong { allow: false, why: format!("{label} was denied, {why}; the answer: {message}") });
        return Ok(Judgement { allowed, wrong, ..Judgement::default() });
    }
    let wrong = match right {
        Expected::Deny { refused, .. } => {
            apply(template, patch)?;
            let each = refused.iter().map(|refused| format!("{} {}", refused.written, refused.why.describe()));
            let each = each.collect::<Vec<_>>().join(", ");
            Some(Wrong { allow: true, why: format!("{label} was allowed, but {each}") })
        }
        Expected::Refuse => {
            apply(template, patch)?;
            Some(Wrong { allow: true, why: format!("{label} was allowed, but has `expect: denied`") })
        }
        // Without a patch there is nothing that could fail to apply, and the object need not be parsed.
        Expected::Admit | Expected::Any => match patch {
            Some(patch) => apply(template, Some(patch)).map(|_| None)?,
            None => None,
        },
        Expected::Allow { images } if is_exactly(patch.as_ref(), images) => None,
        Expected::Allow { images } => compare(template, images, &apply(template, patch)?),
    };
    Ok(Judgement { allowed, wrong, ..Judgement::default() })
}

/// What a denial leaves out, or calls by another class.
fn unnamed(refused: &[Refused], message: &str) -> Option<String> {
    let named = |refused: &&Refused| {
        let after = message.match_indices(&*refused.written).map(|(at, written)| &message[at + written.len()..]);
        let mut after = after.map(|rest| rest.trim_start_matches(['`', '"', ':', ' ']));
        after.any(|rest| rest.starts_with(refused.why.name()))
    };
    let Refused { written, why, .. } = refused.iter().find(|refused| refused.named && !named(refused))?;
    Some(format!("but not {written} as `{}`", why.name()))
}

/// Whether the patch consists of one plain write for each image that must change; none where none must. Nearly every answer
/// under load does, and then nothing has to be parsed and patched.
fn is_exactly(patch: Option<&Patch>, images: &[Field]) -> bool {
    let patch = patch.map_or(&[][..], |patch| &patch.0);
    let to_change = || images.iter().filter(|field| field.must_change());
    let writes = |operation: &PatchOperation, field: &Field| {
        let (path, value) = match operation {
            PatchOperation::Replace(op) => (&op.path, &op.value),
            // On an existing member `add` replaces (RFC 6902, section 4.1).
            PatchOperation::Add(op) => (&op.path, &op.value),
            _ => return false,
        };
        path.as_str() == field.pointer && value.as_str() == Some(&field.right)
    };
    patch.len() == to_change().count() && to_change().all(|field| patch.iter().any(|op| writes(op, field)))
}

fn apply(template: &Template, patch: Option<Patch>) -> Result<Value, Failure> {
    let mut object = template.object();
    let Some(patch) = patch else { return Ok(object) };
    if object.is_null() && !patch.0.is_empty() {
        return Err(Failure::invalid(format!(
            "{}: a patch, but the request carries no object to patch",
            template.label
        )));
    }
    json_patch::patch(&mut object, &patch.0)
        .map_err(|error| Failure::invalid(format!("{}: the patch does not apply: {error}", template.label)))?;
    Ok(object)
}

fn compare(template: &Template, images: &[Field], got: &Value) -> Option<Wrong> {
    let label = &template.label;
    for Field { pointer, written, right, .. } in images {
        let image = got.pointer(pointer).and_then(Value::as_str);
        if image != Some(right) {
            let now = image.unwrap_or("nothing");
            let why = if image == Some(written) {
                format!("{label} was allowed without the pin: {pointer} is still `{now}`, right is `{right}`")
            } else {
                format!("{label} was allowed with another image: {pointer} became `{now}`, right is `{right}`")
            };
            return Some(Wrong { allow: true, why });
        }
    }
    let mut right = template.object();
    for field in images {
        if let Some(place) = right.pointer_mut(&field.pointer) {
            *place = Value::String(field.right.clone());
        }
    }
    let mut differences = Vec::new();
    differ(&right, got, String::new(), &mut differences);
    // A container or image volume that the webhook added runs an image nobody asked for. Nothing is worse, so it is told first.
    let grave = |at: &&String| ["ontainers/", "/volumes/"].iter().any(|list| format!("{at}/").contains(list));
    let worst = differences.iter().find(grave);
    let (allow, at) = (worst.is_some(), worst.or(differences.first())?);
    Some(Wrong { allow, why: format!("{label} was changed beyond its images: {at} is not what it was") })
}

/// JSON pointers to the places where the two differ, in order.
fn differ(right: &Value, got: &Value, at: String, found: &mut Vec<String>) {
    match (right, got) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => differ(x, y, format!("{at}/{key}"), found),
                    _ => found.push(format!("{at}/{key}")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                differ(x, y, format!("{at}/{i}"), found);
            }
            if a.len() != b.len() {
                found.push(format!("{at}/{}", a.len().min(b.len())));
            }
        }
        (a, b) if a != b => found.push(at),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
