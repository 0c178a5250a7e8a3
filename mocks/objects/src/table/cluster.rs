//! The columns of nodes, namespaces, rights, plain data, limits and extensions of the API.

use serde_json::Value;

use super::print::{NONE, Printer, Row, UNSET, amount};

const NAME: (&str, &str, i64) = ("Name", "string", 0);
const AGE: (&str, &str, i64) = ("Age", "string", 0);

/// For every kind that has no printer of its own.
pub(super) const PLAIN: Printer =
    Printer { columns: &[NAME, ("Created At", "date", 0)], cells: |row| vec![row.name(), row.created()] };

pub(super) const NAMESPACE: Printer = Printer {
    columns: &[NAME, ("Status", "string", 0), AGE],
    cells: |row| vec![row.name(), row.text("/status/phase").into(), row.age()],
};

pub(super) const NODE: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0),
        ("Roles", "string", 0),
        AGE,
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells: |row| {
        let address = |kind: &str| {
            let found = row.items("/status/addresses").find(|address| address["type"] == kind);
            Value::from(found.and_then(|address| address["address"].as_str()).unwrap_or(NONE))
        };
        let system = |field: &str| row.text_or(&format!("/status/nodeInfo/{field}"), "<unknown>");
        vec![
            row.name(),
            node_status(row).into(),
            node_roles(row).into(),
            row.age(),
            row.text("/status/nodeInfo/kubeletVersion").into(),
            address("InternalIP"),
            address("ExternalIP"),
            system("osImage"),
            system("kernelVersion"),
            system("containerRuntimeVersion"),
        ]
    },
};

pub(super) const CONFIG_MAP: Printer = Printer {
    columns: &[NAME, ("Data", "string", 0), AGE],
    cells: |row| vec![row.name(), (entries(row, "/data") + entries(row, "/binaryData")).into(), row.age()],
};

pub(super) const SECRET: Printer = Printer {
    columns: &[NAME, ("Type", "string", 0), ("Data", "string", 0), AGE],
    cells: |row| vec![row.name(), row.text("/type").into(), entries(row, "/data").into(), row.age()],
};

pub(super) const SERVICE_ACCOUNT: Printer = Printer {
    columns: &[NAME, ("Secrets", "string", 0), AGE],
    cells: |row| vec![row.name(), row.items("/secrets").len().into(), row.age()],
};

pub(super) const LEASE: Printer = Printer {
    columns: &[NAME, ("Holder", "string", 0), AGE],
    cells: |row| vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()],
};

