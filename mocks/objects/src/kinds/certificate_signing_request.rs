//! `CertificateSigningRequest`: a request for a certificate, and the decision about it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, NONE, Row, duration};
use super::{Causes, Generation, Kind, Meaning, SubresourceFields};
use crate::fields::{metadata, seconds};
use crate::status::Cause;

pub(super) const CERTIFICATE_SIGNING_REQUEST: Kind = Kind {
    parts: &[("approval", SubresourceFields { write: write_approval, check: check_approval })],
    carry_status: |value, old| decided(value, old),
    cells: CELLS,
    check,
    generation: Generation::None,
    meaning: Meaning::CertificateRequest,
    ..Kind::of("certificatesigningrequests.certificates.k8s.io")
};

/// Writes the subresource `approval`: replaces all conditions, labels and annotations, and keeps other fields.
fn write_approval(request: &mut Value, sent: &Value) {
    for key in ["labels", "annotations"] {
        let (meta, given) = (metadata(request), sent["metadata"][key].clone());
        if given.is_null() {
            meta.remove(key);
        } else {
            meta.insert(key.to_owned(), given);
        }
    }
    let before = conditions(request);
    let mut after = conditions(sent);
    let now = Value::from(seconds(Timestamp::now()));
    for condition in after.iter_mut().filter(|condition| condition.is_object()) {
        let same = |old: &&Value| old["type"] == condition["type"] && old["status"] == condition["status"];
        let since = before.iter().find(same).map(|old| old["lastTransitionTime"].clone()).filter(Value::is_string);
        if !condition["lastTransitionTime"].is_string() {
            condition["lastTransitionTime"] = since.unwrap_or_else(|| now.clone());
        }
        if !condition["lastUpdateTime"].is_string() {
            condition["lastUpdateTime"] = now.clone();
        }
    }
    put_conditions(request, after);
}

/// Refuses to remove an approval or a denial, which are final, and refuses a request with both.
fn check_approval(value: &Value, old: &Value, causes: &mut Causes) {
    let after = conditions(value);
    let has = |kind: &str| after.iter().any(|condition| condition["type"] == kind);
    if has("Approved") && has("Denied") {
        let why = "Approved and Denied conditions are mutually exclusive";
        causes.push(Cause::invalid("status.conditions", "\"Denied\"", why));
    }
    for condition in conditions(old) {
        let kind = condition["type"].as_str().unwrap_or_default();
        let is_final = matches!(kind, "Approved" | "Denied" | "Failed");
        if is_final && !after.iter().any(|other| other["type"] == condition["type"]) {
            let why = format!("updates may not remove a condition of type \"{kind}\"");
            causes.push(Cause::forbidden("status.conditions", &why));
        }
    }
}

fn conditions(request: &Value) -> Vec<Value> {
    request.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Copies the conditions `Approved` and `Denied` from another version of the request, and keeps all other conditions.
fn decided(request: &mut Value, from: &Value) {
    let is_decision = |condition: &Value| matches!(condition["type"].as_str(), Some("Approved" | "Denied"));
    let mut all: Vec<Value> = conditions(request).into_iter().filter(|condition| !is_decision(condition)).collect();
    all.extend(conditions(from).into_iter().filter(is_decision));
    put_conditions(request, all);
}

fn put_conditions(request: &mut Value, conditions: Vec<Value>) {
    let status = request.as_object_mut().map(|fields| fields.entry("status").or_insert_with(|| json!({})));
    if let Some(status) = status.and_then(Value::as_object_mut) {
        if conditions.is_empty() {
            status.remove("conditions");
        } else {
            status.insert("conditions".to_owned(), Value::from(conditions));
        }
    }
}

/// The usages that a request may have.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Shortest validity that a request may ask for, in seconds.
const SHORTEST_S: i64 = 600;

/// Checks all fields except `spec.request`, which the crate `mock_kube` verifies.
fn check(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    let usages: Vec<&str> = spec["usages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let list = at.field("usages");
    if usages.is_empty() {
        causes.required(list, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        if !USAGES.contains(usage) {
            causes.unsupported(list.item(index), usage, &USAGES);
        }
        if usages[..index].contains(usage) {
            causes.duplicate(list.item(index), usage);
        }
    }
    let signer = causes.text_in(spec, "signerName", at);
    let fits = |(domain, path): (&str, &str)| {
        domain.contains('.') && domain.split('.').chain(path.split('.')).all(mock_cel::formats::is_label)
    };
    if !signer.is_empty() && !signer.split_once('/').is_some_and(fits) {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.invalid_text(at.field("signerName"), signer, why);
    }
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|seconds| *seconds < SHORTEST_S) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.invalid(at.field("expirationSeconds"), &seconds, why);
    }
}

const CELLS: Cells = |row| {
    let wanted = row.at("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", NONE),
        row.text("/spec/username").into(),
        wanted.map_or(NONE.into(), |seconds| duration(seconds).into()),
        condition(row).into(),
    ]
};

fn condition(row: &Row<'_>) -> String {
    let has = |kind: &str| row.condition(kind).is_some();
    let mut all: Vec<&str> = ["Approved", "Denied", "Failed"].into_iter().filter(|kind| has(kind)).collect();
    if all.is_empty() {
        all.push("Pending");
    }
    if !row.text("/status/certificate").is_empty() {
        all.push("Issued");
    }
    all.join(",")
}
