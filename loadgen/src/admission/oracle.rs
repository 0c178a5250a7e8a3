//! The right answer to each review, and how a given answer differs from it. Pure: no I/O.
//!
//! In a right answer every image of the object is pinned to its digest in the user's own spelling, and nothing else is
//! changed. Images that were pinned before stay as they are. If an image does not exist, the answer is a denial; a
//! DELETE is allowed unchanged. If signatures are checked, an image that fails the check must be denied, whether the
//! object names it by tag or digest, and the denial must name the class of the failure. Images that an update of an
//! object leaves unchanged are not checked.

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
use crate::socket::WholeAnswer;

/// How a valid answer compares with the right one.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub allowed: bool,
    /// Whether the request was refused, which is right only because a registry has a fault.
    pub unavailable: bool,
    /// Whether the request was allowed with a locked image (in the webhook's digest lock file) although its tag has
    /// another digest now.
    pub moved: bool,
    /// How a locked image was pinned to another digest than the locked one; `None` if each locked image has its locked
    /// digest.
    pub unlocked: Option<String>,
    pub wrong: Option<Wrong>,
}

#[derive(Debug)]
pub(super) struct Wrong {
    /// Whether an object was allowed that must be denied, or that must be changed differently.
    pub allow: bool,
    pub why: String,
}

/// The known images, by reference.
pub(super) type Digests = BTreeMap<String, Image>;

pub(super) fn digests(images: &[Image]) -> Digests {
    images.iter().map(|image| (image.reference.clone(), image.clone())).collect()
}

/// The right answer to a review of this object (`None` for a DELETE), if `old` was allowed before.
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

/// Checks and judges the answer to a call that began at `begun`, by the facts that were true during the call.
pub(super) fn judge_in(
    truth: &Truth,
    template: &Template,
    begun: Instant,
    seen: WholeAnswer<'_>,
    uid: &[u8],
) -> Result<Judgement, Failure> {
    let status = seen.status;
    let checked = answer::check(seen, uid, template.mutating);
    if template.hostile {
        // An attack may be refused because of its own load, with any message; only allowing it can be wrong.
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
        // With this answer the webhook's failurePolicy decides about an existing object.
        Err(_) if status == 500 && template.updates && may_be_unavailable(truth, template, now) => Ok(UNAVAILABLE),
        Err(failure) => Err(failure),
    }
}

/// HTTP statuses by which a webhook sheds a request because it is too large, or because too many came at once.
const SHED: [u16; 2] = [413, 429];
/// The judgement of a refusal that is right because a registry has a fault.
const UNAVAILABLE: Judgement =
    Judgement { allowed: false, unavailable: true, moved: false, unlocked: None, wrong: None };

/// Whether an image of the object must be resolved and its registry has a fault.
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

/// Judges an answer that allows a tag which may have moved: the tag's present digest and a very recent one are right.
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
            // Without a lock, the present or the previous digest is right.
            if had && field.right != got {
                unlocked = Some(format!("{} became `{got}`, locked is `{}`", template.label, field.right));
                field.right = got.to_owned();
            }
            continue;
        }
        match truth.may_name(&field.written, digest, begun) {
            Some(true) => field.right = got.to_owned(),
            // The tag may have left the planned digest long ago.
            Some(false) if field.right == got => "a digest that the tag has now".clone_into(&mut field.right),
            _ => {}
        }
    }
    Ok(Judgement { allowed: true, moved, unlocked, wrong: compare(template, &images, &object), ..Judgement::default() })
}

/// Judges a well-formed answer; fails if its patch cannot be applied, which kube-apiserver treats as a failed call.
pub(super) fn judge(template: &Template, verdict: Verdict) -> Result<Judgement, Failure> {
    judge_by(template, &template.expected, verdict)
}

fn judge_by(template: &Template, right: &Expected, verdict: Verdict) -> Result<Judgement, Failure> {
    let label = &template.label;
    let Verdict { allowed, patch, message, .. } = verdict;
    if !allowed {
        let why = match right {
            Expected::Allow { .. } | Expected::Admit => Some("it is right to allow it".to_owned()),
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
        // Without a patch nothing can fail to apply, and the object need not be parsed.
        Expected::Admit | Expected::Any => match patch {
            Some(patch) => apply(template, Some(patch)).map(|_| None)?,
            None => None,
        },
        Expected::Allow { images } if is_exactly(patch.as_ref(), images) => None,
        Expected::Allow { images } => compare(template, images, &apply(template, patch)?),
    };
    Ok(Judgement { allowed, wrong, ..Judgement::default() })
}

/// Images that a denial does not name, or names with another class.
fn unnamed(refused: &[Refused], message: &str) -> Option<String> {
    let named = |refused: &&Refused| {
        let after = message.match_indices(&*refused.written).map(|(at, written)| &message[at + written.len()..]);
        let mut after = after.map(|rest| rest.trim_start_matches(['`', '"', ':', ' ']));
        after.any(|rest| rest.starts_with(refused.why.name()))
    };
    let Refused { written, why, .. } = refused.iter().find(|refused| refused.named && !named(refused))?;
    Some(format!("but not {written} as `{}`", why.name()))
}

/// Whether the patch has exactly one `replace` or `add` for each image that must change, or is absent if no image must
/// change. Nearly every answer has such a patch, and then nothing needs to be parsed or patched.
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
    // A container or image volume that the webhook added runs an image that the user did not request. This is the
    // gravest fault, so it is reported first.
    let grave = |at: &&String| ["ontainers/", "/volumes/"].iter().any(|list| format!("{at}/").contains(list));
    let worst = differences.iter().find(grave);
    let (allow, at) = (worst.is_some(), worst.or(differences.first())?);
    Some(Wrong { allow, why: format!("{label} was changed beyond its images: {at} is not what it was") })
}

/// JSON pointers to the fields in which both objects differ, in order.
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
