//! Which values the further built-in kinds allow: those that people write by hand and a real server refuses most often.
//!
//! Owns one function a kind, with the real server's field names and texts; kinds with longer rules are in `content`.

use serde_json::{Map, Value};

use super::causes::{at_least, duplicate, unsupported};
use super::pod;
use crate::status::Cause;

/// The highest priority that is not the system's own.
const PRIORITY_MAX: i64 = 1_000_000_000;

type Causes = Vec<Cause>;

/// The selector of `ReplicaSet`s, `StatefulSet`s and `DaemonSet`s, and the pods that they make.
pub(super) fn workload(value: &Value, kind: &str, causes: &mut Causes) {
    let spec = &value["spec"];
    at_least(value, "/spec/replicas", "spec.replicas", 0, causes);
    let selector = &spec["selector"];
    // The real server has an error for an empty selector, but not for one of daemon sets that is absent.
    if selector.is_null() && kind != "daemonset" {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.as_object().is_some_and(Map::is_empty) {
        causes.push(Cause::invalid("spec.selector", "{}", &format!("empty selector is invalid for {kind}")));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels.to_string(), why));
    }
    template(&spec["template"]["spec"], "spec.template.spec", causes);
}

/// A replication controller's selector is a plain map.
pub(super) fn replication_controller(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    at_least(value, "/spec/replicas", "spec.replicas", 0, causes);
    let selector = spec["selector"].as_object();
    if selector.is_none_or(Map::is_empty) {
        causes.push(Cause::required("spec.selector", ""));
    }
    if spec["template"].is_null() {
        causes.push(Cause::required("spec.template", ""));
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector.into_iter().flatten().any(|(key, text)| labels.get(key) != Some(text)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels.to_string(), why));
    }
    template(&spec["template"]["spec"], "spec.template.spec", causes);
}

/// The pods of a template that is kept running.
fn template(spec: &Value, at: &str, causes: &mut Causes) {
    pod::check(spec, at, causes);
    let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
    if matches!(policy, "OnFailure" | "Never") {
        causes.push(unsupported(&format!("{at}.restartPolicy"), policy, "\"Always\""));
    }
}

fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, text)| labels.get(key) == Some(text));
    let fits = |expression: &Value| {
        let label = labels.get(expression["key"].as_str().unwrap_or_default());
        let among = || expression["values"].as_array().into_iter().flatten().any(|value| Some(value) == label);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => true,
        }
    };
    equal && selector["matchExpressions"].as_array().into_iter().flatten().all(fits)
}

pub(super) fn job(value: &Value, at: &str, causes: &mut Causes) {
    let Some(spec) = value.pointer(at) else { return };
    let field = at.trim_start_matches('/').replace('/', ".");
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        at_least(value, &format!("{at}/{key}"), &format!("{field}.{key}"), 0, causes);
    }
    let template = &spec["template"]["spec"];
    pod::check(template, &format!("{field}.template.spec"), causes);
    if template["restartPolicy"].as_str().unwrap_or("Always") == "Always" {
        let why = "valid values: \"OnFailure\", \"Never\"";
        causes.push(Cause::required(&format!("{field}.template.spec.restartPolicy"), why));
    }
}

pub(super) fn cron_job(value: &Value, causes: &mut Causes) {
    let schedule = value.pointer("/spec/schedule").and_then(Value::as_str).unwrap_or_default();
    if schedule.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else if let Some(why) = not_a_schedule(schedule) {
        causes.push(Cause::invalid("spec.schedule", &format!("\"{schedule}\""), &why));
    }
    let policy = value.pointer("/spec/concurrencyPolicy").and_then(Value::as_str).unwrap_or("Allow");
    if !matches!(policy, "Allow" | "Forbid" | "Replace") {
        causes.push(unsupported("spec.concurrencyPolicy", policy, "\"Allow\", \"Forbid\", \"Replace\""));
    }
    for key in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        at_least(value, &format!("/spec/{key}"), &format!("spec.{key}"), 0, causes);
    }
    job(value, "/spec/jobTemplate/spec", causes);
}

