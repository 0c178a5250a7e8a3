//! Makes the `AdmissionReview` of a request (admission.k8s.io/v1 and v1beta1). `go_rules::admission` reads the answers.

use bytes::Bytes;
use go_rules::admission::Version;
use mock_objects::kinds::Meaning;
use serde_json::{Value, json};

use super::form::{Form, ReviewedObjects};
use super::{Attempt, Operation};

/// Makes the field `request` of an `AdmissionReview`, without the old and the new object.
pub(super) fn request(attempt: &Attempt<'_>, form: &Form) -> Value {
    let call = attempt.call;
    let asked = Form::of_path(call);
    let resource = |form: &Form| json!({"group": &*form.resource.group, "version": &*form.version, "resource": &*form.resource.plural});
    let options_kind = match attempt.operation {
        Operation::Create => "CreateOptions",
        // Also for a PATCH, as in the real server.
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": options_kind});
    if let Some(manager) = &call.query.field_manager {
        options["fieldManager"] = Value::from(manager.clone());
    }
    if call.query.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let mut request = json!({
        "kind": form.kind(), "resource": resource(form), "requestKind": asked.kind(),
        "requestResource": resource(&asked),
        "operation": attempt.operation.as_str(), "userInfo": call.who.info(), "dryRun": call.query.dry_run,
        "options": options,
    });
    // Empty fields are left out.
    if !attempt.name.is_empty() {
        request["name"] = Value::from(attempt.name);
    }
    if let Some(namespace) = &call.target.namespace {
        request["namespace"] = Value::from(namespace.clone());
    } else if call.resource.rules.meaning == Meaning::Namespace {
        request["namespace"] = Value::from(attempt.name);
    }
    if let Some(subresource) = &call.target.subresource {
        request["subResource"] = Value::from(subresource.clone());
        request["requestSubResource"] = Value::from(subresource.clone());
    }
    request
}

pub(super) fn body(attempt: &Attempt<'_>, uid: &str, seen: &ReviewedObjects<'_>, version: Version) -> Bytes {
    let mut request = request(attempt, &seen.form);
    request["uid"] = Value::from(uid);
    request["object"] = Value::clone(&seen.object);
    request["oldObject"] = seen.old.as_deref().cloned().unwrap_or(Value::Null);
    let review = json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request});
    Bytes::from(review.to_string())
}
