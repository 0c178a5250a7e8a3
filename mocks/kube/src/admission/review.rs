//! The `AdmissionReview` of a request, and reading the answer (admission.k8s.io/v1 and v1beta1).

use bytes::Bytes;
use mock_objects::kinds::Meaning;
use serde_json::{Value, json};

use super::form::{Form, Seen};
use super::{Attempt, Operation};

/// The two forms of a review: the same fields, and other demands on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

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

/// Why an answer is no verdict, in the real server's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misread {
    #[error("could not be decoded: {0}")]
    NoJson(#[source] serde_json::Error),
    #[error("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {api_version}, Kind={kind}")]
    Type { api_version: String, kind: String },
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid { expected: String, got: String },
    #[error("webhook response was absent")]
    Absent,
    /// A patch, or its type, of one that may only validate.
    #[error("validating webhook may not return response.{0}")]
    Validating(&'static str),
    /// A patch without its type, or a type without a patch.
    #[error("webhook returned response.{has} but not response.{lacks}")]
    Half { has: &'static str, lacks: &'static str },
    #[error("webhook returned invalid response.patchType of \"{0}\"")]
    PatchType(String),
    #[error("response.patch is not base64: {0}")]
    NotBase64(#[source] base64::DecodeError),
    #[error("response.patch is no JSON patch: {0}")]
    NoPatch(#[source] serde_json::Error),
}

/// What a review says about a request, without the objects.
pub(super) fn request(attempt: &Attempt<'_>, form: &Form) -> Value {
    let call = attempt.call;
    let asked = Form::asked(call);
    let resource = |form: &Form| json!({"group": &*form.resource.group, "version": &*form.version, "resource": &*form.resource.plural});
    let options_kind = match attempt.operation {
        Operation::Create => "CreateOptions",
        // Also for a PATCH, as the real server does.
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
    // What is empty is left out.
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

/// The body of the call.
pub(super) fn body(attempt: &Attempt<'_>, uid: &str, seen: &Seen<'_>, version: ReviewVersion) -> Bytes {
    let mut request = request(attempt, &seen.form);
    request["uid"] = Value::from(uid);
    request["object"] = Value::clone(&seen.object);
    request["oldObject"] = seen.old.as_deref().cloned().unwrap_or(Value::Null);
    let review = json!({"kind": "AdmissionReview", "apiVersion": version.api_version(), "request": request});
    Bytes::from(review.to_string())
}

/// Checks an answer as the real server does; an error counts as a failed call. The older form need not say what it is,
/// nor which review it answers, nor which kind of patch it has.
pub(super) fn verdict(body: &[u8], uid: &str, mutating: bool, version: ReviewVersion) -> Result<Verdict, Misread> {
    let review: Value = serde_json::from_slice(body).map_err(Misread::NoJson)?;
    let text = |pointer: &str| review.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let response = review.get("response").filter(|response| response.is_object());
    match version {
        ReviewVersion::V1 => {
            if (api_version, kind) != (version.api_version(), "AdmissionReview") {
                return Err(Misread::Type { api_version: api_version.to_owned(), kind: kind.to_owned() });
            }
            if response.is_some() && text("/response/uid") != uid {
                return Err(Misread::Uid { expected: uid.to_owned(), got: text("/response/uid").to_owned() });
            }
        }
        ReviewVersion::V1Beta1 => {
            let says = |is: &str, expected: &str| is.is_empty() || is == expected;
            if !says(api_version, version.api_version()) || !says(kind, "AdmissionReview") {
                // What is something else is read as something else, and this stays empty.
                return Err(Misread::Absent);
            }
        }
    }
    let response = response.ok_or(Misread::Absent)?;
    let code = response.pointer("/status/code").and_then(Value::as_u64).unwrap_or(0);
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Ok(Verdict {
        // Nothing said is a no.
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or(false),
        code: u16::try_from(code).unwrap_or(0),
        message: text("/response/status/message").to_owned(),
        reason: text("/response/status/reason").to_owned(),
        patch: patch(response, mutating, version)?,
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

fn patch(response: &Value, mutating: bool, version: ReviewVersion) -> Result<Option<json_patch::Patch>, Misread> {
    use base64::Engine as _;
    let text = |key: &str| response.get(key).and_then(Value::as_str);
    let (encoded, kind) = (text("patch").filter(|patch| !patch.is_empty()), text("patchType"));
    let encoded = match (version, encoded, kind) {
        (ReviewVersion::V1Beta1, encoded, _) => encoded.filter(|_| mutating),
        (_, None, None) => None,
        (_, Some(_), _) if !mutating => return Err(Misread::Validating("patch")),
        (_, _, Some(_)) if !mutating => return Err(Misread::Validating("patchType")),
        (_, Some(encoded), Some("JSONPatch")) => Some(encoded),
        (_, None, Some(_)) => return Err(Misread::Half { has: "patchType", lacks: "patch" }),
        (_, Some(_), None) => return Err(Misread::Half { has: "patch", lacks: "patchType" }),
        (_, Some(_), Some(other)) => return Err(Misread::PatchType(other.to_owned())),
    };
    let Some(encoded) = encoded else { return Ok(None) };
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
    let bytes = bytes.map_err(Misread::NotBase64)?;
    serde_json::from_slice(&bytes).map(Some).map_err(Misread::NoPatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mutating: bool, response: &Value) -> Result<Verdict, Misread> {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        verdict(review.to_string().as_bytes(), "u", mutating, ReviewVersion::V1)
    }

    #[test]
    fn answers_are_checked() {
        assert!(check(false, &json!({"uid": "u", "allowed": true})).unwrap().allowed);
        assert!(!check(false, &json!({"uid": "u"})).unwrap().allowed, "nothing said is a no");
        let patch = "W10="; // an empty list of operations
        assert!(check(true, &json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"})).is_ok());
        for (mutating, wrong) in [
            (true, json!({"uid": "other", "allowed": true})),
            (true, json!({"allowed": true})),
            (true, json!({"uid": "u", "allowed": true, "patch": patch})),
            (true, json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"})),
            (true, json!({"uid": "u", "allowed": true, "patch": "!", "patchType": "JSONPatch"})),
            (true, json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "Merge"})),
            (false, json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"})),
            (false, json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"})),
            (true, Value::Null),
        ] {
            assert!(check(mutating, &wrong).is_err(), "{wrong}");
        }
        let beta =
            json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"uid": "u"}});
        assert!(verdict(beta.to_string().as_bytes(), "u", true, ReviewVersion::V1).is_err());
    }

    #[test]
    fn the_older_form_asks_for_less() {
        let read =
            |mutating, review: &Value| verdict(review.to_string().as_bytes(), "u", mutating, ReviewVersion::V1Beta1);
        let patched = json!({"response": {"allowed": true, "patch": "W10="}});
        assert!(read(true, &patched).unwrap().patch.is_some());
        assert!(read(false, &patched).unwrap().patch.is_none(), "a patch of a validating webhook is passed over");
        let newer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"allowed": true}});
        let other = json!({"kind": "Status", "response": {"allowed": true}});
        for wrong in [json!({}), newer, other] {
            assert!(matches!(read(true, &wrong), Err(Misread::Absent)), "{wrong}");
        }
    }
}
