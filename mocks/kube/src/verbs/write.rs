//! The verbs `create` and `update`, and the operations of writes that other verbs use.
//!
//! Owns the order of operations in a write: decode, check, merge with the stored object, validate, commit. If another
//! client writes the object first, a write without a `resourceVersion` is tried again; a write with a `resourceVersion`
//! fails as a conflict.

mod preconditions;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use mock_objects::kinds::{Meaning, SubresourceFields};
use mock_objects::patch;
use mock_objects::status::{About, Failure};
use mock_objects::{convert, defaults, object};
use mock_store::{Expect, Refused, Version};
use serde_json::{Value, json};

use super::shape::Twice;
use super::{decode, decode_noting, finish, read_body, scaled, shape};
use crate::addresses;
use crate::admission::{self, Admitted, Attempt, Chain, Operation};
use crate::answer::Answer;
use crate::audit::Said;
use crate::authorization::program;
use crate::call::Call;
use crate::payload::Payload;
use crate::represent::Renderer;
use crate::webhooks::check_configuration;
use preconditions::{check_number, check_uid, fixed_revision, is_patch, unconditional};

/// Maximum number of attempts of a write without a `resourceVersion` while other clients write the same object.
pub(super) const TRIES: usize = 16;

pub(super) async fn create(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let (mut value, twice) = decode_noting(&call.content_type, &bytes)?;
    object::check_type(&mut value, &call.resource, call.served())?;
    let told = shape::prune(call, &mut value, &twice)?;
    Ok(shape::tell(create_object(call, &renderer, value).await?, told))
}

/// Creates `value`, which has no unknown fields; the answer is 201. The order is as in a real server: mutating webhooks
/// see the sent object with its defaults; the server checks name, uid and validity; validating webhooks see the valid
/// object; the store checks whether the name is free.
pub(super) async fn create_object(call: &Call, renderer: &Renderer, mut value: Value) -> Result<Answer, Failure> {
    let (resource, now) = (&call.resource, call.cluster().wall.now());
    object::check_type(&mut value, resource, call.served())?;
    shape::fill(call, &mut value)?;
    object::conform(&mut value, resource)?;
    object::check_namespace(resource, object::meta(&value, "namespace"), call.namespace())?;
    check_namespace_takes_content(call, object::meta(&value, "name"))?;
    object::begin_create(&mut value, resource, call.served(), call.namespace())?;
    defaults::decoded(&mut value, resource, now);
    note_user(call, &mut value);
    track_new(call, &mut value);
    let chain = Chain::of(call);
    let admitted = mutate_new(call, &chain, &mut value).await?;
    if admitted.changed {
        // A webhook's result must pass the same checks as a client's object.
        object::begin_create(&mut value, resource, call.served(), call.namespace())?;
        defaults::decoded(&mut value, resource, now);
    }
    // The sent status is gone, and a real server fills in a default of the status when it reads the object.
    shape::fill(call, &mut value)?;
    to_storage(call, &mut value);
    let generated = object::meta(&value, "name").is_empty();
    for _ in 0..TRIES {
        // Only a generated name may be tried again.
        let mut candidate = if generated { value.clone() } else { std::mem::take(&mut value) };
        let name = object::finish_create(&mut candidate, resource, &call.cluster().fresh(), now)?;
        defaults::prepared(&mut candidate, resource);
        let _addresses = give_addresses(call, &mut candidate)?;
        let mut warnings = admitted.warnings.clone();
        warnings.extend(validate(call, &candidate, None)?);
        check_definition(call, &candidate)?;
        warnings.extend(ask_validating(call, &chain, Operation::Create, &name, &candidate, None).await?);
        let attempt = Attempt { call, operation: Operation::Create, name: &name, old: None };
        let _quota = admission::conclude(&attempt, &candidate)?;
        if !call.query.dry_run {
            // A dry run does not reach the store, which otherwise makes this check.
            object::check_new(&candidate)?;
        }
        let beside = !object::meta(&candidate, "generateName").is_empty();
        let taken = || match resource.about(&name) {
            about if beside && resource.mirrors => Failure::not_generated(About { group: "", ..about }),
            about if beside => Failure::not_generated(about),
            about => Failure::already_exists(about),
        };
        let made = |body: Bytes| Answer {
            warnings: warnings.clone(),
            said: Some(Said::made(&name)),
            ..Answer::json(StatusCode::CREATED, body)
        };
        if call.cluster().get(resource, call.namespace(), &name).is_some() {
            if generated {
                continue;
            }
            return Err(taken());
        }
        if call.query.dry_run {
            return Ok(made(renderer.value(&call.rehearsed(candidate).await?)));
        }
        if resource.is_definition() {
            call.cluster().define(&candidate)?;
        }
        match call.put(Expect::Absent, candidate).await? {
            Ok(version) => return Ok(made(renderer.object(&version)).of(version.revision)),
            Err(_) if generated => {}
            Err(_) => return Err(taken()),
        }
    }
    Err(Failure::internal("no free name could be generated"))
}

