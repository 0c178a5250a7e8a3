//! `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration`: webhooks that the server calls for requests.
//! Admission refuses settings that this server does not support.

use serde_json::{Value, json};

use super::print::Cells;
use super::{Kind, Meaning};
use crate::fields::{each, set};

pub(super) const MUTATING: Kind = Kind {
    about: "Webhooks that may change objects before they are stored.",
    cells: CELLS,
    defaults: |value| {
        each(value, "webhooks", |hook| {
            fill(hook);
            set(hook, &[], "reinvocationPolicy", json!("Never"));
        });
    },
    meaning: Meaning::Webhooks,
    ..Kind::of("mutatingwebhookconfigurations.admissionregistration.k8s.io")
};

pub(super) const VALIDATING: Kind = Kind {
    about: "Webhooks that may refuse objects before they are stored.",
    cells: CELLS,
    defaults: |value| each(value, "webhooks", fill),
    meaning: Meaning::Webhooks,
    ..Kind::of("validatingwebhookconfigurations.admissionregistration.k8s.io")
};

fn fill(hook: &mut Value) {
    for (key, default) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("namespaceSelector", json!({})),
        ("objectSelector", json!({})),
        ("timeoutSeconds", json!(10)),
    ] {
        set(hook, &[], key, default);
    }
    each(hook, "rules", |rule| set(rule, &[], "scope", json!("*")));
    if hook.pointer("/clientConfig/service").is_some_and(Value::is_object) {
        set(hook, &["clientConfig", "service"], "port", json!(443));
    }
}

const CELLS: Cells = |row| vec![row.name(), row.items("/webhooks").len().into(), row.age()];
