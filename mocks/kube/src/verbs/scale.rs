//! The scale subresource (autoscaling/v1 `Scale`).
//!
//! Owns the mapping between a `Scale` and its object. Mutating webhooks see and change the requested `Scale`.
//! Validating webhooks see the `Scale` of the resulting object, never the object. Clients can also apply a `Scale`.

mod owners;

use bytes::Bytes;
use http::{Method, StatusCode};
use mock_objects::catalogue::Scale;
use mock_objects::object;
use mock_objects::patch::{self, Patch};
use mock_objects::status::{About, Cause, Failure};
use serde_json::{Value, json};

use super::scaled::{API_VERSION, of, view};
use super::write::{self, TRIES};
use super::{apply, decode, read_body, shape};
use crate::admission::{Attempt, Chain, Operation};
use crate::answer::Answer;
use crate::body::Body;
use crate::call::Call;
use crate::payload::Payload;
use crate::represent::Renderer;

pub(super) async fn answer(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let scale = of(call).ok_or_else(Failure::no_such_path)?;
    let missing = || Failure::not_found(call.resource.about(name));
    let bytes = match call.method {
        Method::GET => Bytes::new(),
        Method::PUT | Method::PATCH => read_body(&call.app.limits, body).await?,
        _ => return Err(Failure::method_not_allowed()),
    };
    let current = async || call.find(name).await?.ok_or_else(missing);
    if call.method == Method::GET {
        return Ok(Answer::value(StatusCode::OK, &view(&current().await?.value(), scale)));
    }
    if call.content_type.starts_with(patch::APPLY) {
        apply::check_manager(call)?;
    }
    let asks = match asks(call, &bytes) {
        // Errors in a patch matter only if its object exists.
        Err(failure) if call.method == Method::PATCH && failure.code != StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            return Err(current().await.err().unwrap_or(failure));
        }
        asks => asks?,
    };
    let (renderer, chain) = (Renderer::plain(call), Chain::of(call));
    for _ in 0..TRIES {
        let current = current().await?;
        let stored = current.value();
        let old = owned_view(&stored, scale, call);
        let mut asked = requested_scale(call, &asks, &old)?;
        let attempt = Attempt { call, operation: Operation::Update, name, old: Some(&old) };
        let admitted = chain.mutate(&attempt, &mut asked).await?;
        if admitted.changed {
            read(&mut asked).map_err(|why| Failure::internal(why.to_string()))?;
        }
        let value = scaled(call, stored, &asked, scale)?;
        let Some(answer) = write::replace(call, &renderer, false, &current, value).await? else { continue };
        // The object as written, or as it would be after a dry run.
        let Body::Full(Some(written)) = &answer.body else { return Ok(answer) };
        let written: Value = serde_json::from_slice(written).map_err(|error| Failure::internal(error.to_string()))?;
        let warnings = asks.told.into_iter().chain(admitted.warnings).chain(answer.warnings).collect();
        return Ok(Answer { warnings, ..Answer::value(answer.status, &view(&written, scale)) });
    }
    Err(Failure::stale(call.resource.about(name)))
}

/// The content of a write to a scale subresource.
struct Asks {
    what: ScaleBody,
    /// Warnings about duplicate fields.
    told: Vec<String>,
}

/// Why a JSON value is not a `Scale`.
#[derive(Debug, thiserror::Error)]
enum NoScale {
    #[error("the body of the request is not an object")]
    NotAnObject,
    #[error("the {key} in the data ({is}) does not match the expected one ({wanted})")]
    Type { key: &'static str, is: String, wanted: &'static str },
    #[error(transparent)]
    Misfit(#[from] object::Misfit),
}

enum ScaleBody {
    /// The `Scale` in the body of a PUT.
    Given(Value),
    Patched(Patch),
    /// The applied `Scale`, whose fields the manager wants to own.
    Applied(Value),
}

fn asks(call: &Call, bytes: &Bytes) -> Result<Asks, Failure> {
    if call.method == Method::PUT {
        let mut given = decode(&call.content_type, bytes)?;
        read(&mut given).map_err(|why| Failure::bad_request(why.to_string()))?;
        check_place(call, &given)?;
        return Ok(Asks { what: ScaleBody::Given(given), told: Vec::new() });
    }
    let (patch, noted) = Patch::decode(&call.content_type, bytes, !call.resource.custom)?;
    let Patch::Apply(mut applied) = patch else {
        return Ok(Asks { what: ScaleBody::Patched(patch), told: Vec::new() });
    };
    patch::check_intent(&applied)?;
    let mut wrong: Vec<String> = match object::read_as("autoscaling.v1.Scale", &mut applied) {
        Ok(unknown) => unknown.into_iter().map(|path| format!(".{path}: field not declared in schema")).collect(),
        Err(why) => vec![why.to_string()],
    };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", "Scale")] {
        if applied[key] != wanted {
            wrong.push(format!("{key} is {} instead of {wanted}", applied[key]));
        }
    }
    if !wrong.is_empty() {
        return Err(patch::untyped(&applied, &wrong));
    }
    Ok(Asks { what: ScaleBody::Applied(applied), told: shape::applied_twice(call, noted)? })
}

