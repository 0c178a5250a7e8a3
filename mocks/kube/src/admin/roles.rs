//! The minimal roles and bindings of users, as YAML documents for `kubectl apply`.
//!
//! Owns making RBAC objects from the record of used permissions. This module must not decide whether a user has a
//! permission.

use std::collections::{BTreeMap, BTreeSet};

use mock_objects::status::Failure;
use serde_json::{Value, json};

use crate::authorization::Permission;
use crate::cluster::Cluster;

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const API_GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings of one user, of one program, or of all users, as YAML documents.
pub(super) fn yaml(cluster: &Cluster, user: Option<&str>, program: Option<&str>) -> Result<String, Failure> {
    let record = &cluster.permissions;
    let objects = match (user, program) {
        (Some(_), Some(_)) => return Err(Failure::bad_request("give `user` or `userAgent`, not both")),
        (None, Some(program)) => {
            let (users, used) = record.of_program(program);
            objects(program, &users, &used)
        }
        (Some(user), None) => objects(user, &[user.to_owned()], &record.of(user)),
        (None, None) => {
            let users = record.users();
            users.iter().flat_map(|user| objects(user, std::slice::from_ref(user), &record.of(user))).collect()
        }
    };
    let documents: Vec<String> = objects
        .iter()
        .map(|object| serde_saphyr::to_string(object).expect("plain maps, lists and texts always serialise"))
        .collect();
    Ok(documents.join("---\n"))
}

/// Makes the roles and bindings for used permissions: one `Role` for each namespace, and one `ClusterRole` for
/// permissions without a namespace.
fn objects(owner: &str, users: &[String], used: &[Permission]) -> Vec<Value> {
    let name = format!("{}-minimal", object_name(owner));
    let subjects: Vec<Value> = users.iter().map(|user| subject(user)).collect();
    let mut by_namespace: BTreeMap<&str, Vec<&Permission>> = BTreeMap::new();
    // All users may ask about themselves (the role system:basic-user).
    for permission in used.iter().filter(|permission| !permission.resource.starts_with("selfsubject")) {
        by_namespace.entry(&permission.namespace).or_default().push(permission);
    }
    let mut out = Vec::new();
    for (namespace, used) in by_namespace {
        let (role, binding) =
            if namespace.is_empty() { ("ClusterRole", "ClusterRoleBinding") } else { ("Role", "RoleBinding") };
        let metadata =
            if namespace.is_empty() { json!({"name": name}) } else { json!({"name": name, "namespace": namespace}) };
        out.push(json!({"apiVersion": API_VERSION, "kind": role, "metadata": metadata, "rules": rules(&used)}));
        out.push(json!({
            "apiVersion": API_VERSION, "kind": binding, "metadata": metadata, "subjects": subjects,
            "roleRef": {"apiGroup": API_GROUP, "kind": role, "name": name},
        }));
    }
    out
}

/// The RBAC rules for the used permissions. Resources of one API group that need the same verbs share one rule.
fn rules(used: &[&Permission]) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for permission in used {
        verbs.entry((&permission.group, &permission.resource)).or_default().insert(&permission.verb);
    }
    let mut rules: BTreeMap<(&str, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs)).or_default().push(resource);
    }
    rules
        .into_iter()
        .map(|((group, verbs), resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs}))
        .collect()
}

fn subject(user: &str) -> Value {
    match user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
        Some((namespace, name)) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
        None => json!({"apiGroup": API_GROUP, "kind": "User", "name": user}),
    }
}

/// A valid object name made from a user or program name.
fn object_name(owner: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':') { c } else { '-' };
    owner.chars().map(kept).collect()
}
