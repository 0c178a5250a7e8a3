//! Authorization by RBAC.
//!
//! Owns evaluating roles, cluster roles and their bindings (Kubernetes documentation, "Using RBAC Authorization"). Each
//! check reads the rules from the store, because bindings are few and cached rules could be out of date.

use std::sync::Arc;

use serde_json::{Value, json};

use super::authorization::{Access, Authorization};
use super::cluster::Cluster;
use super::users::Who;

/// The group whose members may do everything, independent of roles.
const MASTERS: &str = "system:masters";

/// Paths that every known user may read, as in the role system:discovery.
const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// The error if no rule allows the access; its message is like the real server's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {}", place(namespace))]
    Resource { user: Arc<str>, verb: String, resource: String, group: String, namespace: String },
    #[error("User \"{user}\" cannot {verb} path \"{path}\"")]
    Path { user: Arc<str>, verb: String, path: String },
}

fn place(namespace: &str) -> String {
    if namespace.is_empty() { "at the cluster scope".to_owned() } else { format!("in the namespace \"{namespace}\"") }
}

/// Checks that a rule allows the access; the returned text names the binding that grants the rule.
pub(crate) fn allows(cluster: &Cluster, who: &Who, access: &Access<'_>) -> Result<String, Denied> {
    if who.groups.iter().any(|group| group == MASTERS) {
        return Ok(format!("{MASTERS} may do everything"));
    }
    let mut allowed = None;
    each_rule(cluster, who, access.namespace, &mut |by, rule| {
        if rule_allows(rule, access) {
            allowed = Some(format!("RBAC: allowed by {by}"));
        }
        allowed.is_none()
    });
    if let Some(reason) = allowed {
        return Ok(reason);
    }
    Err(Denied::Resource {
        user: who.name.clone(),
        verb: access.verb.to_owned(),
        resource: access.full_resource(),
        group: access.group.to_owned(),
        namespace: access.namespace.to_owned(),
    })
}

/// Whether a user may use a path that is not a resource, such as `/metrics`.
pub(crate) fn allows_path(cluster: &Cluster, who: &Who, path: &str, verb: &str) -> Result<String, Denied> {
    if who.groups.iter().any(|group| group == MASTERS) {
        return Ok(format!("{MASTERS} may do everything"));
    }
    // The role system:discovery, which every known user has.
    if verb == "get" && who.is_known() && DISCOVERY.iter().any(|pattern| path_matches(pattern, path)) {
        return Ok("RBAC: allowed by ClusterRoleBinding \"system:discovery\"".to_owned());
    }
    let mut allowed = None;
    each_rule(cluster, who, "", &mut |by, rule| {
        let urls = texts(rule, "nonResourceURLs");
        let verbs = texts(rule, "verbs");
        if urls.iter().any(|pattern| path_matches(pattern, path)) && verbs.iter().any(|v| *v == "*" || *v == verb) {
            allowed = Some(format!("RBAC: allowed by {by}"));
        }
        allowed.is_none()
    });
    allowed.ok_or_else(|| Denied::Path { user: who.name.clone(), verb: verb.to_owned(), path: path.to_owned() })
}

/// All rules for a user in a namespace, as a `SelfSubjectRulesReview` shows them: `(rules of resources, rules of other
/// paths)`.
pub(crate) fn rules_of(cluster: &Cluster, who: &Who, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let everything = cluster.authorization == Authorization::AllowAndRecord;
    if everything || who.groups.iter().any(|group| group == MASTERS) {
        let resources = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        return (vec![resources], vec![json!({"verbs": ["*"], "nonResourceURLs": ["*"]})]);
    }
    let mut resources = Vec::new();
    let mut paths = vec![json!({"verbs": ["get"], "nonResourceURLs": DISCOVERY})];
    each_rule(cluster, who, namespace, &mut |_, rule| {
        let list = if texts(rule, "nonResourceURLs").is_empty() { &mut resources } else { &mut paths };
        if !list.contains(rule) {
            list.push(rule.clone());
        }
        true
    });
    (resources, paths)
}

/// Calls `visit` with each rule for a user and the rule's binding, until `visit` returns false.
fn each_rule(cluster: &Cluster, who: &Who, namespace: &str, visit: &mut dyn FnMut(&str, &Value) -> bool) {
    let scopes: [(&str, Option<&str>); 2] = [
        ("clusterrolebindings.rbac.authorization.k8s.io", None),
        ("rolebindings.rbac.authorization.k8s.io", Some(namespace)),
    ];
    for (kind, namespace) in scopes {
        if namespace.is_some_and(str::is_empty) {
            continue;
        }
        for binding in objects(cluster, kind, namespace) {
            let subjects = binding["subjects"].as_array();
            if !subjects.into_iter().flatten().any(|subject| is_subject(subject, who)) {
                continue;
            }
            let by = format!("{kind} \"{}\"", binding["metadata"]["name"].as_str().unwrap_or_default());
            for rule in role_rules(cluster, &binding, namespace) {
                if !visit(&by, &rule) {
                    return;
                }
            }
        }
    }
}

fn objects(cluster: &Cluster, full_name: &str, namespace: Option<&str>) -> Vec<Value> {
    let catalogue = cluster.catalogue();
    let Some(resource) = catalogue.by_full_name(full_name) else { return Vec::new() };
    let page = cluster.read(|store| store.list(resource.id, namespace, store.revision(), None, usize::MAX, |_| true));
    page.into_iter().flat_map(|page| page.items).map(|version| version.value()).collect()
}

fn is_subject(subject: &Value, who: &Who) -> bool {
    let text = |key: &str| subject[key].as_str().unwrap_or_default();
    match text("kind") {
        "User" => text("name") == &*who.name,
        "Group" => who.groups.iter().any(|group| group == text("name")),
        "ServiceAccount" => {
            who.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'))
                == Some((text("namespace"), text("name")))
        }
        _ => false,
    }
}

fn role_rules(cluster: &Cluster, binding: &Value, namespace: Option<&str>) -> Vec<Value> {
    let catalogue = cluster.catalogue();
    let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
    let (kind, namespace) = match binding["roleRef"]["kind"].as_str() {
        Some("ClusterRole") => ("clusterroles.rbac.authorization.k8s.io", ""),
        _ => ("roles.rbac.authorization.k8s.io", namespace.unwrap_or_default()),
    };
    let role = catalogue.by_full_name(kind).and_then(|resource| cluster.get(resource, namespace, name));
    let rules = role.map(|version| version.value()["rules"].take());
    if let Some(Value::Array(rules)) = rules { rules } else { Vec::new() }
}

/// Whether a path matches: `/healthz/*` matches all paths below `/healthz/`, and `*` matches all paths.
fn path_matches(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |start| path.starts_with(start))
}

fn texts<'a>(rule: &'a Value, key: &str) -> Vec<&'a str> {
    rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn rule_allows(rule: &Value, access: &Access<'_>) -> bool {
    let list = |key: &str| texts(rule, key);
    let has = |key: &str, wanted: &str| list(key).iter().any(|item| *item == "*" || *item == wanted);
    let full = access.full_resource();
    let any_sub = format!("*/{}", access.subresource);
    let resource = list("resources")
        .iter()
        .any(|item| *item == "*" || *item == full || (!access.subresource.is_empty() && *item == any_sub));
    let names = list("resourceNames");
    has("verbs", access.verb)
        && has("apiGroups", access.group)
        && resource
        && (names.is_empty() || names.contains(&access.name))
}