/// The requested `Scale`, whose `managedFields` name the managers that own the number of replicas in the object.
fn requested_scale(call: &Call, asks: &Asks, old: &Value) -> Result<Value, Failure> {
    let mut by = write::manager(call, false);
    (by.api_version, by.subresource) = (API_VERSION, "scale");
    let catalogue = call.cluster().catalogue();
    // A `Scale` has no lists, so the rules of any type without lists apply to it.
    let rules = catalogue.by_full_name("configmaps").expect("configmaps are built in");
    let mut value = match &asks.what {
        ScaleBody::Given(given) => given.clone(),
        ScaleBody::Patched(patch) => patched(call, old, patch)?,
        ScaleBody::Applied(applied) => {
            let mut merged = old.clone();
            patch::server_side(&mut merged, applied, &by, rules)?;
            // A conflict comes first.
            if !matches!(object::meta(applied, "name"), "") {
                check_place(call, applied)?;
            }
            return Ok(merged);
        }
    };
    patch::track(&mut value, Some(old), &by, rules);
    Ok(value)
}

/// The `Scale` of an object, with the owners of the number of replicas in `managedFields`.
fn owned_view(value: &Value, scale: &Scale, call: &Call) -> Value {
    let mut view = view(value, scale);
    let owners = owners::of_scale(&value["metadata"]["managedFields"], &call.resource);
    if !owners.is_empty() {
        view["metadata"]["managedFields"] = Value::from(owners);
    }
    view
}

/// The current `Scale` after a patch.
fn patched(call: &Call, old: &Value, patch: &Patch) -> Result<Value, Failure> {
    let mut value = old.clone();
    patch.apply(&mut value, &call.resource)?;
    read(&mut value).map_err(|why| patch.made_nonsense(Failure::bad_request(why.to_string())))?;
    check_place(call, &value)?;
    Ok(value)
}

/// Decodes a JSON value as a `Scale`; the error says why the value is no `Scale`.
fn read(value: &mut Value) -> Result<(), NoScale> {
    let Some(given) = value.as_object_mut() else { return Err(NoScale::NotAnObject) };
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", "Scale")] {
        let is = given.get(key).and_then(Value::as_str).unwrap_or(wanted);
        if is != wanted {
            return Err(NoScale::Type { key, is: is.to_owned(), wanted });
        }
        given.insert(key.to_owned(), Value::from(wanted));
    }
    object::read_as("autoscaling.v1.Scale", value)?;
    let replicas = |value: &Value, part: &str| value[part]["replicas"].as_i64().unwrap_or(0);
    let spec = match replicas(value, "spec") {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    value["status"]["replicas"] = Value::from(replicas(value, "status"));
    value["spec"] = spec;
    // The real type holds the metadata by value, not by pointer, so it is always present.
    object::metadata(value);
    Ok(())
}

fn check_place(call: &Call, scale: &Value) -> Result<(), Failure> {
    let (name, given) = (call.target.name.as_deref().unwrap_or_default(), object::meta(scale, "name"));
    if given != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    object::check_namespace(&call.resource, object::meta(scale, "namespace"), call.namespace())
}

/// The object with the number of replicas, the preconditions and the field owners of the requested `Scale`.
fn scaled(call: &Call, mut value: Value, asked: &Value, scale: &Scale) -> Result<Value, Failure> {
    let replicas = asked["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let name = object::meta(&value, "name");
        let shown = replicas.to_string();
        return Err(if call.resource.custom {
            let cause = Cause::invalid(".spec.replicas", &shown, "should be a non-negative integer");
            Failure::invalid(call.resource.about_kind(name), &[cause])
        } else {
            let cause = Cause::invalid("spec.replicas", &shown, "must be greater than or equal to 0");
            Failure::invalid(About { group: "autoscaling", kind: "Scale", name }, &[cause])
        });
    }
    let (uid, given) = (object::meta(&value, "uid"), object::meta(asked, "uid"));
    if call.method == Method::PATCH && !call.resource.custom && !given.is_empty() && given != uid {
        let kind = format!("{}/scale", call.resource.plural);
        let about = About { group: &call.resource.group, kind: &kind, name: object::meta(&value, "name") };
        let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {uid}");
        return Err(Failure::conflict(about, &why));
    }
    // A patch of a custom resource may name any uid.
    let preconditions: &[&str] =
        if call.method == Method::PUT { &["resourceVersion", "uid"] } else { &["resourceVersion"] };
    for key in preconditions {
        object::metadata(&mut value).insert((*key).to_owned(), asked["metadata"][*key].clone());
    }
    set(&mut value, &scale.spec_replicas, json!(replicas));
    let (resource, api_version) = (&call.resource, &call.served().api_version);
    owners::to_object(&mut value, &asked["metadata"]["managedFields"], resource, api_version, scale);
    Ok(value)
}

/// Sets a value at a JSON pointer, and creates missing parent objects.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let mut at = value;
    for part in pointer.split('/').filter(|part| !part.is_empty()) {
        if !at.is_object() {
            *at = json!({});
        }
        let object = at.as_object_mut().expect("made an object above");
        at = object.entry(part).or_insert(Value::Null);
    }
    *at = new;
}
