//! `FlowSchema`: which requests are counted together, and how important they are. Nothing is held back by it here.

use serde_json::{Value, json};

use super::print::{AGE, NAME, NONE, Printer};
use super::{Causes, Kind};
use crate::fields::set;
use crate::status::Cause;

pub(super) const FLOW_SCHEMA: Kind = Kind {
    about: "Which requests to the API are counted together, and how important they are.",
    status: true,
    messages: &[
        ("FlowSchema", "1:metadata:ObjectMeta 2:spec:FlowSchemaSpec 3:status:FlowSchemaStatus"),
        (
            "FlowSchemaSpec",
            "1:priorityLevelConfiguration:PriorityLevelConfigurationReference 2:matchingPrecedence:i! \
             3:distinguisherMethod:FlowDistinguisherMethod 4:rules:[PolicyRulesWithSubjects]",
        ),
        ("PriorityLevelConfigurationReference", "1:name:s!"),
        ("FlowDistinguisherMethod", "1:type:s!"),
        (
            "PolicyRulesWithSubjects",
            "1:subjects:[FlowSubject]! 2:resourceRules:[ResourcePolicyRule] 3:nonResourceRules:[NonResourcePolicyRule]",
        ),
        ("FlowSubject", "1:kind:s! 2:user:UserSubject 3:group:GroupSubject 4:serviceAccount:ServiceAccountSubject"),
        ("UserSubject", "1:name:s!"),
        ("GroupSubject", "1:name:s!"),
        ("ServiceAccountSubject", "1:namespace:s! 2:name:s!"),
        ("ResourcePolicyRule", "1:verbs:[s]! 2:apiGroups:[s]! 3:resources:[s]! 4:clusterScope:b 5:namespaces:[s]"),
        ("NonResourcePolicyRule", "1:verbs:[s]! 6:nonResourceURLs:[s]!"),
        ("FlowSchemaStatus", "1:conditions:[FlowSchemaCondition]"),
        ("FlowSchemaCondition", "1:type:s! 2:status:s! 3:lastTransitionTime:T 4:reason:s 5:message:s"),
    ],
    published_merges: &[("FlowSchemaStatus", "conditions", "merge", "type")],
    printer: PRINTER,
    defaults,
    new: |value| value["status"] = json!({}),
    check,
    ..Kind::cluster("flowcontrol.apiserver.k8s.io", &["v1"], "flowschemas", "FlowSchema")
};

/// How late a schema is looked at when it does not say.
const PRECEDENCE_DEFAULT: i64 = 1000;
const PRECEDENCE_MAX: i64 = 10_000;

fn defaults(value: &mut Value) {
    set(value, &["spec"], "matchingPrecedence", json!(PRECEDENCE_DEFAULT));
}

fn check(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required("spec.priorityLevelConfiguration.name", "must reference a priority level"));
    }
    let precedence = spec["matchingPrecedence"].as_i64().unwrap_or_default();
    let why = match precedence {
        ..=0 => "must be a positive value",
        1..=PRECEDENCE_MAX => return,
        _ => "must not be greater than 10000",
    };
    causes.push(Cause::invalid("spec.matchingPrecedence", &precedence.to_string(), why));
}

const PRINTER: Printer = Printer {
    columns: &[
        NAME,
        ("PriorityLevel", "string", 0),
        ("MatchingPrecedence", "string", 0),
        ("DistinguisherMethod", "string", 0),
        AGE,
        ("MissingPL", "string", 0),
    ],
    cells: |row| {
        // Nobody has looked yet whether the level is there.
        let missing = row.condition("Dangling").and_then(|condition| condition["status"].as_str()).unwrap_or("?");
        vec![
            row.name(),
            row.text("/spec/priorityLevelConfiguration/name").into(),
            row.number("/spec/matchingPrecedence").into(),
            row.text_or("/spec/distinguisherMethod/type", NONE),
            row.age(),
            missing.into(),
        ]
    },
};
