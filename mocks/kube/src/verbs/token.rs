//! `POST serviceaccounts/NAME/token`: makes a token for a service account (Kubernetes API reference, `TokenRequest`).
//!
//! Owns the checks of a `TokenRequest`, and its answer. The module `tokens` makes the token.

use std::sync::Arc;

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use mock_objects::object;
use mock_objects::status::{About, Cause, Failure};
use mock_store::Version;
use serde_json::{Value, json};

use super::{decode, named, read_body};
use crate::admission::Chain;
use crate::answer::Answer;
use crate::call::Call;
use crate::payload::Payload;
use crate::tokens::{Claims, Subject};

/// The shortest lifetime of a token in seconds, as in the API.
const SHORTEST_S: i64 = 600;
const LONGEST_S: i64 = 1 << 32;
const USUAL_S: i64 = 3600;
const API_VERSION: &str = "authentication.k8s.io/v1";

pub(super) async fn create(call: &Call, body: Payload) -> Result<Answer, Failure> {
    let bytes = read_body(&call.app.limits, body).await?;
    let mut request = decode(&call.content_type, &bytes)?;
    let chain = Chain::of(call);
    named::begin(call, &mut request, API_VERSION, "TokenRequest")?;
    request["status"] = nothing_yet();
    let mut warnings = named::mutate(call, &chain, &mut request).await?;
    let name = call.target.name.as_deref().unwrap_or_default();
    let account = call
        .cluster()
        .get(&call.resource, call.namespace(), name)
        .ok_or_else(|| Failure::not_found(call.resource.about(name)))?;
    let now = Timestamp::now();
    let lasts_s = complete(&mut request, name, &call.app.users.tokens.issuer, now)?;
    warnings.extend(named::validate(call, &chain, &request).await?);
    let spec = &request["spec"];
    let audiences = texts(&spec["audiences"]);
    let bound = bound(call, &spec["boundObjectRef"], name)?;
    let claims = Claims {
        id: call.cluster().fresh().uid,
        namespace: call.namespace().to_owned(),
        account: Subject { name: name.to_owned(), uid: account.identity.uid.to_string() },
        bound,
        audiences,
        issued_s: now.as_second(),
        ends_s: now.as_second() + (lasts_s / i64::from(call.cluster().compress)).max(1),
    };
    let token = call.app.users.tokens.sign(&claims).map_err(|_| Failure::internal("the token could not be signed"))?;
    let ends = now.checked_add(SignedDuration::from_secs(lasts_s)).unwrap_or(Timestamp::MAX);
    request["status"] = json!({"token": token, "expirationTimestamp": object::seconds(ends)});
    Ok(Answer { warnings, ..Answer::value(StatusCode::CREATED, &request) })
}

/// Fills in defaults of a request and checks it; returns the lifetime of the token in seconds.
fn complete(request: &mut Value, account: &str, issuer: &str, now: Timestamp) -> Result<i64, Failure> {
    let spec = &request["spec"];
    let lasts_s = lifetime(spec)?;
    let mut audiences = texts(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(issuer.to_owned());
    }
    let reference = spec["boundObjectRef"].clone();
    request["spec"] = json!({"audiences": audiences, "expirationSeconds": lasts_s, "boundObjectRef": reference});
    request["status"] = nothing_yet();
    let meta = object::metadata(request);
    meta.entry("name").or_insert_with(|| Value::from(account));
    meta.insert("creationTimestamp".to_owned(), Value::from(object::seconds(now)));
    Ok(lasts_s)
}

/// The status of a request that has no token yet.
fn nothing_yet() -> Value {
    json!({"token": "", "expirationTimestamp": null})
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The requested lifetime of the token in seconds.
fn lifetime(spec: &Value) -> Result<i64, Failure> {
    let Some(asked_s) = spec["expirationSeconds"].as_i64() else { return Ok(USUAL_S) };
    let why = match asked_s {
        ..SHORTEST_S => "may not specify a duration less than 10 minutes",
        SHORTEST_S..=LONGEST_S => return Ok(asked_s),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = Cause::invalid("spec.expirationSeconds", &asked_s.to_string(), why);
    Err(Failure::invalid(About { group: "authentication.k8s.io", kind: "TokenRequest", name: "" }, &[cause]))
}

/// The object to which the token is bound; the token ends when the object is deleted.
fn bound(call: &Call, reference: &Value, account: &str) -> Result<Option<(String, Subject)>, Failure> {
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let (full_name, namespace) = match kind {
        _ if reference.is_null() => return Ok(None),
        "Pod" => ("pods", call.namespace()),
        "Secret" => ("secrets", call.namespace()),
        "Node" => ("nodes", ""),
        _ => {
            let version = text("apiVersion");
            let message = format!("cannot bind token to object of type {version}, Kind={kind}");
            return Err(Failure::bad_request(message));
        }
    };
    let catalogue = call.cluster().catalogue();
    let resource = catalogue.by_full_name(full_name).expect("pods, secrets and nodes are built in");
    let about = resource.about(name);
    let found: Arc<Version> = call.cluster().get(resource, namespace, name).ok_or_else(|| Failure::not_found(about))?;
    let uid = &*found.identity.uid;
    if !text("uid").is_empty() && text("uid") != uid {
        let given = text("uid");
        let why = format!("the UID in the bound object reference ({given}) does not match the UID in record ({uid})");
        return Err(Failure::conflict(about, &why));
    }
    if kind == "Pod" {
        let value = found.value();
        let runs_as = value.pointer("/spec/serviceAccountName").and_then(Value::as_str).unwrap_or("default");
        if runs_as != account {
            let message = format!(
                "cannot bind token for serviceaccount \"{account}\" to pod running with different serviceaccount name."
            );
            return Err(Failure::bad_request(message));
        }
    }
    Ok(Some((kind.to_owned(), Subject { name: name.to_owned(), uid: uid.to_owned() })))
}
