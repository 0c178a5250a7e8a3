//! `RoleBinding` and `ClusterRoleBinding`: grant a role to users.

use serde_json::{Value, json};

use super::causes::unsupported;
use super::print::Cells;
use super::{Causes, Generation, Kind, Names};
use crate::fields::{each, set};
use crate::status::Cause;

const RIGHTS: &str = "rbac.authorization.k8s.io";

pub(super) const CLUSTER_ROLE_BINDING: Kind = Kind {
    about: "Who has a role in the whole cluster.",
    cells: CELLS,
    defaults,
    names: Names::Path,
    check: |value, causes| check(value, true, causes),
    fixed: &["/roleRef"],
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("clusterrolebindings.rbac.authorization.k8s.io")
};

pub(super) const ROLE_BINDING: Kind = Kind {
    about: "Who has a role in one namespace.",
    cells: CELLS,
    defaults,
    names: Names::Path,
    check: |value, causes| check(value, false, causes),
    fixed: &["/roleRef"],
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("rolebindings.rbac.authorization.k8s.io")
};

fn defaults(value: &mut Value) {
    set(value, &["roleRef"], "apiGroup", json!(RIGHTS));
    each(value, "subjects", |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            set(subject, &[], "apiGroup", json!(RIGHTS));
        }
    });
}

fn check(value: &Value, is_cluster: bool, causes: &mut Causes) {
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
    let group = role["apiGroup"].as_str().unwrap_or_default();
    if group != RIGHTS {
        causes.push(unsupported("roleRef.apiGroup", group, &format!("\"{RIGHTS}\"")));
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
        let group = text("apiGroup");
        match text("kind") {
            "User" | "Group" if group != RIGHTS => {
                causes.push(unsupported(&format!("{at}.apiGroup"), group, &format!("\"{RIGHTS}\"")));
            }
            "ServiceAccount" if !group.is_empty() => {
                causes.push(unsupported(&format!("{at}.apiGroup"), group, "\"\""));
            }
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

const CELLS: Cells = |row| {
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
};