pub(super) async fn update(call: &Call, body: Payload, status_only: bool) -> Result<Answer, Failure> {
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let (mut value, twice) = decode_noting(&call.content_type, &bytes)?;
    let name = call.target.name.as_deref().unwrap_or_default();
    if let Err(failure) = object::check_type(&mut value, &call.resource, call.served()) {
        // For a custom resource the kind is checked with the content: after existence and revision.
        if failure.code != StatusCode::UNPROCESSABLE_ENTITY {
            return Err(failure);
        }
        let exists = call.cluster().get(&call.resource, call.namespace(), name).is_some();
        let first = if exists {
            unconditional(call, name, &value)
        } else {
            Some(Failure::not_found(call.resource.about(name)))
        };
        return Err(first.unwrap_or(failure));
    }
    let told = shape::prune(call, &mut value, &twice)?;
    shape::fill(call, &mut value)?;
    object::conform(&mut value, &call.resource)?;
    let given = object::meta(&value, "name").to_owned();
    if given != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    object::check_namespace(&call.resource, object::meta(&value, "namespace"), call.namespace())?;
    if call.cluster().get(&call.resource, call.namespace(), name).is_none() && !status_only && part(call).is_none() {
        let uid = object::meta(&value, "uid");
        if !uid.is_empty() && call.resource.rules.created_by_update {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Failure::conflict(call.resource.about(name), &why));
        }
        if !uid.is_empty() {
            return Err(Failure::not_found(call.resource.about(name)));
        }
        if call.resource.rules.created_by_update {
            check_number(object::meta(&value, "resourceVersion"))?;
            // There is no stored object for this revision, and the real server ignores it.
            object::metadata(&mut value).remove("resourceVersion");
            return Ok(shape::tell(create_object(call, &renderer, value).await?, told));
        }
    } else if (status_only || part(call).is_some())
        && call.cluster().get(&call.resource, call.namespace(), name).is_none()
    {
        return Err(Failure::not_found(call.resource.about(name)));
    }
    // Decoded again only after a lost race, which is rare: keeping a copy would cost every update.
    let mut first = Some(value);
    let read_again = || {
        let (mut value, _) = decode_noting(&call.content_type, &bytes)?;
        object::check_type(&mut value, &call.resource, call.served())?;
        shape::prune(call, &mut value, &Twice::default())?;
        shape::fill(call, &mut value)?;
        object::conform(&mut value, &call.resource)?;
        Ok(value)
    };
    let next = |_: &Version| first.take().map_or_else(read_again, Ok);
    Ok(shape::tell(change(call, &renderer, status_only, next).await?, told))
}

/// `PUT namespaces/NAME/finalize`: replaces `spec.finalizers`.
pub(super) async fn finalize(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let renderer = Renderer::negotiate(call)?;
    let bytes = read_body(&call.app.limits, body).await?;
    let value = decode(&call.content_type, &bytes)?;
    let finalizers = value.pointer("/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
    change(call, &renderer, false, |current| {
        let mut next = current.value();
        if let Some(spec) = next.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("finalizers".to_owned(), finalizers.clone());
        }
        Ok(next)
    })
    .await
}

/// Reads the object, lets `next` make the new version, and commits it.
pub(super) async fn change(
    call: &Call,
    renderer: &Renderer,
    status_only: bool,
    mut next: impl FnMut(&Version) -> Result<Value, Failure> + Send,
) -> Result<Answer, Failure> {
    let resource = &call.resource;
    let name = call.target.name.as_deref().unwrap_or_default();
    for _ in 0..TRIES {
        let current = call.find(name).await?.ok_or_else(|| Failure::not_found(resource.about(name)))?;
        let value = next(&current)?;
        if let Some(answer) = replace(call, renderer, status_only, &current, value).await? {
            return Ok(answer);
        }
    }
    Err(Failure::stale(resource.about(name)))
}

