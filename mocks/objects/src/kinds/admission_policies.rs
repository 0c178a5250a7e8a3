//! `ValidatingAdmissionPolicy`, `MutatingAdmissionPolicy` and their bindings: rules in CEL that refuse or change objects before they
//! are stored.

use mock_cel::{Program, Wanted};
use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, Row, selector};
use super::{Causes, Kind, Meaning};
use crate::fields::{each, set};

pub(super) const POLICY: Kind = Kind {
    about: "Rules in CEL that may refuse objects before they are stored.",
    cells: CELLS,
    defaults: |value| {
        set(value, &["spec"], "failurePolicy", json!("Fail"));
        fill_matches(value, "matchConstraints");
    },
    check: check_policy,
    needs_revision: true,
    meaning: Meaning::Policy,
    ..Kind::of("validatingadmissionpolicies.admissionregistration.k8s.io")
};

pub(super) const BINDING: Kind = Kind {
    about: "Where a policy counts, with which parameters, and what follows when it refuses an object.",
    cells: CELLS_OF_BINDING,
    defaults: |value| fill_matches(value, "matchResources"),
    check: check_binding,
    needs_revision: true,
    ..Kind::of("validatingadmissionpolicybindings.admissionregistration.k8s.io")
};

pub(super) const MUTATING_POLICY: Kind = Kind {
    about: "Expressions in CEL that may change objects before they are stored.",
    cells: |row| cells(row, "/spec/mutations"),
    check: check_mutating,
    ..Kind { name: "mutatingadmissionpolicies.admissionregistration.k8s.io", ..POLICY }
};

pub(super) const MUTATING_BINDING: Kind = Kind {
    about: "The scope and the parameters of a mutating policy.",
    check: |value, causes| {
        check_reference(value, causes);
        check_operations(&value["spec"]["matchResources"], At::from("spec").field("matchResources"), causes);
    },
    ..Kind { name: "mutatingadmissionpolicybindings.admissionregistration.k8s.io", ..BINDING }
};

/// Fills in the defaults of a policy's or binding's settings for matching requests.
fn fill_matches(value: &mut Value, field: &str) {
    let Some(matches) = value.pointer_mut(&format!("/spec/{field}")).filter(|matches| matches.is_object()) else {
        return;
    };
    set(matches, &[], "matchPolicy", json!("Equivalent"));
    set(matches, &[], "namespaceSelector", json!({}));
    set(matches, &[], "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        each(matches, list, |rule| set(rule, &[], "scope", json!("*")));
    }
}

/// Checks the fields that validating and mutating policies share.
fn check_common(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    causes.one_of(&spec["failurePolicy"], at.field("failurePolicy"), &["Fail", "Ignore"]);
    if let Some(kind) = spec.get("paramKind").filter(|kind| kind.is_object()) {
        for key in ["apiVersion", "kind"] {
            causes.text_in(kind, key, at.field("paramKind"));
        }
    }
    let matches = at.field("matchConstraints");
    if spec["matchConstraints"].is_null() {
        causes.required(matches, "");
    } else {
        check_matches(&spec["matchConstraints"], matches, causes);
        if spec["matchConstraints"]["resourceRules"].as_array().is_none_or(Vec::is_empty) {
            causes.required(matches.field("resourceRules"), "");
        }
    }
    let place = at.field("variables");
    for (index, variable) in spec["variables"].as_array().into_iter().flatten().enumerate() {
        if variable["name"].as_str().is_none_or(|name| name.trim().is_empty()) {
            causes.required(place.item(index).field("name"), "name is not specified");
        }
        let why = "expression is not specified";
        compiles(&variable["expression"], place.item(index).field("expression"), (why, None), causes);
    }
}

fn check_policy(value: &Value, causes: &mut Causes) {
    check_common(value, causes);
    let (spec, at) = (&value["spec"], At::from("spec"));
    let count = |list: &str| spec[list].as_array().map_or(0, Vec::len);
    if count("validations") + count("auditAnnotations") == 0 {
        let why = "validations or auditAnnotations must contain at least one item";
        causes.required(at.field("validations"), why);
        causes.required(at.field("auditAnnotations"), why);
    }
    let place = at.field("validations");
    for (index, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        let (one, why) = (place.item(index), "expression is not specified");
        compiles(&validation["expression"], one.field("expression"), (why, Some(Wanted::Truth)), causes);
        if validation["messageExpression"].as_str().is_some_and(|text| !text.trim().is_empty()) {
            compiles(
                &validation["messageExpression"],
                one.field("messageExpression"),
                ("", Some(Wanted::Text)),
                causes,
            );
        }
    }
    let place = at.field("auditAnnotations");
    for (index, annotation) in spec["auditAnnotations"].as_array().into_iter().flatten().enumerate() {
        if annotation["key"].as_str().is_none_or(|key| key.trim().is_empty()) {
            causes.required(place.item(index).field("key"), "");
        }
        let why = "valueExpression is not specified";
        let wanted = Some(Wanted::Text);
        compiles(&annotation["valueExpression"], place.item(index).field("valueExpression"), (why, wanted), causes);
    }
}

fn check_mutating(value: &Value, causes: &mut Causes) {
    check_common(value, causes);
    let (spec, at) = (&value["spec"], At::from("spec"));
    check_operations(&spec["matchConstraints"], at.field("matchConstraints"), causes);
    let (mutations, place) = (spec["mutations"].as_array().map_or(&[][..], Vec::as_slice), at.field("mutations"));
    if mutations.is_empty() {
        causes.required(place, "mutations must contain at least one item");
    }
    for (index, mutation) in mutations.iter().enumerate() {
        check_mutation(mutation, place.item(index), causes);
    }
    match spec["reinvocationPolicy"].as_str().unwrap_or_default() {
        "" => causes.required(at.field("reinvocationPolicy"), ""),
        "Never" | "IfNeeded" => {}
        other => causes.unsupported(at.field("reinvocationPolicy"), other, &["IfNeeded", "Never"]),
    }
}