/// Why a text is no schedule of five fields or one of the words for one; what the fields hold is looked at roughly.
fn not_a_schedule(text: &str) -> Option<String> {
    if let Some(word) = text.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        let every =
            word.strip_prefix("every ").is_some_and(|span| span.starts_with(|first: char| first.is_ascii_digit()));
        return (!known.contains(&word) && !every).then(|| format!("unrecognized descriptor: {text}"));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != 5 {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    let plain = |field: &&&str| !field.chars().all(|c| c.is_ascii_alphanumeric() || "*/,-?".contains(c));
    fields.iter().find(plain).map(|field| format!("failed to parse int from {field}"))
}

pub(super) fn service(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && spec["clusterIP"] != "None" && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    let (mut names, mut numbers) = (Vec::new(), Vec::new());
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            causes.push(Cause::required(&format!("{at}.name"), ""));
        } else if !name.is_empty() && !super::names::is_dns_label(name) {
            causes.push(Cause::invalid(&format!("{at}.name"), &format!("\"{name}\""), super::names::LABEL));
        } else if !name.is_empty() && names.contains(&name) {
            causes.push(duplicate(&format!("{at}.name"), name));
        }
        names.push(name);
        for key in ["port", "targetPort"] {
            let Some(number) = port[key].as_i64().or_else(|| port[key].is_null().then_some(0)) else { continue };
            if !(1..=65535).contains(&number) {
                let why = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(&format!("{at}.{key}"), &number.to_string(), why));
            }
        }
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
            causes.push(unsupported(&format!("{at}.protocol"), protocol, "\"SCTP\", \"TCP\", \"UDP\""));
        }
        let number = (protocol, port["port"].as_i64());
        if numbers.contains(&number) {
            let shown = format!("{{\"protocol\":\"{protocol}\",\"port\":{}}}", port["port"]);
            let message = format!("Duplicate value: {shown}");
            causes.push(Cause { reason: "FieldValueDuplicate", field: at, message });
        }
        numbers.push(number);
    }
    if !matches!(kind, "ClusterIP" | "ExternalName" | "LoadBalancer" | "NodePort") {
        causes.push(unsupported("spec.type", kind, "\"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\""));
    }
    if kind == "ExternalName" && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    let affinity = spec["sessionAffinity"].as_str().unwrap_or_default();
    if !matches!(affinity, "ClientIP" | "None") {
        causes.push(unsupported("spec.sessionAffinity", affinity, "\"ClientIP\", \"None\""));
    }
}

pub(super) fn ingress(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        let why = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", "null", why));
    }
    for (index, rule) in rules.iter().enumerate() {
        let Some(http) = rule.get("http") else { continue };
        let at = format!("spec.rules[{index}].http.paths");
        let paths = http["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
        if paths.is_empty() {
            causes.push(Cause::required(&at, ""));
        }
        for (number, path) in paths.iter().enumerate() {
            let at = format!("{at}[{number}]");
            let text = path["path"].as_str().unwrap_or_default();
            match path["pathType"].as_str() {
                None => causes.push(Cause::required(&format!("{at}.pathType"), "pathType must be specified")),
                Some("Exact" | "Prefix") if !text.starts_with('/') => {
                    let why = "must be an absolute path";
                    causes.push(Cause::invalid(&format!("{at}.path"), &format!("\"{text}\""), why));
                }
                Some("Exact" | "Prefix" | "ImplementationSpecific") => {}
                Some(other) => {
                    let allowed = "\"Exact\", \"ImplementationSpecific\", \"Prefix\"";
                    causes.push(unsupported(&format!("{at}.pathType"), other, allowed));
                }
            }
            if path["backend"]["service"]["name"].as_str().is_some_and(str::is_empty) {
                causes.push(Cause::required(&format!("{at}.backend.service.name"), ""));
            }
        }
    }
}

pub(super) fn claim(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    access_modes(spec, causes);
    if spec["resources"]["requests"]["storage"].is_null() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
}

