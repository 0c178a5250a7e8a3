//! `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration`: webhooks that the server calls for requests.
//! Admission refuses settings that this server does not support.

use serde_json::{Value, json};

use super::print::Printer;
use super::{Kind, Meaning};
use crate::fields::{each, set};

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) const MUTATING: Kind = Kind {
    categories: &["api-extensions"],
    about: "Webhooks that may change objects before they are stored.",
    messages: &[
        "MutatingWebhookConfiguration 1:metadata:ObjectMeta 2:webhooks:[MutatingWebhook]",
        "MutatingWebhook 1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations] \
         4:failurePolicy:s? 5:namespaceSelector:LabelSelector 6:sideEffects:s? 7:timeoutSeconds:i? \
         8:admissionReviewVersions:[s]! 9:matchPolicy:s? 10:reinvocationPolicy:s? 11:objectSelector:LabelSelector \
         12:matchConditions:[MatchCondition]",
        "WebhookClientConfig 1:service:ServiceReference 2:caBundle:B 3:url:s?",
        "ServiceReference 1:namespace:s! 2:name:s! 3:path:s? 4:port:i?",
        "RuleWithOperations 1:operations:[s] 2:<inline>:Rule",
        "Rule 1:apiGroups:[s] 2:apiVersions:[s] 3:resources:[s] 4:scope:s?",
        "MatchCondition 1:name:s! 2:expression:s!",
    ],
    merge_keys: &[(&["webhooks"], "name")],
    published_merges: &[("MutatingWebhookConfiguration", "webhooks", "merge", "name")],
    printer: PRINTER,
    defaults: |value| {
        each(value, "webhooks", |hook| {
            fill(hook);
            set(hook, &[], "reinvocationPolicy", json!("Never"));
        });
    },
    meaning: Meaning::Webhooks,
    ..Kind::cluster(GROUP, &["v1"], "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
};

pub(super) const VALIDATING: Kind = Kind {
    categories: &["api-extensions"],
    about: "Webhooks that may refuse objects before they are stored.",
    messages: &[
        "ValidatingWebhookConfiguration 1:metadata:ObjectMeta 2:webhooks:[ValidatingWebhook]",
        "ValidatingWebhook 1:name:s! 2:clientConfig:WebhookClientConfig 3:rules:[RuleWithOperations] \
         4:failurePolicy:s? 5:namespaceSelector:LabelSelector 6:sideEffects:s? 7:timeoutSeconds:i? \
         8:admissionReviewVersions:[s]! 9:matchPolicy:s? 10:objectSelector:LabelSelector \
         11:matchConditions:[MatchCondition]",
    ],
    merge_keys: &[(&["webhooks"], "name")],
    published_merges: &[("ValidatingWebhookConfiguration", "webhooks", "merge", "name")],
    printer: PRINTER,
    defaults: |value| each(value, "webhooks", fill),
    meaning: Meaning::Webhooks,
    ..Kind::cluster(GROUP, &["v1"], "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
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

const PRINTER: Printer = Printer {
    columns: "Name, Webhooks:integer, Age",
    cells: |row| vec![row.name(), row.items("/webhooks").len().into(), row.age()],
};