/// Commits a new version of `current`. `None` means that another client wrote the object first; the caller may try
/// again. Mutating webhooks see the sent object. Validating webhooks see the object to be stored, and only if it is
/// valid.
pub(super) async fn replace(
    call: &Call,
    renderer: &Renderer,
    status_only: bool,
    current: &Version,
    mut value: Value,
) -> Result<Option<Answer>, Failure> {
    let resource = &call.resource;
    let name = call.target.name.as_deref().unwrap_or_default();
    check_uid(&value, current, call)?;
    let stored = current.value();
    let old = refilled(call, &stored);
    to_storage(call, &mut value);
    fill_changed(&mut value, call, status_only);
    let chain = Chain::of(call);
    // The mutating ones have changed the `Scale` already, before it became a part of the object.
    let is_scale = scaled::of(call).is_some();
    let attempt = Attempt { call, operation: Operation::Update, name, old: Some(&old) };
    let asks = !is_scale && chain.changes(&attempt, &value);
    let mut warnings = Vec::new();
    if asks {
        // Boxed, because every write reserves the room and few call a webhook.
        warnings = Box::pin(mutate_changed(call, &chain, status_only, &mut value, &old)).await?;
    } else {
        admission::complete(&attempt, &mut value)?;
    }
    let fixed = fixed_revision(&value, current, call)?;
    succeed(&mut value, &old, call, status_only);
    let _addresses = give_addresses(call, &mut value)?;
    if !asks && !is_scale {
        track(call, &mut value, Some(&old), status_only);
    }
    warnings.extend(validate(call, &value, Some(&old))?);
    if !status_only && value["spec"] != old["spec"] {
        check_definition(call, &value)?;
    }
    warnings.extend(ask_validating(call, &chain, Operation::Update, name, &value, Some(&old)).await?);
    let _quota = admission::conclude(&attempt, &value)?;
    let done = |body: Bytes| Answer { warnings: warnings.clone(), ..ok(body) };
    if call.query.dry_run {
        return Ok(Some(done(renderer.value(&call.rehearsed(value).await?))));
    }
    // Defaults that are only shown become stored.
    if value == stored && !call.migrates(current) {
        return Ok(Some(done(renderer.object(current))));
    }
    if object::is_deleting(&value) && finish::is_due(&value, resource) {
        // The last finalizer is gone. The object is deleted as it was: the event shows its stored state, the answer the
        // requested state under the old revision.
        match call.cluster().remove(current, resource, call.last(current, old.into_owned())) {
            Ok(_) => return Ok(Some(done(renderer.value(&value)))),
            Err(_) if !fixed => return Ok(None),
            Err(Refused::Absent) => return Err(Failure::not_found(resource.about(name))),
            Err(_) => return Err(Failure::stale(resource.about(name))),
        }
    }
    match commit(call, current, value).await? {
        Ok(version) => Ok(Some(done(renderer.object(&version)).of(version.revision))),
        Err(_) if !fixed => Ok(None),
        Err(Refused::Absent) => Err(Failure::not_found(resource.about(name))),
        Err(_) => Err(Failure::stale(resource.about(name))),
    }
}

/// Assigns addresses to a service; callers keep the returned reservation until the commit.
fn give_addresses<'a>(call: &'a Call, value: &mut Value) -> Result<Option<impl Sized + use<'a>>, Failure> {
    if !addresses::concerns(&call.resource) {
        return Ok(None);
    }
    let services = || {
        let id = call.resource.id;
        let page = call.cluster().read(|store| store.list(id, None, store.revision(), None, usize::MAX, |_| true));
        page.map(|page| page.items).unwrap_or_default()
    };
    call.cluster().addresses.give(services, &call.resource, value).map(Some)
}

/// Writes the caller into a `CertificateSigningRequest`, in place of the user that the client wrote.
fn note_user(call: &Call, value: &mut Value) {
    let spec = value.get_mut("spec").and_then(Value::as_object_mut);
    let Some(spec) = spec.filter(|_| call.resource.rules.meaning == Meaning::CertificateRequest) else { return };
    let info = call.who.info();
    for key in ["username", "uid", "groups", "extra"] {
        match info.get(key).filter(|known| known.as_str() != Some("")) {
            Some(known) => spec.insert(key.to_owned(), known.clone()),
            None => spec.remove(key),
        };
    }
}

/// Lets mutating webhooks change an object before its creation.
async fn mutate_new(call: &Call, chain: &Chain, value: &mut Value) -> Result<Admitted, Failure> {
    let name = object::meta(value, "name").to_owned();
    chain.mutate(&Attempt { call, operation: Operation::Create, name: &name, old: None }, value).await
}

