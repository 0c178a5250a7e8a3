//! The default roles and bindings that a kube-apiserver with RBAC makes itself ("Using RBAC Authorization", default
//! roles and bindings).
//!
//! Owns reading the roles and bindings from the file `policy/default.txt`. The server creates the roles and bindings
//! once, before the first request.

use serde_json::{Map, Value, json};

use super::cluster::Cluster;

/// Each line is a role, a binding, a rule of a role, or a subject of a binding; comments at the beginning of the file
/// explain the format.
const LIST: &str = include_str!("policy/default.txt");
const API: &str = "rbac.authorization.k8s.io";

pub(crate) fn seed(cluster: &Cluster) {
    for object in objects() {
        // Existing names stay unchanged.
        let _ = cluster.seed(object);
    }
}

fn objects() -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (line.starts_with(' '), words.as_slice()) {
            (false, ["role", place, options @ ..]) => objects.push(role(place, options)),
            (false, ["binding", place, role]) => objects.push(binding(place, role)),
            (true, words) => {
                if let Some(object) = objects.last_mut() {
                    below(object, words);
                }
            }
            _ => {}
        }
    }
    objects
}

/// An object with the name `NAME`, or with `NAMESPACE/NAME` for a namespaced kind.
fn object(kind: &str, place: &str) -> Map<String, Value> {
    let (namespace, name) = place.split_once('/').map_or((None, place), |(namespace, name)| (Some(namespace), name));
    let kind = if namespace.is_some() { kind.to_owned() } else { format!("Cluster{kind}") };
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), format!("{API}/v1").into());
    object.insert("kind".to_owned(), kind.into());
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    object.insert("metadata".to_owned(), metadata);
    object
}

fn role(place: &str, options: &[&str]) -> Value {
    let mut role = Value::Object(object("Role", place));
    role["rules"] = Value::Null;
    let label = |into: &str| format!("rbac.authorization.k8s.io/aggregate-to-{into}");
    for option in options {
        match option.split_once('=') {
            Some(("into", into)) => role["metadata"]["labels"][label(into)] = "true".into(),
            Some(("of", of)) => {
                role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label(of): "true"}}]});
            }
            _ => {}
        }
    }
    role
}

fn binding(place: &str, role: &str) -> Value {
    let (kind, name) = role.split_once('/').unwrap_or(("ClusterRole", role));
    let mut binding = Value::Object(object("RoleBinding", place));
    binding["roleRef"] = json!({"apiGroup": API, "kind": kind, "name": name});
    binding
}

/// Adds a rule to a role, or a subject to a binding.
fn below(object: &mut Value, words: &[&str]) {
    let list = |words: &str| -> Value { words.split(',').map(|word| word.trim_matches('"')).collect() };
    let (key, item) = match words {
        ["path", verbs, urls] => ("rules", json!({"verbs": list(verbs), "nonResourceURLs": list(urls)})),
        ["group", name] => ("subjects", json!({"apiGroup": API, "kind": "Group", "name": name})),
        ["user", name] => ("subjects", json!({"apiGroup": API, "kind": "User", "name": name})),
        ["account", place] => {
            let (namespace, name) = place.split_once('/').unwrap_or_default();
            ("subjects", json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}))
        }
        [verbs, groups, resources, names @ ..] => {
            let mut rule = json!({"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)});
            if let [names] = names {
                rule["resourceNames"] = list(names);
            }
            ("rules", rule)
        }
        _ => return,
    };
    match &mut object[key] {
        Value::Array(items) => items.push(item),
        empty => *empty = Value::Array(vec![item]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server creates as many objects of each kind as kube-apiserver 1.34.1. For each sort of line in the file, one
    /// object is compared with the real server's object.
    #[test]
    fn the_list_has_what_a_real_server_makes() {
        let objects = objects();
        let find = |kind: &str, name: &str| {
            let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            objects.iter().find(is).unwrap().clone()
        };
        let count = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
        let counts = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].map(count);
        assert_eq!(counts, [68, 49, 7, 7]);
        assert_eq!(find("ClusterRole", "cluster-admin")["rules"][1], json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        assert_eq!(
            find("ClusterRole", "edit")["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"],
            "true"
        );
        assert!(find("ClusterRole", "edit")["rules"].is_null());
        assert_eq!(find("ClusterRole", "system:basic-user")["rules"][0]["apiGroups"], json!(["authorization.k8s.io"]));
        let masters = json!([{"apiGroup": API, "kind": "Group", "name": "system:masters"}]);
        assert_eq!(find("ClusterRoleBinding", "cluster-admin")["subjects"], masters);
        let signer = find("RoleBinding", "system:controller:bootstrap-signer");
        assert!(["kube-public", "kube-system"].contains(&signer["metadata"]["namespace"].as_str().unwrap()));
        assert_eq!(signer["roleRef"]["kind"], "Role");
    }
}