fn check_mutation(mutation: &Value, at: At<'_>, causes: &mut Causes) {
    let kind = mutation["patchType"].as_str().unwrap_or_default();
    let (own, other, wanted) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Wanted::Patches),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Wanted::Object),
        "" => return causes.required(at.field("patchType"), ""),
        kind => return causes.unsupported(at.field("patchType"), kind, &["ApplyConfiguration", "JSONPatch"]),
    };
    if mutation[own].is_object() {
        let place = at.field(own);
        compiles(&mutation[own]["expression"], place.field("expression"), ("", Some(wanted)), causes);
    } else {
        causes.required(at.field(own), &format!("must be specified when patchType is {kind}"));
    }
    if mutation[other].is_object() {
        let why = format!("must not be specified when patchType is {kind}");
        causes.invalid_text(at.field(other), &format!("{{{other}}}"), &why);
    }
}

/// Refuses rules of a mutating policy for deletions: only created, updated and connected objects can be changed.
fn check_operations(matches: &Value, at: At<'_>, causes: &mut Causes) {
    let (rules, place) = (at.field("resourceRules"), "operations");
    for rule in matches["resourceRules"].as_array().into_iter().flatten() {
        for operation in rule["operations"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !matches!(operation, "*" | "CREATE" | "UPDATE" | "CONNECT") {
                causes.unsupported(rules.field(place), operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
            }
        }
    }
}

/// Refuses an expression that is absent or does not compile.
fn compiles(expression: &Value, at: At<'_>, (absent, wanted): (&str, Option<Wanted>), causes: &mut Causes) {
    let text = expression.as_str().unwrap_or_default();
    if text.trim().is_empty() {
        causes.required(at, absent);
    } else if let Err(why) = Program::compile_in_policy(text, wanted) {
        causes.invalid_text(at, text, &why);
    }
}

fn check_matches(matches: &Value, at: At<'_>, causes: &mut Causes) {
    causes.one_of(&matches["matchPolicy"], at.field("matchPolicy"), &["Equivalent", "Exact"]);
    for list in ["resourceRules", "excludeResourceRules"] {
        let place = at.field(list);
        for (index, rule) in matches[list].as_array().into_iter().flatten().enumerate() {
            for key in ["operations", "apiGroups", "apiVersions", "resources"] {
                if rule[key].as_array().is_none_or(Vec::is_empty) {
                    causes.required(place.item(index).field(key), "");
                }
            }
        }
    }
}

/// Checks the fields that the bindings of validating and mutating policies share.
fn check_reference(value: &Value, causes: &mut Causes) {
    let (spec, at) = (&value["spec"], At::from("spec"));
    causes.text_in(spec, "policyName", at);
    if let Some(reference) = spec.get("paramRef").filter(|reference| reference.is_object()) {
        let place = at.field("paramRef");
        let (named, selects) =
            (reference["name"].as_str().is_some_and(|name| !name.is_empty()), reference["selector"].is_object());
        if named && selects {
            causes.forbidden(place.field("name"), "name and selector are mutually exclusive");
            causes.forbidden(place.field("selector"), "name and selector are mutually exclusive");
        }
        if !named && !selects {
            causes.required(place, "one of name or selector must be specified");
        }
        let text = causes.text_in(reference, "parameterNotFoundAction", place);
        if !text.is_empty() && !["Deny", "Allow"].contains(&text) {
            causes.unsupported(place.field("parameterNotFoundAction"), text, &["Deny", "Allow"]);
        }
    }
    check_matches(&spec["matchResources"], at.field("matchResources"), causes);
}

fn check_binding(value: &Value, causes: &mut Causes) {
    check_reference(value, causes);
    let (spec, at) = (&value["spec"], At::from("spec"));
    let actions: Vec<&str> =
        spec["validationActions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let place = at.field("validationActions");
    if actions.is_empty() {
        causes.required(place, "");
    }
    for (index, action) in actions.iter().enumerate() {
        let known = ["Audit", "Deny", "Warn"];
        if !known.contains(action) {
            causes.unsupported(place.item(index), action, &known);
        }
        if actions[..index].contains(action) {
            causes.duplicate(place.item(index), action);
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let shown = Value::from(actions).to_string();
        causes.invalid(place, &shown, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)");
    }
}

const CELLS: Cells = |row| cells(row, "/spec/validations");

fn cells(row: &Row<'_>, rules: &str) -> Vec<Value> {
    let kind = row.at("/spec/paramKind").filter(|kind| kind.is_object());
    let kind = kind.map_or("<unset>".to_owned(), |_| {
        format!("{}/{}", row.text("/spec/paramKind/apiVersion"), row.text("/spec/paramKind/kind"))
    });
    vec![row.name(), row.items(rules).len().into(), kind.into(), row.age()]
}

const CELLS_OF_BINDING: Cells = |row| {
    let (name, namespace) = (row.text("/spec/paramRef/name"), row.text("/spec/paramRef/namespace"));
    let reference = match (name, row.at("/spec/paramRef/selector")) {
        ("", None) => "<unset>".into(),
        ("", of) => selector(of),
        _ => format!("{}/{name}", if namespace.is_empty() { "*" } else { namespace }).into(),
    };
    vec![row.name(), row.text("/spec/policyName").into(), reference, row.age()]
};