/// Lets mutating webhooks change an object before an update; returns their warnings. The owners of fields are recorded
/// before the webhooks are called, so that the webhooks' changes have no owner.
async fn mutate_changed(
    call: &Call,
    chain: &Chain,
    status_only: bool,
    value: &mut Value,
    old: &Value,
) -> Result<Vec<String>, Failure> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let mut owned = value.clone();
    succeed(&mut owned, old, call, status_only);
    track(call, &mut owned, Some(old), status_only);
    match owned["metadata"].get_mut("managedFields").map(Value::take) {
        Some(owners) => object::metadata(value).insert("managedFields".to_owned(), owners),
        None => object::metadata(value).remove("managedFields"),
    };
    let old = if converts(call) { Cow::Owned(shown(call, old)) } else { Cow::Borrowed(old) };
    show(call, value);
    let attempt = Attempt { call, operation: Operation::Update, name, old: Some(&old) };
    let admitted = chain.mutate(&attempt, value).await?;
    to_storage(call, value);
    Ok(admitted.warnings)
}

/// Lets validating webhooks refuse the object to be stored; returns their warnings. Webhooks see the object in the
/// requested version; for the scale subresource, they see the `Scale`.
async fn ask_validating(
    call: &Call,
    chain: &Chain,
    operation: Operation,
    name: &str,
    value: &Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Failure> {
    let attempt = Attempt { call, operation, name, old };
    admission::check(&attempt, value)?;
    if !chain.validates() {
        return Ok(Vec::new());
    }
    let scale = scaled::of(call);
    let seen = |value| match scale {
        Some(scale) => Cow::Owned(scaled::view(value, scale)),
        None if converts(call) => Cow::Owned(shown(call, value)),
        None => Cow::Borrowed(value),
    };
    let (shown, old) = (seen(value), old.map(seen));
    chain.validate(&Attempt { call, operation, name, old: old.as_deref() }, &shown).await
}

/// Fills in the defaults of an updated object.
fn fill_changed(value: &mut Value, call: &Call, status_only: bool) {
    let resource = &call.resource;
    if status_only {
        defaults::on_status(value, resource);
    } else {
        defaults::on_update(value, resource, call.cluster().wall.now());
    }
}

/// Completes the new version of an object: copies the immutable fields of `old`, and sets the fields that only the
/// server sets.
fn succeed(value: &mut Value, old: &Value, call: &Call, status_only: bool) {
    let (resource, stored) = (&call.resource, call.resource.storage_version());
    let part = part(call).map(|part| (part, value.clone()));
    object::carry_over(value, old, resource, stored, status_only);
    if let Some((part, sent)) = part {
        let owners = value["metadata"].get_mut("managedFields").map(Value::take);
        old.clone_into(value);
        if let Some(owners) = owners {
            object::metadata(value).insert("managedFields".to_owned(), owners);
        }
        (part.write)(value, &sent);
    }
    // After the defaults, because ports are identified by their protocols.
    if addresses::concerns(resource) {
        addresses::carry_over(value, old);
    }
    // Only that subresource writes the spec.
    if resource.has("finalize") && call.target.subresource.as_deref() != Some("finalize") {
        value["spec"] = old["spec"].clone();
    }
    // Approved is the request that was made.
    if resource.rules.meaning == Meaning::CertificateRequest {
        value["spec"] = old["spec"].clone();
    }
    object::count_generation(value, old, resource, stored, status_only);
}

/// The stored object with defaults that its definition got later.
fn refilled<'v>(call: &Call, stored: &'v Value) -> Cow<'v, Value> {
    if !call.resource.late_defaults {
        return Cow::Borrowed(stored);
    }
    let mut value = stored.clone();
    convert::refill(&mut value, &call.resource, call.resource.stored_api_version());
    Cow::Owned(value)
}

/// The fields of the object that the request's subresource writes; `None` if the request writes the whole object.
fn part(call: &Call) -> Option<&'static SubresourceFields> {
    let subresource = call.target.subresource.as_deref()?;
    call.resource.rules.part(Some(subresource))
}

/// Whether the requested version differs from the stored version.
fn converts(call: &Call) -> bool {
    call.resource.mirrors || call.served().name != call.resource.storage
}

/// The field manager for `managedFields`; by default, the name of the client program.
pub(super) fn manager(call: &Call, status_only: bool) -> patch::Manager<'_> {
    patch::Manager {
        name: call.query.field_manager.as_deref().unwrap_or_else(|| program(&call.user_agent)),
        force: call.query.force,
        api_version: &call.served().api_version,
        subresource: match call.target.subresource.as_deref() {
            _ if status_only => "status",
            Some(subresource) if part(call).is_some() => subresource,
            _ => "",
        },
        now: call.cluster().wall.now(),
    }
}

/// Records the owners of fields in a new object.
fn track_new(call: &Call, value: &mut Value) {
    if !converts(call) {
        return track(call, value, None, false);
    }
    to_storage(call, value);
    track(call, value, None, false);
    show(call, value);
}