pub(super) const ROLE_BINDING: Printer = Printer {
    columns: &[
        NAME,
        ("Role", "string", 0),
        AGE,
        ("Users", "string", 1),
        ("Groups", "string", 1),
        ("ServiceAccounts", "string", 1),
    ],
    cells: |row| {
        let subjects = |kind: &str| {
            let names = row.items("/subjects").filter(|subject| subject["kind"] == kind).map(|subject| {
                let text = |key: &str| subject[key].as_str().unwrap_or_default();
                match kind {
                    "ServiceAccount" => format!("{}/{}", text("namespace"), text("name")),
                    _ => text("name").to_owned(),
                }
            });
            Value::from(names.collect::<Vec<_>>().join(", "))
        };
        let role = format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name"));
        vec![row.name(), role.into(), row.age(), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
    },
};

pub(super) const QUOTA: Printer = Printer {
    columns: &[NAME, ("Request", "string", 0), ("Limit", "string", 0), AGE],
    cells: |row| {
        let hard = || row.at("/status/hard").and_then(Value::as_object).into_iter().flatten();
        let used = |name: &str| row.at("/status/used").and_then(|used| used[name].as_str()).unwrap_or("0");
        let part = |limits: bool| {
            let of_part = hard().filter(|(name, _)| name.starts_with("limits.") == limits);
            let each = of_part.map(|(name, hard)| format!("{name}: {}/{}", used(name), hard.as_str().unwrap_or("0")));
            Value::from(each.collect::<Vec<_>>().join(", "))
        };
        vec![row.name(), part(false), part(true), row.age()]
    },
};

pub(super) const DISRUPTION_BUDGET: Printer = Printer {
    columns: &[
        NAME,
        ("Min Available", "string", 0),
        ("Max Unavailable", "string", 0),
        ("Allowed Disruptions", "integer", 0),
        AGE,
    ],
    cells: |row| {
        vec![
            row.name(),
            amount(row.at("/spec/minAvailable"), "N/A"),
            amount(row.at("/spec/maxUnavailable"), "N/A"),
            row.number("/status/disruptionsAllowed").into(),
            row.age(),
        ]
    },
};

pub(super) const AUTOSCALER: Printer = Printer {
    columns: &[
        NAME,
        ("Reference", "string", 0),
        ("Targets", "string", 0),
        ("MinPods", "string", 0),
        ("MaxPods", "integer", 0),
        ("Replicas", "integer", 0),
        AGE,
    ],
    cells: |row| {
        let target = |key: &str| row.text(&format!("/spec/scaleTargetRef/{key}"));
        vec![
            row.name(),
            format!("{}/{}", target("kind"), target("name")).into(),
            super::metrics::targets(row),
            amount(row.at("/spec/minReplicas"), UNSET),
            row.number("/spec/maxReplicas").into(),
            row.number("/status/currentReplicas").into(),
            row.age(),
        ]
    },
};

pub(super) const PRIORITY_CLASS: Printer = Printer {
    columns: &[NAME, ("Value", "integer", 0), ("Global-Default", "boolean", 0), AGE, ("PreemptionPolicy", "string", 0)],
    cells: |row| {
        let policy = row.text_or("/preemptionPolicy", "");
        vec![row.name(), row.number("/value").into(), row.flag("/globalDefault"), row.age(), policy]
    },
};

pub(super) const RUNTIME_CLASS: Printer = Printer {
    columns: &[NAME, ("Handler", "string", 0), AGE],
    cells: |row| vec![row.name(), row.text("/handler").into(), row.age()],
};

pub(super) const SIGNING_REQUEST: Printer = Printer {
    columns: &[
        NAME,
        AGE,
        ("SignerName", "string", 0),
        ("Requestor", "string", 0),
        ("RequestedDuration", "string", 0),
        ("Condition", "string", 0),
    ],
    cells: |row| {
        let wanted = row.at("/spec/expirationSeconds").and_then(Value::as_i64);
        vec![
            row.name(),
            row.age(),
            row.text_or("/spec/signerName", NONE),
            row.text("/spec/username").into(),
            wanted.map_or(NONE.into(), |seconds| super::duration(seconds).into()),
            signing_condition(row).into(),
        ]
    },
};

pub(super) const WEBHOOKS: Printer = Printer {
    columns: &[NAME, ("Webhooks", "integer", 0), AGE],
    cells: |row| vec![row.name(), row.items("/webhooks").len().into(), row.age()],
};

pub(super) const API_SERVICE: Printer = Printer {
    columns: &[NAME, ("Service", "string", 0), ("Available", "string", 0), AGE],
    cells: |row| {
        let service = match row.text("/spec/service/name") {
            "" => "Local".to_owned(),
            name => format!("{}/{name}", row.text("/spec/service/namespace")),
        };
        let available = row.condition("Available").map_or_else(
            || "Unknown".to_owned(),
            |condition| {
                let text = |key: &str| condition[key].as_str().unwrap_or_default();
                match text("status") {
                    "True" => "True".to_owned(),
                    other => format!("{other} ({})", text("reason")),
                }
            },
        );
        vec![row.name(), service.into(), available.into(), row.age()]
    },
};

fn entries(row: &Row<'_>, pointer: &str) -> usize {
    row.at(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let stopped = row.at("/spec/unschedulable") == Some(&Value::Bool(true));
    if stopped { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

fn node_roles(row: &Row<'_>) -> String {
    let labels = row.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}

fn signing_condition(row: &Row<'_>) -> String {
    let has = |kind: &str| row.condition(kind).is_some();
    let mut all: Vec<&str> = ["Approved", "Denied", "Failed"].into_iter().filter(|kind| has(kind)).collect();
    if all.is_empty() {
        all.push("Pending");
    }
    if !row.text("/status/certificate").is_empty() {
        all.push("Issued");
    }
    all.join(",")
}
