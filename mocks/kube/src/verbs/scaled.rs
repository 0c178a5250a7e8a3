//! The `Scale` of an object (autoscaling/v1), for reads and for validating webhooks.

use mock_objects::catalogue::Scale;
use mock_objects::selector::labels_text;
use serde_json::{Value, json};

use crate::call::Call;

pub(super) const API_VERSION: &str = "autoscaling/v1";

/// The paths of the numbers for a request to the scale; `None` for other requests.
pub(super) fn of(call: &Call) -> Option<&Scale> {
    call.served().scale.as_ref().filter(|_| call.target.subresource.as_deref() == Some("scale"))
}

pub(super) fn view(value: &Value, scale: &Scale) -> Value {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let meta = &value["metadata"];
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    if let Some(selector) = scale.selector.as_ref().and_then(|pointer| value.pointer(pointer)) {
        status["selector"] = Value::from(match selector {
            Value::String(text) => text.clone(),
            other => labels_text(other),
        });
    }
    let spec = match number(&scale.spec_replicas) {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    json!({
        "kind": "Scale", "apiVersion": API_VERSION,
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"], "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": spec,
        "status": status,
    })
}
