use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_core::role::Review;
use tokio::time::Instant;

use super::*;

/// A reviewer that refuses images with `bad` in their names, warns about images with `new`, and pins all other images.
struct Script;

impl Review for Script {
    fn review(&self, review: Bytes, _: Instant) -> BoxFuture<'static, Result<Bytes, String>> {
        let review: Value = serde_json::from_slice(&review).unwrap();
        let object = &review["request"]["object"];
        let mut patch = Vec::new();
        let (mut refused, mut warnings) = (Vec::new(), Vec::new());
        let mut look = vec![(String::new(), object)];
        while let Some((pointer, value)) = look.pop() {
            match value {
                Value::Object(map) => {
                    look.extend(map.iter().map(|(key, value)| (format!("{pointer}/{key}"), value)));
                }
                Value::Array(list) => {
                    look.extend(list.iter().enumerate().map(|(at, value)| (format!("{pointer}/{at}"), value)));
                }
                Value::String(image) if pointer.ends_with("/image") => {
                    if image.contains("bad") {
                        refused.push(format!("{image}: unknown"));
                    } else if image.contains("new") {
                        warnings.push(format!("{image} has no digest"));
                    } else {
                        patch.push(json!({"op": "replace", "path": pointer, "value": format!("{image}@sha256:0")}));
                    }
                }
                _ => {}
            }
        }
        let patch = base64::engine::general_purpose::STANDARD.encode(Value::from(patch).to_string());
        let response = if refused.is_empty() {
            json!({"allowed": true, "patch": patch, "warnings": warnings})
        } else {
            json!({"allowed": false, "status": {"message": refused.join(", ")}})
        };
        async move { Ok(json!({ "response": response }).to_string().into()) }.boxed()
    }
}

const LIST: &str = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a # its name\n    \
                    annotations: {internal.config.kubernetes.io/path: 'a/pod.yaml', internal.config.kubernetes.io/index: '1'}\n  spec:\n    containers:\n    \
                    - name: c\n      image: r/a:1   # pinned?\n    - {name: d, image: 'IMAGE'}\n- apiVersion: acme.io/v1\n  kind: Farm\n  metadata: {name: f, namespace: n}\n  \
                    spec: {workers: [{img: w:2}]}\nfunctionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n  data: {paths: 'spec.workers[*].img'}\n";

async fn done(image: &str) -> (String, Done) {
    let text = LIST.replace("IMAGE", image);
    let review: Arc<dyn Review> = Arc::new(Script);
    let done = run(&*review, &text, Wanted::default()).await.unwrap();
    (text, done)
}

#[tokio::test]
async fn every_image_is_pinned_and_nothing_else_changes() {
    let (text, done) = done("b:2").await;
    let expected =
        text.replace("r/a:1 ", "r/a:1@sha256:0 ").replace("'b:2'", "'b:2@sha256:0'").replace("w:2", "w:2@sha256:0");
    let (before, results) = done.text.split_once("results:\n").unwrap();
    assert_eq!(before, expected);
    assert!(!done.has_errors());
    let results: Vec<Value> = results.lines().map(|line| serde_json::from_str(&line[2..]).unwrap()).collect();
    assert_eq!(
        results[0],
        json!({
            "message": "pinned to r/a:1@sha256:0", "severity": "info",
            "resourceRef": {"apiVersion": "v1", "kind": "Pod", "name": "a"}, "file": {"path": "a/pod.yaml", "index": 1},
            "field": {"path": "spec.containers[0].image", "currentValue": "r/a:1", "proposedValue": "r/a:1@sha256:0"},
        })
    );
    assert_eq!((results.len(), &results[2]["field"]["path"]), (3, &json!("spec.workers[0].img")));
    assert_eq!(results[2]["resourceRef"]["namespace"], "n");
    // The output is a list again, and has results already.
    let review: Arc<dyn Review> = Arc::new(Script);
    let again = run(&*review, &done.text, Wanted::default()).await.unwrap();
    let read = documents(&again.text).unwrap();
    let results = read[0].get(read[0].root(), "results").unwrap();
    assert_eq!(read[0].items(results).len(), 6);
}

#[tokio::test]
async fn what_is_refused_is_said_of_its_field_and_its_object_stays() {
    let (text, done) = done("bad:2").await;
    assert!(done.has_errors());
    let errors: Vec<_> = done.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].message.as_str(), errors[0].line), ("bad:2: unknown", 13));
    assert_eq!(errors[0].field.as_deref(), Some("/spec/containers/1/image"));
    assert!(done.text.starts_with(&text.replace("w:2", "w:2@sha256:0")), "{}", done.text);
    let (_, warned) = self::done("new:2").await;
    assert!(!warned.has_errors());
    assert!(warned.findings.iter().any(|finding| finding.severity == Severity::Warning));
}

#[tokio::test]
async fn what_is_no_list_is_refused() {
    let review: Arc<dyn Review> = Arc::new(Script);
    for (text, told) in [
        ("kind: Pod\napiVersion: v1\n", "its `kind` is `Pod`"),
        ("", "its `kind` is missing"),
        ("kind: [", "no YAML"),
        ("kind: ResourceList\nitems: []\nfunctionConfig: {data: {paths: 'a..b'}}\n", "`a..b` is no path"),
    ] {
        let error = run(&*review, text, Wanted::default()).await.unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
    let empty = "kind: ResourceList\nitems: []\n";
    assert_eq!(run(&*review, empty, Wanted::default()).await.unwrap().text, empty);
    let flow =
        r#"{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"image":"a"}]}}]}"#;
    let done = run(&*review, flow, Wanted::default()).await.unwrap();
    let read: Value = serde_json::from_str(&done.text).unwrap();
    assert_eq!(read["items"][0]["spec"]["containers"][0]["image"], "a@sha256:0");
    assert_eq!(read["results"].as_array().map(Vec::len), Some(1));
}
