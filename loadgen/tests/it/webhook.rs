//! A webhook for tests that pins images rightly; it uses no code of the tested crate.

use std::time::{Duration, Instant};

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Request, Response};
use loadgen::admission::{Config, Counts, Image, Interval, Load, Plan, Target};
use serde_json::{Value, json};

use crate::server::{Body, Server, respond, until};

pub const H1: &[&[u8]] = &[b"http/1.1"];

pub fn images() -> Vec<Image> {
    let image = |reference: &str, digest: Option<char>| {
        Image::new(reference, digest.map(|c| format!("sha256:{}", c.to_string().repeat(64))))
    };
    vec![
        image("registry.test:5000/shop/cart:1.2", Some('a')),
        image("nginx", Some('b')),
        image("registry.test:5000/shop/gone:1", None),
    ]
}

/// A plan with this number of requests, one each millisecond; `more` contains further keys of the configuration as
/// JSON.
pub fn plan(requests: u64, more: &str) -> Plan {
    let mut config = json!({"rate": "1000/s", "arrivals": "constant", "timeout": "20s"});
    json_patch::merge(&mut config, &serde_json::from_str(&format!("{{{more}}}")).unwrap());
    let config: Config = serde_json::from_value(config).unwrap();
    let length = Duration::from_secs(requests).div_f64(config.rate.as_per_second());
    Plan::build(&config, 7, length, &images()).unwrap()
}

pub fn target(server: &Server) -> Target {
    Target {
        url: format!("https://{}/mutate", server.address),
        server_name: "webhook.test.svc".to_owned(),
        ca_pem: server.ca_pem.clone(),
        ..Target::default()
    }
}

/// Sends the whole plan and lets every call end.
pub async fn run(plan: Plan, target: &Target) -> Interval {
    let planned = plan.total();
    let load = Load::start(plan, target, Instant::now()).unwrap();
    until("every request to be planned", || load.planned_now() == planned).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_eq!(interval.counts.planned, planned);
    assert_accounts(&interval);
    interval
}

/// Checks that every request has exactly one outcome.
pub fn assert_accounts(interval: &Interval) {
    let Counts { planned, sent, overflow, allowed, denied, abandoned, .. } = &interval.counts;
    assert_eq!(*planned, sent + overflow, "{interval:?}");
    assert_eq!(*sent, allowed + denied + interval.errors() + abandoned, "{interval:?}");
    assert_eq!(*sent, interval.lateness.len());
    assert_eq!(*sent, interval.service.len() + abandoned);
    assert_eq!(*allowed, interval.response_allowed.len());
    assert_eq!(*denied, interval.response_denied.len());
    assert_eq!(interval.errors(), interval.response_error.len());
}

pub async fn body(request: Request<Incoming>) -> Value {
    let bytes = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

pub fn right(review: &Value) -> Value {
    let mut found = Vec::new();
    // Kubernetes ignores all other changes of a report of status.
    if review["request"]["subResource"] != "status" {
        find_images(&review["request"]["object"], "", &mut found);
    }
    let mut patch = Vec::new();
    for (path, written) in found.into_iter().filter(|(_, written)| !written.contains('@')) {
        let image = images().into_iter().find(|image| image.reference == written);
        let Some(digest) = image.and_then(|image| image.digest) else {
            return answer(
                review,
                json!({"allowed": false, "status": {"code": 403, "message": format!("no {written}")}}),
            );
        };
        patch.push(json!({"op": "replace", "path": path, "value": format!("{written}@{digest}")}));
    }
    if patch.is_empty() {
        return answer(review, json!({"allowed": true}));
    }
    let patch = base64::engine::general_purpose::STANDARD.encode(Value::from(patch).to_string());
    answer(review, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

/// An answer to the review, with the review's uid and the fields of `response`.
pub fn answer(review: &Value, mut response: Value) -> Value {
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

pub fn json(value: &Value) -> Response<Body> {
    respond(200, "application/json", Bytes::from(value.to_string()))
}

/// Collects every `image` in a container and every `image.reference` of a volume, wherever they are.
fn find_images(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map)
            if !at.ends_with("/managedFields") && !at.ends_with("/openAPIV3Schema") && at != "/status" =>
        {
            for (key, inner) in map {
                let here = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match inner.as_str() {
                    Some(text) if key == "image" || here.ends_with("/image/reference") => {
                        found.push((here, text.to_owned()));
                    }
                    _ => find_images(inner, &here, found),
                }
            }
        }
        Value::Array(items) if !at.ends_with("/managedFields") => {
            for (i, item) in items.iter().enumerate() {
                find_images(item, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}
