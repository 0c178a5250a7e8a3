//! One `ConversionReview` (apiextensions.k8s.io/v1): the request to a webhook, and the checks of its answer.
//!
//! Owns the real server's checks of the answer and its error messages. Kind, version, name, namespace and uid in the
//! answer must be right; of all other metadata in the answer, the server uses only labels and annotations.

use std::time::Duration;

use bytes::Bytes;
use mock_objects::catalogue::{Resource, Webhook};
use mock_objects::object;
use mock_objects::status::Failure;
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::reach::Nowhere;
use crate::webhooks::{authority, client, place};

/// The deadline for a conversion webhook, as in a real server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a conversion failed.
#[derive(Debug, thiserror::Error)]
enum Unconverted {
    #[error("Post \"{url}\": {why}")]
    Nowhere {
        url: String,
        #[source]
        why: Nowhere,
    },
    #[error(transparent)]
    Call(#[from] client::Error),
    #[error("Post \"{0}\": context deadline exceeded")]
    Deadline(String),
    #[error("an error on the server (\"unknown\") has prevented the request from succeeding")]
    Status,
    #[error("couldn't get version/kind; json parse error: {0}")]
    Undecodable(#[source] serde_json::Error),
    #[error("expected webhook response of {expected}, got {got}")]
    Type { expected: String, got: String },
    #[error("no response provided")]
    NoResponse,
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid { expected: String, got: String },
    #[error("{0}")]
    Said(String),
    #[error("response.result.status was '{0}', not 'Success'")]
    Failed(String),
}

/// Converts objects of one resource into one version, through the resource's webhook if there is one. Objects that
/// already have that version stay unchanged.
pub(super) async fn convert(
    cluster: &Cluster,
    resource: &Resource,
    mut values: Vec<Value>,
    api_version: &str,
) -> Result<Vec<Value>, Failure> {
    let Some(conversion) = &resource.conversion else { return Ok(values) };
    let Some(webhook) = &conversion.webhook else {
        for value in values.iter_mut().filter(|value| value["apiVersion"] != api_version) {
            value["apiVersion"] = Value::from(api_version);
            leave_out(value, resource, api_version);
        }
        return Ok(values);
    };
    let is_other = |value: &&Value| value["apiVersion"] != api_version;
    let asked: Vec<Value> = values.iter().filter(is_other).map(without_revision).collect();
    let Some(first) = asked.first() else { return Ok(values) };
    let of = format!("conversion webhook for {}, Kind={}", text(first, "apiVersion"), text(first, "kind"));
    let count = asked.len();
    let converted =
        ask(cluster, webhook, asked, api_version).await.map_err(|why| Failure::plain(format!("{of} failed: {why}")))?;
    if converted.len() != count {
        return Err(Failure::plain(format!("{of} returned {} objects, expected {count}", converted.len())));
    }
    let others = values.iter_mut().filter(|value| value["apiVersion"] != api_version);
    for (index, (original, made)) in others.zip(converted).enumerate() {
        let at = if count == 1 { String::new() } else { format!(" at index {index}") };
        let made = check(original, made, api_version).map_err(|wrong| {
            Failure::plain(match wrong {
                Wrong::Type(why) => format!("{of} returned invalid object at index {index}: {why}"),
                Wrong::Object(why) => format!("{of} returned invalid object{at}: {why}"),
                Wrong::Metadata(why) => format!("{of} returned invalid metadata{at}: {why}"),
            })
        })?;
        *original = made;
        leave_out(original, resource, api_version);
    }
    Ok(values)
}

/// Removes from an object the fields that the schema of its version lacks.
fn leave_out(value: &mut Value, resource: &Resource, api_version: &str) {
    let version = resource.versions.iter().find(|version| *version.api_version == *api_version);
    if let Some(schema) = version.and_then(|version| version.structure.as_ref()) {
        schema.prune(value);
    }
    object::drop_unknown(value, resource);
}

/// Posts one review; returns the objects in the answer without checking them.
async fn ask(
    cluster: &Cluster,
    webhook: &Webhook,
    objects: Vec<Value>,
    api_version: &str,
) -> Result<Vec<Value>, Unconverted> {
    let uid = cluster.fresh().uid;
    let review_version = format!("apiextensions.k8s.io/{}", webhook.review);
    let review = json!({
        "kind": "ConversionReview", "apiVersion": review_version,
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        // Go's empty answer: the real type of the answer's result is no pointer.
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    let place = place(&webhook.client);
    let path_and_query = place.path_and_query(TIMEOUT);
    let url = place.shown(&path_and_query);
    let target = place
        .target(cluster, authority(&webhook.client))
        .map_err(|why| Unconverted::Nowhere { url: url.clone(), why })?;
    let posting = cluster.webhooks.client.post(&target, &path_and_query, Bytes::from(review.to_string()));
    let reply = tokio::time::timeout(TIMEOUT, posting).await.map_err(|_| Unconverted::Deadline(url))??;
    if !reply.status.is_success() {
        return Err(Unconverted::Status);
    }
    let mut answer: Value = serde_json::from_slice(&reply.body).map_err(Unconverted::Undecodable)?;
    if answer["apiVersion"] != *review_version || answer["kind"] != "ConversionReview" {
        let got = format!("{}, Kind={}", text(&answer, "apiVersion"), text(&answer, "kind"));
        return Err(Unconverted::Type { expected: format!("{review_version}, Kind=ConversionReview"), got });
    }
    let response = answer["response"].take();
    if !response.is_object() {
        return Err(Unconverted::NoResponse);
    }
    if response["uid"] != *uid {
        return Err(Unconverted::Uid { expected: uid, got: text(&response, "uid").to_owned() });
    }
    let result = &response["result"];
    match (text(result, "status"), text(result, "message")) {
        ("Success", _) => {}
        (status, "") => return Err(Unconverted::Failed(status.to_owned())),
        (_, message) => return Err(Unconverted::Said(message.to_owned())),
    }
    Ok(match response {
        Value::Object(mut response) => match response.remove("convertedObjects") {
            Some(Value::Array(objects)) => objects,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    })
}

/// Why the server rejects one object of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Type(String),
    Object(String),
    Metadata(String),
}

/// Checks an object from a webhook's answer, which should be `original` in another version; adds the original's
/// protected metadata.
fn check(original: &Value, mut made: Value, api_version: &str) -> Result<Value, Wrong> {
    let (expected, received) = (text(original, "kind"), text(&made, "kind").to_owned());
    if made["apiVersion"] != api_version {
        let received = text(&made, "apiVersion");
        return Err(Wrong::Type(format!("invalid groupVersion (expected {api_version}, received {received})")));
    }
    if expected != received {
        return Err(Wrong::Type(format!("invalid kind (expected {expected}, received {received})")));
    }
    for (key, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, now) = (object::meta(original, key), object::meta(&made, key));
        if before != now {
            return Err(Wrong::Object(format!("must have the same {shown}: {before} != {now}")));
        }
    }
    let given = match made["metadata"].take() {
        Value::Object(given) => given,
        Value::Null => return Err(Wrong::Metadata("missing metadata in converted object".to_owned())),
        other => {
            return Err(Wrong::Metadata(format!("invalid metadata of type {} in converted object", go_type(&other))));
        }
    };
    made["metadata"] = original["metadata"].clone();
    for key in ["labels", "annotations"] {
        let meta = object::metadata(&mut made);
        match given.get(key) {
            None | Some(Value::Null) => drop(meta.remove(key)),
            Some(Value::Object(texts)) => {
                meta.insert(key.to_owned(), Value::Object(texts.clone()));
                check_texts(key, texts, &made)?;
            }
            Some(other) => {
                let why = format!("invalid metadata.{key} of type {} in converted object", go_type(other));
                return Err(Wrong::Metadata(why));
            }
        }
    }
    Ok(made)
}

fn check_texts(key: &str, texts: &Map<String, Value>, made: &Value) -> Result<(), Wrong> {
    if let Some((name, other)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let is = go_type(other);
        return Err(Wrong::Metadata(format!(
            "metadata.{key}[{name}] must be a string, but is {is} in converted object"
        )));
    }
    let causes = object::check_texts(made, key);
    let shown: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    match &shown[..] {
        [] => Ok(()),
        [only] => Err(Wrong::Metadata(only.clone())),
        several => Err(Wrong::Metadata(format!("[{}]", several.join(", ")))),
    }
}

/// The object without its `resourceVersion`, as a real server stores objects.
fn without_revision(value: &Value) -> Value {
    let mut value = value.clone();
    object::metadata(&mut value).remove("resourceVersion");
    value
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Go's name for the type of a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() || number.is_u64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foo(api_version: &str, meta: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": "Foo", "metadata": meta, "spec": {}})
    }

    /// A webhook can change no metadata except labels and annotations.
    #[test]
    fn other_metadata_stays_as_it_was() {
        let original = foo("a.b/v1", &json!({"name": "x", "uid": "u", "finalizers": ["a/b"], "labels": {"l": "1"}}));
        let made = foo("a.b/v2", &json!({"name": "x", "uid": "u", "finalizers": ["c/d"], "annotations": {"k": "v"}}));
        let taken = check(&original, made, "a.b/v2").unwrap();
        let wanted = json!({"name": "x", "uid": "u", "finalizers": ["a/b"], "annotations": {"k": "v"}});
        assert_eq!(taken["metadata"], wanted);
    }

    #[test]
    fn who_it_is_and_what_it_is_must_be_right() {
        let original = foo("a.b/v1", &json!({"name": "x", "uid": "u"}));
        let wrong = |made: Value| check(&original, made, "a.b/v2").unwrap_err();
        let right = json!({"name": "x", "uid": "u"});
        let Wrong::Type(_) = wrong(foo("a.b/v3", &right)) else { panic!("another version was taken") };
        let Wrong::Object(why) = wrong(foo("a.b/v2", &json!({"name": "y", "uid": "u"}))) else { panic!("a name") };
        assert_eq!(why, "must have the same name: x != y");
        let Wrong::Object(_) = wrong(foo("a.b/v2", &json!({"name": "x"}))) else { panic!("no uid was taken") };
        let label = json!({"name": "x", "uid": "u", "labels": {"a b": "c"}});
        let Wrong::Metadata(_) = wrong(foo("a.b/v2", &label)) else { panic!("a wrong label was taken") };
    }
}
