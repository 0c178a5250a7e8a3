//! `ValidatingAdmissionPolicy` and its binding: rules in CEL that refuse objects before they are stored.

use serde_json::{Value, json};

use super::at::At;
use super::causes::Refuse;
use super::print::{Cells, selector};
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

/// The defaults of what a policy or a binding matches.
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

fn check_policy(value: &Value, causes: &mut Causes) {
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
    let count = |list: &str| spec[list].as_array().map_or(0, Vec::len);
    if count("validations") + count("auditAnnotations") == 0 {
        let why = "validations or auditAnnotations must contain at least one item";
        causes.required(at.field("validations"), why);
        causes.required(at.field("auditAnnotations"), why);
    }
    let lists = [
        ("validations", &["expression"][..]),
        ("variables", &["name", "expression"]),
        ("auditAnnotations", &["key", "valueExpression"]),
    ];
    for (list, keys) in lists {
        let place = at.field(list);
        for (index, item) in spec[list].as_array().into_iter().flatten().enumerate() {
            for key in keys {
                let text = item[*key].as_str().unwrap_or_default();
                if text.trim().is_empty() {
                    let why = if key.to_lowercase().ends_with("expression") {
                        format!("{key} is not specified")
                    } else {
                        String::new()
                    };
                    causes.required(place.item(index).field(key), &why);
                }
            }
        }
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

fn check_binding(value: &Value, causes: &mut Causes) {
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

const CELLS: Cells = |row| {
    let kind = row.at("/spec/paramKind").filter(|kind| kind.is_object());
    let kind = kind.map_or("<unset>".to_owned(), |_| {
        format!("{}/{}", row.text("/spec/paramKind/apiVersion"), row.text("/spec/paramKind/kind"))
    });
    vec![row.name(), row.items("/spec/validations").len().into(), kind.into(), row.age()]
};

const CELLS_OF_BINDING: Cells = |row| {
    let (name, namespace) = (row.text("/spec/paramRef/name"), row.text("/spec/paramRef/namespace"));
    let reference = match (name, row.at("/spec/paramRef/selector")) {
        ("", None) => "<unset>".into(),
        ("", of) => selector(of),
        _ => format!("{}/{name}", if namespace.is_empty() { "*" } else { namespace }).into(),
    };
    vec![row.name(), row.text("/spec/policyName").into(), reference, row.age()]
};