pub(super) fn volume(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    access_modes(spec, causes);
    let capacity = spec["capacity"].as_object();
    if capacity.is_none_or(Map::is_empty) {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if capacity.is_none_or(|capacity| capacity.len() > 1 || !capacity.contains_key("storage")) {
        let shown = spec["capacity"].to_string();
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        causes.push(Cause { reason: "FieldValueNotSupported", field: "spec.capacity".to_owned(), message });
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if !spec.as_object().into_iter().flatten().any(|(key, _)| !plain.contains(&key.as_str())) {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
}

fn access_modes(spec: &Value, causes: &mut Causes) {
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in spec["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !known.contains(&mode) {
            let allowed = known.map(|mode| format!("\"{mode}\"")).join(", ");
            causes.push(unsupported("spec.accessModes", mode, &allowed));
        }
    }
}

pub(super) fn required(value: &Value, pointer: &str, causes: &mut Causes) {
    if value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().is_empty() {
        causes.push(Cause::required(&pointer.trim_start_matches('/').replace('/', "."), ""));
    }
}

pub(super) fn priority_class(value: &Value, causes: &mut Causes) {
    let system = super::meta(value, "name").starts_with("system-");
    if value["value"].as_i64().unwrap_or(0) > PRIORITY_MAX && !system {
        let why = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        causes.push(Cause::forbidden("value", &why));
    }
}

pub(super) fn role(value: &Value, is_cluster: bool, causes: &mut Causes) {
    for (index, rule) in value["rules"].as_array().into_iter().flatten().enumerate() {
        let at = format!("rules[{index}]");
        let count = |key: &str| rule[key].as_array().map_or(0, Vec::len);
        if count("verbs") == 0 {
            causes.push(Cause::required(&format!("{at}.verbs"), "verbs must contain at least one value"));
        }
        if count("nonResourceURLs") > 0 {
            if !is_cluster {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(
                    &format!("{at}.nonResourceURLs"),
                    &rule["nonResourceURLs"].to_string(),
                    why,
                ));
            } else if count("apiGroups") + count("resources") + count("resourceNames") > 0 {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Cause::invalid(
                    &format!("{at}.nonResourceURLs"),
                    &rule["nonResourceURLs"].to_string(),
                    why,
                ));
            }
            continue;
        }
        for (key, why) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if count(key) == 0 {
                causes.push(Cause::required(&format!("{at}.{key}"), why));
            }
        }
    }
}

pub(super) fn binding(value: &Value, is_cluster: bool, causes: &mut Causes) {
    let role = &value["roleRef"];
    let kind = role["kind"].as_str().unwrap_or_default();
    let (fits, allowed) = if is_cluster {
        (kind == "ClusterRole", "\"ClusterRole\"")
    } else {
        (matches!(kind, "Role" | "ClusterRole"), "\"Role\", \"ClusterRole\"")
    };
    if !fits {
        causes.push(unsupported("roleRef.kind", kind, allowed));
    }
    if role["name"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    for (index, subject) in value["subjects"].as_array().into_iter().flatten().enumerate() {
        let at = format!("subjects[{index}]");
        let text = |key: &str| subject[key].as_str().unwrap_or_default();
        if text("name").is_empty() {
            causes.push(Cause::required(&format!("{at}.name"), ""));
        }
        match text("kind") {
            "ServiceAccount" if text("namespace").is_empty() && is_cluster => {
                causes.push(Cause::required(&format!("{at}.namespace"), ""));
            }
            "ServiceAccount" | "User" | "Group" => {}
            other => {
                let allowed = "\"ServiceAccount\", \"User\", \"Group\"";
                causes.push(unsupported(&format!("{at}.kind"), other, allowed));
            }
        }
    }
}

pub(super) fn disruption_budget(value: &Value, causes: &mut Causes) {
    let spec = &value["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        causes.push(Cause::invalid("spec", &spec.to_string(), "minAvailable and maxUnavailable cannot be both set"));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let field = format!("spec.{key}");
        at_least(value, &format!("/spec/{key}"), &field, 0, causes);
        let Some(text) = spec[key].as_str() else { continue };
        let share = text.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
        if share.is_none() {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(&field, &format!("\"{text}\""), why));
        } else if share > Some(100) {
            causes.push(Cause::invalid(&field, &format!("\"{text}\""), "must not be greater than 100%"));
        }
    }
}

