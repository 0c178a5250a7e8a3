//! The `AdmissionReview` of a request, and reading the answer (admission.k8s.io/v1).

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Attempt, Operation};

/// What a webhook answered.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub allowed: bool,
    pub code: u16,
    pub message: String,
    pub reason: String,
    pub patch: Option<json_patch::Patch>,
    pub warnings: Vec<String>,
}

/// What a review says about a request, without the objects.
pub(super) fn request(attempt: &Attempt<'_>) -> Value {
    let call = attempt.call;
    let served = call.served();
    let kind = json!({"group": &*call.resource.group, "version": &*served.name, "kind": &*call.resource.kind});
    let resource =
        json!({"group": &*call.resource.group, "version": &*served.name, "resource": &*call.resource.plural});
    let options_kind = match attempt.operation {
        Operation::Create => "CreateOptions",
        Operation::Update if call.method == http::Method::PATCH => "PatchOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": options_kind});
    if let Some(manager) = &call.query.field_manager {
        options["fieldManager"] = Value::from(manager.clone());
    }
    let mut request = json!({
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "operation": attempt.operation.as_str(), "userInfo": call.who.info(), "dryRun": call.query.dry_run,
        "options": options,
    });
    // What is empty is left out.
    if !attempt.name.is_empty() {
        request["name"] = Value::from(attempt.name);
    }
    if let Some(namespace) = &call.target.namespace {
        request["namespace"] = Value::from(namespace.clone());
    } else if &*call.resource.full_name == "namespaces" {
        request["namespace"] = Value::from(attempt.name);
    }
    if let Some(subresource) = &call.target.subresource {
        request["subResource"] = Value::from(subresource.clone());
        request["requestSubResource"] = Value::from(subresource.clone());
    }
    request
}

/// The body of the call.
pub(super) fn body(attempt: &Attempt<'_>, uid: &str, object: &Value) -> Bytes {
    let mut request = request(attempt);
    request["uid"] = Value::from(uid);
    request["object"] = object.clone();
    request["oldObject"] = attempt.old.cloned().unwrap_or(Value::Null);
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request});
    Bytes::from(review.to_string())
}

/// Checks an answer as the real server does; an error counts as a failed call.
pub(super) fn verdict(body: &[u8], uid: &str, mutating: bool) -> Result<Verdict, String> {
    use base64::Engine as _;
    let review: Value = serde_json::from_slice(body).map_err(|error| format!("could not be decoded: {error}"))?;
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {api_version}, Kind={kind}"
        ));
    }
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or("webhook response was absent")?;
    if text("/response/uid") != uid {
        return Err(format!("expected response.uid=\"{uid}\", got \"{}\"", text("/response/uid")));
    }
    let patch_type = response.get("patchType").and_then(Value::as_str);
    let patch = match (response.get("patch").and_then(Value::as_str), patch_type) {
        (None, None) => None,
        (Some(_), _) | (_, Some(_)) if !mutating => return Err("validating webhook may not patch".to_owned()),
        (Some(encoded), Some("JSONPatch")) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
            let bytes = bytes.map_err(|error| format!("response.patch is not base64: {error}"))?;
            Some(serde_json::from_slice(&bytes).map_err(|error| format!("response.patch is no JSON patch: {error}"))?)
        }
        (None, Some(_)) => return Err("response.patchType needs response.patch".to_owned()),
        (Some(_), None) => return Err("response.patch needs response.patchType=JSONPatch".to_owned()),
        (Some(_), Some(other)) => return Err(format!("unsupported patch type {other}")),
    };
    let allowed = response.get("allowed").and_then(Value::as_bool).ok_or("response.allowed is missing")?;
    let code = response.pointer("/status/code").and_then(Value::as_u64).unwrap_or(0);
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Ok(Verdict {
        allowed,
        code: u16::try_from(code).unwrap_or(0),
        message: text("/response/status/message").to_owned(),
        reason: text("/response/status/reason").to_owned(),
        patch,
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mutating: bool, response: &Value) -> Result<Verdict, String> {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        verdict(review.to_string().as_bytes(), "u", mutating)
    }

    #[test]
    fn answers_are_checked() {
        assert!(check(false, &json!({"uid": "u", "allowed": true})).unwrap().allowed);
        let patch = "W10="; // an empty list of operations
        assert!(check(true, &json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"})).is_ok());
        for (mutating, wrong) in [
            (true, json!({"uid": "other", "allowed": true})),
            (true, json!({"allowed": true})),
            (true, json!({"uid": "u"})),
            (true, json!({"uid": "u", "allowed": true, "patch": patch})),
            (true, json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"})),
            (true, json!({"uid": "u", "allowed": true, "patch": "!", "patchType": "JSONPatch"})),
            (true, json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "Merge"})),
            (false, json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"})),
            (true, Value::Null),
        ] {
            assert!(check(mutating, &wrong).is_err(), "{wrong}");
        }
        let beta =
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"uid": "u"}});
        assert!(verdict(beta.to_string().as_bytes(), "u", true).is_err());
    }
}