/// Records the owners of fields in an object to be stored. For an apply, the owners are already recorded.
fn track(call: &Call, value: &mut Value, old: Option<&Value>, status_only: bool) {
    let applies = is_patch(call) && call.content_type.starts_with(patch::APPLY);
    if applies {
        return;
    }
    let by = manager(call, status_only);
    let Some(bare) = &call.resource.rules.bare else { return patch::track(value, old, &by, &call.resource) };
    // Fields are named as in the version in which they were written, and fields that no client set have no owner.
    let set = |mut value: Value| {
        show(call, &mut value);
        (bare.unfill)(&mut value);
        value
    };
    let old = old.cloned().map(set);
    *value = set(value.take());
    patch::track(value, old.as_ref(), &by, &call.resource);
    to_storage(call, value);
    (bare.fill)(value);
}

async fn commit(call: &Call, current: &Version, value: Value) -> Result<Result<Arc<Version>, Refused>, Failure> {
    if !call.resource.is_definition() {
        return call.put(Expect::Revision(current.revision), value).await;
    }
    let name = object::meta(&value, "name").to_owned();
    // A change of labels alone does not change how objects are served.
    let changes = value["spec"] != current.value()["spec"];
    // Validated before.
    let _ = call.cluster().define(&value);
    let committed = call.put(Expect::Revision(current.revision), value).await?;
    if changes && let Ok(version) = &committed {
        call.cluster().redefined(&name, version.revision);
    }
    Ok(committed)
}

fn check_definition(call: &Call, value: &Value) -> Result<(), Failure> {
    if !call.resource.is_definition() {
        return Ok(());
    }
    let about = call.resource.about_kind(object::meta(value, "name"));
    mock_objects::catalogue::definition(value).map(|_| ()).map_err(|causes| Failure::invalid(about, &causes))
}

/// Refuses an invalid object; returns warnings.
fn validate(call: &Call, value: &Value, old: Option<&Value>) -> Result<Vec<String>, Failure> {
    let resource = &call.resource;
    let name = object::meta(value, "name");
    let mut causes = object::check_name(value, resource);
    causes.extend(object::check_content(value, old, resource));
    shape::check_depth(value)?;
    let of_schema = shape::check(call, value, old);
    let verdict = shape::judge(call, value, old, &of_schema);
    causes.extend(of_schema);
    causes.extend(verdict.causes);
    causes.extend(check_configuration(value, resource));
    causes.extend(crate::signing::check(value, resource));
    if let Some(old) = old {
        match part(call) {
            Some(part) => (part.check)(value, old, &mut causes),
            None => causes.extend(object::check_update(value, old, resource)),
        }
        causes.extend(object::check_finalizers_of_deleted(value, old));
    }
    if !causes.is_empty() {
        return Err(Failure::invalid(resource.about_kind(name), &causes));
    }
    object::check_size(value, resource)?;
    Ok(verdict.warnings)
}

/// Refuses a new object if its namespace does not exist or is being deleted.
fn check_namespace_takes_content(call: &Call, new: &str) -> Result<(), Failure> {
    if !call.resource.namespaced {
        return Ok(());
    }
    let catalogue = call.cluster().catalogue();
    let namespaces = catalogue.by_full_name("namespaces").expect("namespaces are built in");
    let name = call.namespace();
    let Some(namespace) = call.cluster().get(namespaces, "", name) else {
        return Err(Failure::not_found(namespaces.about(name)));
    };
    if namespace.facts().finalizing {
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let mut failure = Failure::forbidden(call.resource.about(new), &why);
        if let Some(details) = &mut failure.details {
            let message = format!("namespace {name} is being terminated");
            let cause = json!({"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"});
            details["causes"] = json!([cause]);
        }
        return Err(failure);
    }
    Ok(())
}

/// Converts an object into the stored version.
pub(super) fn to_storage(call: &Call, value: &mut Value) {
    convert::to_stored(value, &call.resource);
}

pub(super) fn from_storage(call: &Call, current: &Version) -> Value {
    let mut value = current.value();
    show(call, &mut value);
    value
}

/// Converts a stored object into the requested version.
pub(super) fn show(call: &Call, value: &mut Value) {
    convert::from_stored(value, &call.resource, &call.served().api_version);
}

/// A stored object in the requested version.
fn shown(call: &Call, value: &Value) -> Value {
    let mut value = value.clone();
    show(call, &mut value);
    value
}

/// An answer with the status 200 and these bytes as JSON.
pub(super) fn ok(bytes: Bytes) -> Answer {
    Answer::json(StatusCode::OK, bytes)
}
