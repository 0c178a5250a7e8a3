//! Tests of CEL rules of custom resources with each verb that writes.

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::{Client, World};
use crate::{APPLY, DEFINITIONS, MERGE};

const QUEUES: &str = "/apis/test.dev/v1/namespaces/default/queues";
const QUEUE: &str = "/apis/test.dev/v1/namespaces/default/queues/q";

fn definition(rules: &Value) -> Value {
    let spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "min": {"type": "integer"}, "max": {"type": "integer", "maximum": 100},
        "class": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "class is immutable"}]},
    }});
    let status = json!({"type": "object", "properties": {"used": {"type": "integer", "x-kubernetes-validations": [
        {"rule": "self >= 0", "reason": "FieldValueForbidden", "message": "nothing is less than unused"},
    ]}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    crate::definition("queues", "Queue", &json!([version]))
}

fn bounds() -> Value {
    json!([{"rule": "self.min <= self.max", "fieldPath": ".min",
            "messageExpression": "'min %d is more than max %d'.format([self.min, self.max])"}])
}

fn queue(spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec})
}

async fn defined() -> (World, Client) {
    let (world, mut client) = World::alone().await;
    let (status, made) = client.post(DEFINITIONS, &definition(&bounds())).await;
    assert_eq!(status, 201, "{made}");
    (world, client)
}

/// `field: message` of each cause in a refusal.
fn causes(refused: &Value) -> Vec<String> {
    let list = refused["details"]["causes"].as_array().into_iter().flatten();
    list.map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn every_write_asks_the_rules() {
    let (_world, mut client) = defined().await;
    let crossed = ["spec.min: Invalid value: \"object\": min 5 is more than max 3"];
    let (status, refused) = client.post(QUEUES, &queue(&json!({"min": 5, "max": 3}))).await;
    assert_eq!((status, causes(&refused)), (422, crossed.map(str::to_owned).to_vec()));
    assert_eq!(refused["message"], json!(format!("Queue.test.dev \"q\" is invalid: {}", crossed[0])));
    assert_eq!(refused["details"]["causes"][0]["reason"], json!("FieldValueInvalid"));
    let dry = client.post(&format!("{QUEUES}?dryRun=All"), &queue(&json!({"min": 5, "max": 3}))).await;
    assert_eq!(dry.0, 422);
    let apply = format!("{QUEUE}?fieldManager=me");
    assert_eq!(client.patch(&apply, APPLY, &queue(&json!({"min": 5, "max": 3}))).await.0, 422, "an apply that creates");

    let (status, mut made) = client.post(QUEUES, &queue(&json!({"min": 1, "max": 3, "class": "a"}))).await;
    assert_eq!(status, 201, "{made}");
    made["spec"]["min"] = json!(5);
    assert_eq!(causes(&client.put(QUEUE, &made).await.1), crossed);
    let (status, refused) = client.patch(QUEUE, MERGE, &json!({"spec": {"min": 5}})).await;
    assert_eq!((status, causes(&refused)), (422, crossed.map(str::to_owned).to_vec()));
    let (status, refused) = client.patch(&format!("{apply}&force=true"), APPLY, &queue(&json!({"min": 5}))).await;
    assert_eq!((status, causes(&refused)), (422, crossed.map(str::to_owned).to_vec()));
    assert_eq!(client.patch(&format!("{QUEUE}?dryRun=All"), MERGE, &json!({"spec": {"min": 5}})).await.0, 422);

    let (status, refused) = client.patch(QUEUE, MERGE, &json!({"spec": {"class": "b"}})).await;
    assert_eq!(
        (status, causes(&refused)),
        (422, vec!["spec.class: Invalid value: \"string\": class is immutable".to_owned()])
    );
    let at = format!("{QUEUE}/status");
    let (status, refused) = client.patch(&at, MERGE, &json!({"status": {"used": -1}})).await;
    assert_eq!(
        (status, causes(&refused)),
        (422, vec!["status.used: Forbidden: nothing is less than unused".to_owned()])
    );
    assert_eq!(client.patch(&at, MERGE, &json!({"status": {"used": 1}})).await.0, 200);
    assert_eq!(client.patch(QUEUE, MERGE, &json!({"spec": {"min": 3}})).await.0, 200);
}

#[tokio::test]
async fn an_object_of_the_wrong_shape_is_not_asked() {
    let (_world, mut client) = defined().await;
    let (status, refused) = client.post(QUEUES, &queue(&json!({"min": 5, "max": "3"}))).await;
    assert_eq!(status, 422);
    let found = causes(&refused);
    assert_eq!(
        found[1],
        "<nil>: Invalid value: \"null\": some validation rules were not checked because the object was invalid; correct the existing \
         errors to complete validation"
    );
    assert!(found[0].starts_with("spec.max: Invalid value: \"string\""), "{found:?}");
    // A value out of bounds has the right shape.
    let (_, refused) = client.post(QUEUES, &queue(&json!({"min": 500, "max": 300}))).await;
    let fields: Vec<&Value> =
        refused["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    assert_eq!(fields, ["spec.max", "spec.min"]);
}

#[tokio::test]
async fn a_rule_that_came_later_is_a_warning_until_the_value_changes() {
    let (_world, mut client) = defined().await;
    assert_eq!(client.post(QUEUES, &queue(&json!({"min": 1, "max": 3}))).await.0, 201);
    let later = json!([{"rule": "self.max >= 10", "message": "too small"}]);
    let change = json!({"spec": definition(&later)["spec"]});
    let (status, changed) = client.patch(&format!("{DEFINITIONS}/queues.test.dev"), MERGE, &change).await;
    assert_eq!(status, 200, "{changed}");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    client.content_type = MERGE;
    let response = client.send(Method::PATCH, QUEUE, patch.to_string()).await;
    client.content_type = "application/json";
    let warning = response.headers().get("warning").map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(
        (response.status().as_u16(), warning.as_deref()),
        (200, Some("299 - \"spec: Invalid value: \\\"object\\\": too small\""))
    );
    response.into_body().collect().await.unwrap();
    let (status, refused) = client.patch(QUEUE, MERGE, &json!({"spec": {"min": 2}})).await;
    assert_eq!((status, causes(&refused)), (422, vec!["spec: Invalid value: \"object\": too small".to_owned()]));
}

#[tokio::test]
async fn a_definition_with_a_wrong_rule_is_refused() {
    let (_world, mut client) = defined().await;
    let wrong = definition(&json!([{"rule": "self.min <= self.maximum"}]));
    let field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    let change = json!({"spec": wrong["spec"]});
    let (status, refused) = client.patch(&format!("{DEFINITIONS}/queues.test.dev"), MERGE, &change).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!(field)));
    let why = refused["details"]["causes"][0]["message"].as_str().unwrap();
    assert!(why.contains("compilation failed: ERROR: <input>:1:17: undefined field 'maximum'"), "{why}");
    assert_eq!(client.post(QUEUES, &queue(&json!({"min": 5, "max": 3}))).await.0, 422, "the old rules hold");
    let mut other = wrong.clone();
    other["metadata"]["name"] = json!("others.test.dev");
    other["spec"]["names"] = json!({"plural": "others", "kind": "Other"});
    let (status, refused) = client.post(DEFINITIONS, &other).await;
    assert_eq!((status, &refused["details"]["causes"][0]["field"]), (422, &json!(field)));
    assert_eq!(client.get("/apis/test.dev/v1/others").await.0, 404);
}
