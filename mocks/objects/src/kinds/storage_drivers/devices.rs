//! The checks of requests for devices, in claims, in templates of claims and in device classes.

use mock_cel::formats::{label, label_value, qualified_name, subdomain};
use serde_json::Value;

use super::super::Causes;
use super::super::at::At;
use super::super::causes::Refuse;
use super::driver_name;

/// Largest `parameters` of a driver's configuration.
const PARAMETERS_MAX_BYTES: usize = 10 * 1024;
/// The error for a reference that names no request.
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

fn items<'v>(value: &'v Value, list: &str) -> &'v [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}

/// Checks the requests, constraints and configurations of a claim.
pub(super) fn check_claim(devices: &Value, at: At<'_>, causes: &mut Causes) {
    let mut names: Vec<String> = Vec::new();
    let list = at.field("requests");
    for (index, request) in items(devices, "requests").iter().enumerate() {
        let at = list.item(index);
        let name = request_name(request, at, causes);
        if names.iter().any(|known| known == name) {
            causes.duplicate(at.field("name"), name);
        }
        names.push(name.to_owned());
        let subrequests = items(request, "firstAvailable");
        match (request["exactly"].is_object(), subrequests.is_empty()) {
            (true, true) | (false, false) => {}
            (false, true) => causes.required(at, "exactly one of `exactly` or `firstAvailable` is required"),
            (true, false) => {
                let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                causes.invalid(at, "null", why);
            }
        }
        let list = at.field("firstAvailable");
        for (number, subrequest) in subrequests.iter().enumerate() {
            let at = list.item(number);
            let inner = format!("{name}/{}", request_name(subrequest, at, causes));
            if names.contains(&inner) {
                causes.duplicate(at.field("name"), subrequest["name"].as_str().unwrap_or_default());
            }
            names.push(inner);
            check_request(subrequest, at, causes);
        }
        if request["exactly"].is_object() {
            check_request(&request["exactly"], at.field("exactly"), causes);
        }
    }
    let list = at.field("constraints");
    for (index, constraint) in items(devices, "constraints").iter().enumerate() {
        let at = list.item(index);
        check_references(constraint, &names, at, causes);
        match constraint["matchAttribute"].as_str() {
            Some(name) => attribute(name, at.field("matchAttribute"), causes),
            None => causes.required(at.field("matchAttribute"), ""),
        }
    }
    check_config(devices, at, Some(&names), causes);
}

fn request_name<'v>(request: &'v Value, at: At<'_>, causes: &mut Causes) -> &'v str {
    let name = request["name"].as_str().unwrap_or_default();
    causes.faults(at.field("name"), name, label(name));
    name
}

fn check_request(request: &Value, at: At<'_>, causes: &mut Causes) {
    let class = causes.text_in(request, "deviceClassName", at);
    if !class.is_empty() {
        causes.faults(at.field("deviceClassName"), class, subdomain(class));
    }
    check_selectors(request, at, causes);
    let (mode, count) = (request["allocationMode"].as_str().unwrap_or_default(), request["count"].as_i64());
    let count = count.unwrap_or(0);
    match mode {
        "All" if count != 0 => {
            causes.invalid(at.field("count"), &count, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count <= 0 => causes.invalid(at.field("count"), &count, "must be greater than zero"),
        "All" | "ExactCount" => {}
        other => causes.unsupported(at.field("allocationMode"), other, &["All", "ExactCount"]),
    }
    let list = at.field("tolerations");
    for (index, toleration) in items(request, "tolerations").iter().enumerate() {
        let (at, text) = (list.item(index), |key: &str| toleration[key].as_str().unwrap_or_default());
        if !text("key").is_empty() {
            causes.faults(at.field("key"), text("key"), qualified_name(text("key")));
        }
        match text("operator") {
            "Exists" if !text("value").is_empty() => {
                causes.invalid_text(at.field("value"), text("value"), "must be empty for operator `Exists`");
            }
            "Exists" => {}
            "Equal" => causes.faults(at.field("value"), text("value"), label_value(text("value"))),
            "" => causes.required(at.field("operator"), ""),
            other => causes.unsupported(at.field("operator"), other, &["Equal", "Exists"]),
        }
        causes.one_of(&toleration["effect"], at.field("effect"), &["", "NoExecute", "NoSchedule"]);
    }
}

/// Checks that each selector has an expression. The expressions are not compiled.
pub(super) fn check_selectors(of: &Value, at: At<'_>, causes: &mut Causes) {
    let list = at.field("selectors");
    for (index, selector) in items(of, "selectors").iter().enumerate() {
        if selector["cel"].is_null() {
            causes.required(list.item(index).field("cel"), "");
        }
    }
}

/// Checks the configurations of drivers. A claim's configurations may refer to the requests in `names`.
pub(super) fn check_config(of: &Value, at: At<'_>, names: Option<&[String]>, causes: &mut Causes) {
    let list = at.field("config");
    for (index, config) in items(of, "config").iter().enumerate() {
        let at = list.item(index);
        if let Some(names) = names {
            check_references(config, names, at, causes);
        }
        let (opaque, below) = (&config["opaque"], at.field("opaque"));
        if opaque.is_null() {
            causes.required(below, "");
            continue;
        }
        driver_name(opaque["driver"].as_str().unwrap_or_default(), false, below.field("driver"), causes);
        let place = below.field("parameters");
        match &opaque["parameters"] {
            Value::Null => causes.required(place, ""),
            Value::Object(_) if opaque["parameters"].to_string().len() > PARAMETERS_MAX_BYTES => {
                causes.too_long(place, PARAMETERS_MAX_BYTES);
            }
            Value::Object(_) => {}
            _ => causes.invalid_text(place, "<value omitted>", "must be a valid JSON object"),
        }
    }
}

fn check_references(of: &Value, names: &[String], at: At<'_>, causes: &mut Causes) {
    let list = at.field("requests");
    let given = items(of, "requests");
    for (index, name) in given.iter().enumerate() {
        let (at, text) = (list.item(index), name.as_str().unwrap_or_default());
        let segments: Vec<&str> = text.split('/').collect();
        if segments.len() <= 2 {
            for segment in &segments {
                causes.faults(at, segment, label(segment));
            }
        }
        if segments.len() > 2 || !names.iter().any(|known| known == text) {
            causes.invalid_text(at, text, NO_REQUEST);
        }
        if given[..index].contains(name) {
            causes.duplicate(at, text);
        }
    }
}

/// Checks the name of a device attribute: `DOMAIN/NAME`.
fn attribute(name: &str, at: At<'_>, causes: &mut Causes) {
    let is_word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (domain, word) = name.split_once('/').unwrap_or(("", name));
    if name.is_empty() {
        return causes.required(at, "name required");
    }
    if name.contains('/') {
        driver_name(domain, false, at, causes);
    }
    if !is_word(word) {
        causes.invalid_text(at, word, "must be a valid C identifier");
    }
    if !name.contains('/') {
        causes.invalid_text(at, name, "must include a domain");
    }
}
