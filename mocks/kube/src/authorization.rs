//! Who may do what: RBAC when it is switched on, and always a record of what was used.
//!
//! Owns evaluating roles and cluster roles with their bindings (Kubernetes documentation, "Using RBAC
//! Authorization") and the record from which the minimal Role of a subject can be written. Rules are read from the
//! store on each check: bindings are few, and nothing can be stale.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::users::Who;

/// Different permissions that are remembered for one program of one user.
const USED_MAX: usize = 4096;
/// So few that looking at each costs less than making the texts for a look-up. Most programs need fewer.
const LOOKED_THROUGH_MAX: usize = 32;
const USERS_MAX: usize = 1024;
/// Different programs of one user that are remembered.
const PROGRAMS_MAX: usize = 64;
/// The group that may do everything, whatever the rules say.
const MASTERS: &str = "system:masters";

/// What everybody may read who is known: the rules of the role system:discovery.
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

/// How requests are authorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authorization {
    /// Everything is allowed to everybody who is known, and recorded.
    #[default]
    AllowAndRecord,
    /// Roles and bindings decide. The record shows what was asked for, allowed or not.
    Rbac,
}

/// One kind of access that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// Empty for cluster-scoped resources and for requests over all namespaces.
    pub namespace: String,
    /// Empty for the core group.
    pub group: String,
    /// `pods`, `pods/status`.
    pub resource: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
}

/// A question to the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    pub namespace: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    pub verb: &'a str,
}

/// What was used, by user and by program.
#[derive(Debug, Default)]
pub(crate) struct Record {
    used: Mutex<BTreeMap<String, BTreeMap<String, BTreeSet<Permission>>>>,
    /// What the rules did not allow, and how often.
    refused: Mutex<BTreeMap<String, BTreeMap<Permission, u64>>>,
}

impl Record {
    /// Notes an access. `user_agent` is cut to the program's name: `kubectl/v1.33.0 (linux/amd64)` is `kubectl`.
    pub fn add(&self, user: &str, user_agent: &str, access: &Access<'_>) {
        let program = program(user_agent);
        let mut users = self.used.lock();
        if !users.contains_key(user) {
            if users.len() >= USERS_MAX {
                return;
            }
            users.insert(user.to_owned(), BTreeMap::new());
        }
        let Some(programs) = users.get_mut(user) else { return };
        if !programs.contains_key(program) {
            if programs.len() >= PROGRAMS_MAX {
                return;
            }
            programs.insert(program.to_owned(), BTreeSet::new());
        }
        let Some(used) = programs.get_mut(program) else { return };
        if used.len() >= USED_MAX || (used.len() <= LOOKED_THROUGH_MAX && used.iter().any(|known| access.is(known))) {
            return;
        }
        used.insert(access.permission());
    }

    /// Notes an access that the rules did not allow.
    pub fn refuse(&self, user: &str, access: &Access<'_>) {
        let mut users = self.refused.lock();
        if users.len() >= USERS_MAX && !users.contains_key(user) {
            return;
        }
        let refused = users.entry(user.to_owned()).or_default();
        let permission = access.permission();
        if refused.len() < USED_MAX || refused.contains_key(&permission) {
            *refused.entry(permission).or_default() += 1;
        }
    }

    /// What the rules did not allow to one user, and how often.
    pub fn refused(&self, user: &str) -> BTreeMap<Permission, u64> {
        self.refused.lock().get(user).cloned().unwrap_or_default()
    }

    /// Everything that one user asked for, with whatever program.
    pub fn of(&self, user: &str) -> Vec<Permission> {
        let users = self.used.lock();
        let used: BTreeSet<&Permission> = users.get(user).into_iter().flat_map(BTreeMap::values).flatten().collect();
        used.into_iter().cloned().collect()
    }

    /// Everything that one program asked for, and the users that it came as.
    pub fn of_program(&self, program: &str) -> (Vec<String>, Vec<Permission>) {
        let users = self.used.lock();
        let with = users.iter().filter_map(|(user, programs)| Some((user, programs.get(program)?)));
        let (names, used): (Vec<String>, Vec<&BTreeSet<Permission>>) = with.map(|(u, set)| (u.clone(), set)).unzip();
        let used: BTreeSet<&Permission> = used.into_iter().flatten().collect();
        (names, used.into_iter().cloned().collect())
    }

    /// Every user that asked for something.
    pub fn users(&self) -> Vec<String> {
        self.used.lock().keys().cloned().collect()
    }
}

/// The name of a program, from its `User-Agent`; `unknown` for none.
pub(crate) fn program(user_agent: &str) -> &str {
    match user_agent.split(['/', ' ']).next() {
        Some(name) if !name.is_empty() => name,
        _ => "unknown",
    }
}

impl Access<'_> {
    fn is(&self, permission: &Permission) -> bool {
        let (resource, subresource) = permission.resource.split_once('/').unwrap_or((&permission.resource, ""));
        permission.verb == self.verb
            && resource == self.resource
            && permission.namespace == self.namespace
            && permission.group == self.group
            && subresource == self.subresource
    }

    fn permission(&self) -> Permission {
        Permission {
            namespace: self.namespace.to_owned(),
            group: self.group.to_owned(),
            resource: self.full_resource(),
            verb: self.verb.to_owned(),
        }
    }

    fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// Whether the rules allow it; the text says by which binding, or that there is none.
pub(crate) fn rbac(cluster: &Cluster, who: &Who, access: &Access<'_>) -> Result<String, String> {
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
    let place = if access.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", access.namespace)
    };
    Err(format!(
        "User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
        who.name,
        access.verb,
        access.full_resource(),
        access.group
    ))
}

/// Whether somebody may use a path that is no resource, such as `/metrics`.
pub(crate) fn rbac_path(cluster: &Cluster, who: &Who, path: &str, verb: &str) -> Result<String, String> {
    if who.groups.iter().any(|group| group == MASTERS) {
        return Ok(format!("{MASTERS} may do everything"));
    }
    // The role system:discovery, which everybody has who is known.
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
    allowed.ok_or_else(|| format!("User \"{}\" cannot {verb} path \"{path}\"", who.name))
}

/// Every rule that applies to somebody in a namespace: `(resource rules, rules about other paths)`, as a review shows them.
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

/// Shows `visit` every rule that applies to somebody, with the binding it comes from, until it answers false.
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

/// `/healthz/*` is everything below `/healthz/`; `*` is everything.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_is_noted_once() {
        let record = Record::default();
        let access = Access { namespace: "a", group: "", resource: "pods", subresource: "", name: "", verb: "get" };
        let others = [
            Access { namespace: "b", ..access },
            Access { group: "apps", ..access },
            Access { resource: "pod", subresource: "s", ..access },
            Access { subresource: "status", ..access },
            Access { subresource: "ephemeralcontainers/x", ..access },
            Access { verb: "list", ..access },
        ];
        for _ in 0..2 {
            for access in others.iter().chain([&access]) {
                record.add("subject", "program/1", access);
            }
        }
        assert_eq!(record.of("subject").len(), 7);
        let namespaces: Vec<String> = (0..LOOKED_THROUGH_MAX).map(|index| index.to_string()).collect();
        for namespace in namespaces.iter().chain(&namespaces) {
            record.add("subject", "program/1", &Access { namespace, ..access });
        }
        assert_eq!(record.of("subject").len(), 7 + LOOKED_THROUGH_MAX);
    }
}
