//! The checks of a container's environment variables, and of pod fields that containers can read.

use mock_cel::Quantity;
use mock_cel::formats::{qualified_name, subdomain};
use serde_json::Value;

use super::super::super::at::At;
use super::super::super::causes::Refuse;
use super::super::super::texts::{key, variable_name};
use super::{has, items, text};
use crate::status::Cause;

/// Fields of a pod that an environment variable can contain.
const FIELDS_OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of a pod that a file in a volume can contain.
const FIELDS_OF_FILES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Fields of a pod that the real server recognises but accepts neither in variables nor in files.
const OTHER_FIELDS: [&str; 4] = ["spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase"];

const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub(super) fn check(container: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let list = at.field("env");
    for (index, variable) in items(container, "env").iter().enumerate() {
        let at = list.item(index);
        let name = causes.text_in(variable, "name", at);
        if !name.is_empty() {
            causes.faults(at.field("name"), name, variable_name(name));
        }
        if has(variable, "valueFrom") {
            source(variable, at.field("valueFrom"), causes);
        }
    }
    let list = at.field("envFrom");
    for (index, from) in items(container, "envFrom").iter().enumerate() {
        all_of(from, list, list.item(index), causes);
    }
}

fn source(variable: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let from = &variable["valueFrom"];
    let mut sources = 0;
    for kind in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"] {
        if !has(from, kind) {
            continue;
        }
        sources += 1;
        let (given, at) = (&from[kind], at.field(kind));
        match kind {
            "fieldRef" => field_of_pod(given, &FIELDS_OF_VARIABLES, at, causes),
            "resourceFieldRef" => amount(given, false, at, causes),
            _ => key_of(given, at, causes),
        }
    }
    let why = match sources {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.invalid_text(at, "", why);
}

fn key_of(given: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    let name = text(given, "name");
    causes.faults(at.field("name"), name, subdomain(name));
    let entry = causes.text_in(given, "key", at);
    if !entry.is_empty() {
        causes.faults(at.field("key"), entry, key(entry));
    }
}

/// Checks an item of `envFrom`. Errors about a wrong number of sources name the list, as in a real server.
fn all_of(from: &Value, list: At<'_>, at: At<'_>, causes: &mut Vec<Cause>) {
    let prefix = text(from, "prefix");
    if !prefix.is_empty() {
        causes.faults(at.field("prefix"), prefix, variable_name(prefix));
    }
    let mut sources = 0;
    for kind in ["configMapRef", "secretRef"].into_iter().filter(|kind| has(from, kind)) {
        sources += 1;
        let at = at.field(kind);
        let name = causes.text_in(&from[kind], "name", at);
        if !name.is_empty() {
            causes.faults(at.field("name"), name, subdomain(&unfinished(name)));
        }
    }
    match sources {
        0 => causes.invalid_text(list, "", "must specify one of: `configMapRef` or `secretRef`"),
        1 => {}
        _ => causes.invalid_text(list, "", "may not have more than one field specified at a time"),
    }
}

/// Replaces a trailing dash of a name prefix by a letter, so that a prefix with a dash passes the check of names.
fn unfinished(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(start) if !start.is_empty() => format!("{start}a"),
        _ => name.to_owned(),
    }
}

/// Checks one file of a downward API volume.
pub(super) fn check_file(file: &Value, at: At<'_>, causes: &mut Vec<Cause>) {
    if has(file, "fieldRef") {
        field_of_pod(&file["fieldRef"], &FIELDS_OF_FILES, at.field("fieldRef"), causes);
        if has(file, "resourceFieldRef") {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            causes.invalid_text(at, "resource", why);
        }
    } else if has(file, "resourceFieldRef") {
        amount(&file["resourceFieldRef"], true, at.field("resourceFieldRef"), causes);
    } else {
        causes.required(at, "one of fieldRef and resourceFieldRef is required");
    }
}

fn field_of_pod(given: &Value, known: &[&str], at: At<'_>, causes: &mut Vec<Cause>) {
    let path = text(given, "fieldPath");
    let refuse = |causes: &mut Vec<Cause>, why: &str| {
        causes.invalid_text(at.field("fieldPath"), path, &format!("error converting fieldPath: {why}"));
    };
    let version = text(given, "apiVersion");
    if version.is_empty() {
        return causes.required(at.field("apiVersion"), "");
    }
    if path.is_empty() {
        return causes.required(at.field("fieldPath"), "");
    }
    if version != "v1" {
        return refuse(causes, &format!("unsupported pod version: {version}"));
    }
    if let Some((map, key)) =
        path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(map, _)| !map.is_empty())
    {
        return match map {
            "metadata.annotations" => causes.faults(at, key, qualified_name(&key.to_lowercase())),
            "metadata.labels" => causes.faults(at, key, qualified_name(key)),
            _ => refuse(causes, &format!("field label does not support subscript: {path}")),
        };
    }
    if known.contains(&path) || (path == "spec.host" && known.contains(&"spec.nodeName")) {
        return;
    }
    if [&FIELDS_OF_VARIABLES[..], &FIELDS_OF_FILES, &OTHER_FIELDS].concat().contains(&path) {
        let path = if path == "spec.host" { "spec.nodeName" } else { path };
        causes.unsupported(at.field("fieldPath"), path, known);
    } else {
        refuse(causes, &format!("field label not supported: {path}"));
    }
}

/// Checks a reference to an amount of a container's resource.
fn amount(given: &Value, in_file: bool, at: At<'_>, causes: &mut Vec<Cause>) {
    let resource = text(given, "resource");
    let is_pages = HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix));
    if in_file && text(given, "containerName").is_empty() {
        causes.required(at.field("containerName"), "");
    } else if resource.is_empty() {
        causes.required(at.field("resource"), "");
    } else if !AMOUNTS.contains(&resource) && !is_pages {
        causes.unsupported(at.field("resource"), resource, &AMOUNTS);
    }
    let Some(divisor) = given["divisor"].as_str().and_then(Quantity::parse).filter(|divisor| divisor.signum() != 0)
    else {
        return;
    };
    let divisor = divisor.canonical();
    let (known, what): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (&DIVISORS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (&DIVISORS, "local ephemeral storage"),
        _ if is_pages => (&DIVISORS, "hugepages"),
        _ => return,
    };
    if !known.contains(&divisor.as_str()) {
        let known = if what == "cpu" { "1m and 1".to_owned() } else { known.join(", ") };
        let why = format!("only divisor's values {known} are supported with the {what} resource");
        causes.invalid_text(at.field("divisor"), resource, &why);
    }
}
