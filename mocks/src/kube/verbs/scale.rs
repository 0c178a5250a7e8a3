//! The scale subresource (autoscaling/v1 `Scale`).

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{decode, read_body};
use crate::kube::body::Body;
use crate::kube::catalogue::Scale;
use crate::kube::handler::{Answer, Call};
use crate::kube::patch::Patch;
use crate::kube::represent::Renderer;
use crate::kube::status::{About, Failure};
use crate::kube::store::Version;

pub(super) async fn answer(call: &Call, body: Incoming) -> Result<Answer, Failure> {
    let name = call.target.name.as_deref().unwrap_or_default();
    let scale = call.served().scale.clone().ok_or_else(Failure::no_such_path)?;
    // Built-in scales that are read name themselves, custom ones and all writes the resource.
    let kind = format!("{}/scale", call.resource.plural);
    let about = if call.resource.custom || call.method != Method::GET {
        call.resource.about(name)
    } else {
        About { group: &call.resource.group, kind: &kind, name }
    };
    let missing = || Failure::not_found(about);
    let bytes = match call.method {
        Method::GET => Bytes::new(),
        Method::PUT | Method::PATCH => read_body(&call.app.limits, body).await?,
        _ => return Err(Failure::method_not_allowed()),
    };
    if call.method == Method::PUT {
        let given = decode(&call.content_type, &bytes)?;
        let given = crate::kube::object::meta(&given, "name");
        if given != name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
    }
    let current = call.cluster().get(&call.resource, call.namespace(), name).ok_or_else(missing)?;
    if call.method == Method::GET {
        return Ok(Answer::value(StatusCode::OK, &view(&current.value(), &scale)));
    }
    let renderer = Renderer::plain(call);
    let answer = super::write::change(call, &renderer, false, |current| {
        let asked = asked(call, current, &scale, &bytes)?;
        let mut value = current.value();
        let revision = asked.pointer("/metadata/resourceVersion").cloned().unwrap_or(Value::Null);
        if revision.is_string() {
            value["metadata"]["resourceVersion"] = revision;
        }
        let replicas = asked.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let cause = crate::kube::status::Cause::invalid(
                "spec.replicas",
                &replicas.to_string(),
                "must be greater than or equal to 0",
            );
            return Err(Failure::invalid(About { group: "autoscaling", kind: "Scale", name }, &[cause]));
        }
        set(&mut value, &scale.spec_replicas, json!(replicas));
        Ok(value)
    })
    .await?;
    // What was written, or would have been.
    let Body::Full(Some(written)) = &answer.body else { return Ok(answer) };
    let written: Value = serde_json::from_slice(written).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Answer { warnings: answer.warnings, ..Answer::value(answer.status, &view(&written, &scale)) })
}

fn asked(call: &Call, current: &Version, scale: &Scale, bytes: &Bytes) -> Result<Value, Failure> {
    if call.method == Method::PUT {
        return decode(&call.content_type, bytes);
    }
    let mut value = view(&current.value(), scale);
    Patch::decode(&call.content_type, bytes, true)?.apply(&mut value, &call.resource)?;
    Ok(value)
}

fn view(value: &Value, scale: &Scale) -> Value {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let meta = &value["metadata"];
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    if let Some(selector) = scale.selector.as_ref().and_then(|pointer| value.pointer(pointer)) {
        status["selector"] = Value::from(match selector {
            Value::String(text) => text.clone(),
            other => labels_text(other.get("matchLabels").unwrap_or(other)),
        });
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": {"replicas": number(&scale.spec_replicas)},
        "status": status,
    })
}

fn labels_text(labels: &Value) -> String {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    pairs.join(",")
}

/// Sets a value at a pointer, making the objects on the way.
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