/// The handler of a runtime class is part of a file name on every node.
pub(super) fn runtime_class(value: &Value, causes: &mut Causes) {
    let handler = value["handler"].as_str().unwrap_or_default();
    if !super::names::is_dns_label(handler) {
        causes.push(Cause::invalid("handler", &format!("\"{handler}\""), super::names::LABEL));
    }
}

/// A request for a certificate is one in PEM.
pub(super) fn signing_request(value: &Value, causes: &mut Causes) {
    use base64::Engine as _;
    let request = value.pointer("/spec/request").and_then(Value::as_str).unwrap_or_default();
    let decoded = base64::engine::general_purpose::STANDARD.decode(request).unwrap_or_default();
    if !decoded.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        causes.push(Cause::invalid("spec.request", "\"…\"", why));
    }
    for (key, list) in [("signerName", false), ("usages", true)] {
        let found = &value["spec"][key];
        let empty =
            if list { found.as_array().is_none_or(Vec::is_empty) } else { found.as_str().is_none_or(str::is_empty) };
        if empty {
            causes.push(Cause::required(&format!("spec.{key}"), ""));
        }
    }
}

pub(super) fn quota(value: &Value, causes: &mut Causes) {
    for (name, amount) in value.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten() {
        let negative =
            amount.as_str().is_some_and(|text| text.starts_with('-')) || amount.as_f64().is_some_and(|n| n < 0.0);
        if negative {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(&format!("spec.hard[{name}]"), &amount.to_string(), why));
        }
    }
}

pub(super) fn revision(value: &Value, causes: &mut Causes) {
    if value["data"].is_null() {
        causes.push(Cause::required("data", "data is mandatory"));
    }
    at_least(value, "/revision", "revision", 0, causes);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::catalogue::Catalogue;
    use crate::{defaults, object};

    /// The fields that are wrong with an object as a client sends it.
    fn wrong(full_name: &str, mut value: serde_json::Value) -> Vec<String> {
        let catalogue = Catalogue::builtin();
        let resource = catalogue.by_full_name(full_name).unwrap();
        defaults::apply(&mut value, resource, jiff::Timestamp::UNIX_EPOCH);
        object::check_content(&value, resource).into_iter().map(|cause| cause.field).collect()
    }

    /// Kinds that the server of the comparison does not serve in this version; the others are compared with it.
    #[test]
    fn kinds_that_came_later() {
        let pod =
            |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
        let cron = |schedule: &str, policy: &str| json!({"spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": pod(policy)}}}});
        for schedule in ["*/5 * * * *", "@hourly", "0 0 1,15 * mon-fri", "@every 1h"] {
            assert_eq!(wrong("cronjobs.batch", cron(schedule, "Never")), Vec::<String>::new(), "{schedule}");
        }
        for schedule in ["x", "* * * *", "@often", "* * * * $"] {
            assert_eq!(wrong("cronjobs.batch", cron(schedule, "Never")), ["spec.schedule"], "{schedule}");
        }
        let always = wrong("cronjobs.batch", cron("@daily", "Always"));
        assert_eq!(always, ["spec.jobTemplate.spec.template.spec.restartPolicy"]);
        let budget = |spec| wrong("poddisruptionbudgets.policy", json!({"spec": spec}));
        assert_eq!(budget(json!({"minAvailable": 1, "maxUnavailable": 1})), ["spec"]);
        assert_eq!(budget(json!({"minAvailable": "half"})), ["spec.minAvailable"]);
        assert_eq!(budget(json!({"maxUnavailable": "101%"})), ["spec.maxUnavailable"]);
        assert_eq!(budget(json!({"maxUnavailable": "100%"})), Vec::<String>::new());
    }

    #[test]
    fn expressions_select_labels_too() {
        let set = |operator: &str, values: serde_json::Value| {
            let selector = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
            let template =
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
            wrong("replicasets.apps", json!({"spec": {"selector": selector, "template": template}}))
        };
        assert_eq!(set("In", json!(["b", "c"])), Vec::<String>::new());
        assert_eq!(set("Exists", json!([])), Vec::<String>::new());
        assert_eq!(set("NotIn", json!(["b"])), ["spec.template.metadata.labels"]);
        assert_eq!(set("DoesNotExist", json!([])), ["spec.template.metadata.labels"]);
    }
}
