//! Who may do what: RBAC when it is switched on, and always a record of what was used.
//!
//! Owns evaluating roles and cluster roles with their bindings (Kubernetes documentation, "Using RBAC
//! Authorization") and the record from which the minimal Role of a subject can be written. Rules are read from the
//! store on each check: bindings are few, and nothing can be stale.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::Value;

use super::cluster::Cluster;
use super::users::Who;

/// Different permissions that are remembered for one program of one user.
const USED_MAX: usize = 4096;
const USERS_MAX: usize = 1024;
/// Different programs of one user that are remembered.
const PROGRAMS_MAX: usize = 64;
/// The group that may do everything, whatever the rules say.
const MASTERS: &str = "system:masters";

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
pub(crate) struct Record(Mutex<BTreeMap<String, BTreeMap<String, BTreeSet<Permission>>>>);

impl Record {
    /// Notes an access. `user_agent` is cut to the program's name: `kubectl/v1.33.0 (linux/amd64)` is `kubectl`.
    pub fn add(&self, user: &str, user_agent: &str, access: &Access<'_>) {
        let permission = Permission {
            namespace: access.namespace.to_owned(),
            group: access.group.to_owned(),
            resource: access.full_resource(),
            verb: access.verb.to_owned(),
        };
        let program = program(user_agent);
        let mut users = self.0.lock();
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
        if used.len() < USED_MAX {
            used.insert(permission);
        }
    }

    /// Everything that one user asked for, with whatever program.
    pub fn of(&self, user: &str) -> Vec<Permission> {
        let users = self.0.lock();
        let used: BTreeSet<&Permission> = users.get(user).into_iter().flat_map(BTreeMap::values).flatten().collect();
        used.into_iter().cloned().collect()
    }

    /// Everything that one program asked for, and the users that it came as.
    pub fn of_program(&self, program: &str) -> (Vec<String>, Vec<Permission>) {
        let users = self.0.lock();
        let with = users.iter().filter_map(|(user, programs)| Some((user, programs.get(program)?)));
        let (names, used): (Vec<String>, Vec<&BTreeSet<Permission>>) = with.map(|(u, set)| (u.clone(), set)).unzip();
        let used: BTreeSet<&Permission> = used.into_iter().flatten().collect();
        (names, used.into_iter().cloned().collect())
    }

    /// Every user that asked for something.
    pub fn users(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
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
    let scopes: &[(&str, Option<&str>)] = &[
        ("clusterrolebindings.rbac.authorization.k8s.io", None),
        ("rolebindings.rbac.authorization.k8s.io", Some(access.namespace)),
    ];
    for (kind, namespace) in scopes {
        if namespace.is_some_and(str::is_empty) {
            continue;
        }
        for binding in objects(cluster, kind, *namespace) {
            let subjects = binding["subjects"].as_array();
            let concerned = subjects.into_iter().flatten().any(|subject| is_subject(subject, who));
            if concerned && role_allows(cluster, &binding, *namespace, access) {
                let name = binding["metadata"]["name"].as_str().unwrap_or_default();
                return Ok(format!("RBAC: allowed by {kind} \"{name}\""));
            }
        }
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

fn role_allows(cluster: &Cluster, binding: &Value, namespace: Option<&str>, access: &Access<'_>) -> bool {
    let catalogue = cluster.catalogue();
    let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
    let (kind, namespace) = match binding["roleRef"]["kind"].as_str() {
        Some("ClusterRole") => ("clusterroles.rbac.authorization.k8s.io", ""),
        _ => ("roles.rbac.authorization.k8s.io", namespace.unwrap_or_default()),
    };
    let role = catalogue.by_full_name(kind).and_then(|resource| cluster.get(resource, namespace, name));
    let Some(role) = role.map(|version| version.value()) else { return false };
    role["rules"].as_array().into_iter().flatten().any(|rule| rule_allows(rule, access))
}

fn rule_allows(rule: &Value, access: &Access<'_>) -> bool {
    let list = |key: &str| rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
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
