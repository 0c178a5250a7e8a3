//! Which values a pod allows, alone or in a template: the rules that people break by hand.

use mock_cel::Quantity;
use mock_cel::formats::{LABEL, is_label};
use serde_json::Value;

use crate::kinds::causes::{duplicate, unsupported};
use crate::status::Cause;

const ENVIRONMENT: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or \
                           '.', and must not start with a digit";

/// Answers what is wrong with a pod specification; `at` is where it stands.
pub(in crate::kinds) fn check(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let policy = spec["restartPolicy"].as_str().unwrap_or("Always");
    if !matches!(policy, "Always" | "OnFailure" | "Never") {
        causes.push(unsupported(&format!("{at}.restartPolicy"), policy, "\"Always\", \"OnFailure\", \"Never\""));
    }
    let resolver = spec["dnsPolicy"].as_str().unwrap_or("ClusterFirst");
    if !matches!(resolver, "ClusterFirst" | "ClusterFirstWithHostNet" | "Default" | "None") {
        let allowed = "\"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"";
        causes.push(unsupported(&format!("{at}.dnsPolicy"), resolver, allowed));
    }
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required(&format!("{at}.containers"), ""));
    }
    let mut known: Vec<&str> = Vec::new();
    for list in ["initContainers", "containers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.{list}[{index}]");
            let name = container["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                causes.push(Cause::required(&format!("{at}.name"), ""));
            } else if !is_label(name) || name.len() > 63 {
                causes.push(Cause::invalid(&format!("{at}.name"), &format!("\"{name}\""), LABEL));
            } else if known.contains(&name) {
                causes.push(duplicate(&format!("{at}.name"), name));
            }
            known.push(name);
            one(container, spec, &at, causes);
        }
    }
}

fn one(container: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    if container["image"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required(&format!("{at}.image"), ""));
    }
    let pull = container["imagePullPolicy"].as_str().unwrap_or("Always");
    if !matches!(pull, "Always" | "IfNotPresent" | "Never") {
        let allowed = "\"Always\", \"IfNotPresent\", \"Never\"";
        causes.push(unsupported(&format!("{at}.imagePullPolicy"), pull, allowed));
    }
    ports(container, at, causes);
    environment(container, at, causes);
    mounts(container, spec, at, causes);
    probes(container, at, causes);
    resources(container, at, causes);
}

fn ports(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{at}.ports[{index}].containerPort");
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => causes.push(Cause::required(&field, "")),
            1..=65535 => {}
            other => causes.push(Cause::invalid(&field, &other.to_string(), "must be between 1 and 65535, inclusive")),
        }
    }
}

fn environment(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
        let field = format!("{at}.env[{index}].name");
        let name = variable["name"].as_str().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() {
            causes.push(Cause::required(&field, ""));
        } else if name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(plain) {
            causes.push(Cause::invalid(&field, &format!("\"{name}\""), ENVIRONMENT));
        }
        let given = variable["value"].as_str().is_some_and(|text| !text.is_empty());
        if given && variable["valueFrom"].is_object() {
            let why = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(&format!("{at}.env[{index}].valueFrom"), "\"\"", why));
        }
    }
}

fn mounts(container: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let name = &mount["name"];
        let known = spec["volumes"].as_array().into_iter().flatten().any(|volume| volume["name"] == *name);
        if !known {
            let field = format!("{at}.volumeMounts[{index}].name");
            causes.push(Cause { reason: "FieldValueNotFound", field, message: format!("Not found: {name}") });
        }
    }
}

fn probes(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(get) = container.pointer(&format!("/{probe}/httpGet")) else { continue };
        let fits = get["port"].as_i64().map_or(get["port"].is_string(), |port| (1..=65535).contains(&port));
        if !fits {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(&format!("{at}.{probe}.httpGet.port"), &get["port"].to_string(), why));
        }
    }
}

/// Nothing may be less than nothing, and no more may be asked for than is allowed.
fn resources(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let amount = |value: &Value| value.as_str().and_then(Quantity::parse);
    let (limits, requests) = (&container["resources"]["limits"], &container["resources"]["requests"]);
    let mut check_sign = |which: &str, name: &str, given: &Value| {
        if amount(given).is_some_and(|amount| amount.signum() < 0) {
            let field = format!("{at}.resources.{which}[{name}]");
            causes.push(Cause::invalid(&field, &given.to_string(), "must be greater than or equal to 0"));
        }
    };
    for (name, limit) in limits.as_object().into_iter().flatten() {
        check_sign("limits", name, limit);
    }
    for (name, asked) in requests.as_object().into_iter().flatten() {
        check_sign("requests", name, asked);
    }
    for (name, asked) in requests.as_object().into_iter().flatten() {
        if let (Some(wanted), Some(limit)) = (amount(asked), amount(&limits[name]))
            && wanted > limit
        {
            let why = format!("must be less than or equal to {name} limit");
            causes.push(Cause::invalid(&format!("{at}.resources.requests"), &asked.to_string(), &why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is wrong with the resources of a container.
    fn wrong(limits: &Value, requests: &Value) -> Vec<(String, String)> {
        let mut causes = Vec::new();
        resources(&json!({"resources": {"limits": limits, "requests": requests}}), "c", &mut causes);
        causes.into_iter().map(|cause| (cause.field, cause.message)).collect()
    }

    #[test]
    fn amounts_are_not_negative_and_requests_not_above_limits() {
        assert_eq!(wrong(&json!({"cpu": "1", "memory": "0"}), &json!({"cpu": "1000m", "memory": "0"})), []);
        let above = wrong(&json!({"cpu": "1"}), &json!({"cpu": "1100m"}));
        let why = "Invalid value: \"1100m\": must be less than or equal to cpu limit".to_owned();
        assert_eq!(above, [("c.resources.requests".to_owned(), why)]);
        let sign = |which: &str| {
            let why = "Invalid value: \"-1\": must be greater than or equal to 0".to_owned();
            [(format!("c.resources.{which}[cpu]"), why)]
        };
        assert_eq!(wrong(&json!({"cpu": "-1"}), &json!({})), sign("limits"));
        assert_eq!(wrong(&json!({}), &json!({"cpu": "-1"})), sign("requests"));
    }
}
