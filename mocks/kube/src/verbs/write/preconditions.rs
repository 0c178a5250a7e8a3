//! The preconditions of a write: the uid and the `resourceVersion` in the written object.

use http::Method;
use mock_objects::object;
use mock_objects::status::{Cause, Failure};
use mock_store::Version;
use serde_json::Value;

use crate::call::Call;
use crate::verbs::scaled;

/// The error for an update without a `resourceVersion`, for kinds that require one.
pub(super) fn unconditional(call: &Call, name: &str, value: &Value) -> Option<Failure> {
    let must = call.resource.rules.needs_revision;
    let says = !matches!(object::meta(value, "resourceVersion"), "" | "0");
    if !must || says || names_another(call, name, object::meta(value, "uid")) {
        return None;
    }
    let cause = Cause::invalid("metadata.resourceVersion", "0x0", "must be specified for an update");
    // The one `Invalid` that names the resource instead of the kind.
    Some(Failure::invalid(call.resource.about(name), &[cause]))
}

/// Whether a body names another uid than the stored object of this name has. The server reports the conflict of uids
/// before all other errors.
fn names_another(call: &Call, name: &str, uid: &str) -> bool {
    let current = call.cluster().get(&call.resource, call.namespace(), name);
    !uid.is_empty() && current.is_some_and(|current| *current.identity.uid != *uid)
}

pub(super) fn check_number(revision: &str) -> Result<(), Failure> {
    if revision.is_empty() || revision.parse::<u64>().is_ok() {
        return Ok(());
    }
    Err(Failure::plain(format!("strconv.ParseUint: parsing \"{revision}\": invalid syntax")))
}

/// Refuses an update that names the uid of another object, before all other checks.
pub(super) fn check_uid(value: &Value, current: &Version, call: &Call) -> Result<(), Failure> {
    let uid = object::meta(value, "uid");
    if uid.is_empty() || uid == &*current.identity.uid || is_patch(call) {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", current.identity.uid);
    Err(Failure::conflict(call.resource.about(&current.identity.name), &why))
}

/// Compares the `resourceVersion` of the new object with the stored `resourceVersion`; returns whether the client sent
/// one.
pub(super) fn fixed_revision(value: &Value, current: &Version, call: &Call) -> Result<bool, Failure> {
    let name = &*current.identity.name;
    // A scale without a revision refers to the current object.
    if call.method == Method::PUT
        && scaled::of(call).is_none()
        && let Some(failure) = unconditional(call, name, value)
    {
        return Err(failure);
    }
    let revision = object::meta(value, "resourceVersion");
    let is_named = !matches!(revision, "" | "0");
    if is_named {
        check_number(revision)?;
        if revision != current.revision.to_string() {
            return Err(Failure::stale(call.resource.about(name)));
        }
    }
    let uid = object::meta(value, "uid");
    if is_patch(call) && !uid.is_empty() && uid != &*current.identity.uid {
        let cause = Cause::invalid("metadata.uid", &format!("\"{uid}\""), "field is immutable");
        return Err(Failure::invalid(call.resource.about_kind(name), &[cause]));
    }
    Ok(is_named && !is_patch(call))
}

/// Whether the request is a patch. A patch without a revision is tried again; its result contains the revision of the
/// object that was patched.
pub(super) fn is_patch(call: &Call) -> bool {
    call.method == Method::PATCH
}
