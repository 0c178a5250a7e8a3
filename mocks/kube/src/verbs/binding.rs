//! `POST pods/NAME/binding`, with which a scheduler assigns a node, and the older request `POST bindings` with the
//! pod's name in the body.
//!
//! Owns the checks of a `Binding`, and the changes that it makes to the pod. Webhooks see the `Binding` instead of the
//! pod.

use http::StatusCode;
use jiff::Timestamp;
use mock_objects::object;
use mock_objects::status::{About, Failure};
use mock_store::{Expect, Version};
use serde_json::{Value, json};

use super::write::TRIES;
use super::{decode, read_body};
use crate::admission::{Attempt, Chain, Operation};
use crate::answer::Answer;
use crate::call::Call;
use crate::payload::Payload;

pub(super) async fn create(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let bytes = read_body(&call.app.limits, body).await?;
    let mut binding = decode(&call.content_type, &bytes)?;
    let chain = Chain::of(call);
    super::named::begin(call, &mut binding, "v1", "Binding")?;
    let mut warnings = super::named::mutate(call, &chain, &mut binding).await?;
    super::named::check_name(call, &binding, "Binding")?;
    check(&binding)?;
    warnings.extend(super::named::validate(call, &chain, &binding).await?);
    assign(call, &binding)?;
    Ok(Answer { warnings, ..done() })
}

/// Handles the older request `POST bindings`. Webhooks see the creation of an object of the resource `bindings`.
pub(super) async fn create_by_body(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let bytes = read_body(&call.app.limits, body).await?;
    let mut binding = decode(&call.content_type, &bytes)?;
    object::check_type(&mut binding, &call.resource, call.served())?;
    let chain = Chain::of(call);
    super::named::begin(call, &mut binding, "v1", "Binding")?;
    let attempt = |name| Attempt { call, operation: Operation::Create, name, old: None };
    let name = object::meta(&binding, "name").to_owned();
    let mut warnings = chain.mutate(&attempt(&name), &mut binding).await?.warnings;
    check(&binding)?;
    let name = object::meta(&binding, "name");
    warnings.extend(chain.validate(&attempt(name), &binding).await?);
    if name.is_empty() {
        return Err(Failure::bad_request("Name parameter required."));
    }
    assign(call, &binding)?;
    Ok(Answer { warnings, ..done() })
}

fn done() -> Answer {
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Answer::value(StatusCode::CREATED, &done)
}

/// Checks a `Binding`. The real server joins all errors of a `Binding` into one plain message.
fn check(binding: &Value) -> Result<(), Failure> {
    let target = |key: &str| binding["target"][key].as_str().unwrap_or_default();
    let mut wrong = Vec::new();
    if !matches!(target("kind"), "" | "Node") {
        let kind = target("kind");
        wrong.push(format!("target.kind: Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\""));
    }
    if target("name").is_empty() {
        wrong.push("target.name: Required value".to_owned());
    }
    match &wrong[..] {
        [] => Ok(()),
        [one] => Err(Failure::plain(one.clone())),
        several => Err(Failure::plain(format!("[{}]", several.join(", ")))),
    }
}

fn assign(call: &Call, binding: &Value) -> Result<(), Failure> {
    let catalogue = call.cluster().catalogue();
    let resource = catalogue.by_full_name("pods").expect("pods are built in");
    let name = object::meta(binding, "name");
    for _ in 0..TRIES {
        let current = call.cluster().get(resource, call.namespace(), name);
        let current = current.ok_or_else(|| Failure::not_found(resource.about(name)))?;
        check_preconditions(binding, &current).map_err(|why| Failure::conflict(resource.about(name), &why))?;
        let mut pod = current.value();
        bind(&mut pod, binding).map_err(|why| {
            Failure::conflict(About { group: "", kind: "pods/binding", name }, &format!("pod {name} {why}"))
        })?;
        if call.query.dry_run || call.cluster().put(resource, Expect::Revision(current.revision), pod).is_ok() {
            return Ok(());
        }
    }
    Err(Failure::stale(resource.about(name)))
}

/// Checks that the pod has the uid and the version that the binding names; the error names the difference.
fn check_preconditions(binding: &Value, pod: &Version) -> Result<(), String> {
    let revision = pod.revision.to_string();
    for (what, key, is) in [("UID", "uid", &*pod.identity.uid), ("ResourceVersion", "resourceVersion", &*revision)] {
        let wanted = object::meta(binding, key);
        if !wanted.is_empty() && wanted != is {
            return Err(format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}"));
        }
    }
    Ok(())
}

/// Sets the pod's node; the error says why the pod cannot be bound.
fn bind(pod: &mut Value, binding: &Value) -> Result<(), String> {
    if object::is_deleting(pod) {
        return Err("is being deleted, cannot be assigned to a host".to_owned());
    }
    let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if !bound.is_empty() {
        return Err(format!("is already assigned to node \"{bound}\""));
    }
    if let Some(given) = binding["metadata"]["annotations"].as_object().filter(|given| !given.is_empty()) {
        let annotations = object::metadata(pod).entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.extend(given.clone());
        }
    }
    if pod["status"]["conditions"].is_null() {
        let now = object::seconds(Timestamp::now());
        pod["status"]["conditions"] =
            json!([{"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}]);
    }
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("nodeName".to_owned(), binding["target"]["name"].clone());
    }
    Ok(())
}
