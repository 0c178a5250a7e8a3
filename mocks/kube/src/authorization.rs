//! The record of used permissions, from which the server makes a subject's minimal Role.
//!
//! Owns the type of a permission, and the record of used and refused permissions. `rbac` decides whether a user has a
//! permission.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

/// Maximum number of permissions that are remembered for one program of one user.
const USED_MAX: usize = 4096;
/// Up to this number of remembered permissions a linear search is cheaper than a lookup by key. Most programs use fewer
/// permissions.
const LOOKED_THROUGH_MAX: usize = 32;
const USERS_MAX: usize = 1024;
/// Maximum number of programs that are remembered for one user.
const PROGRAMS_MAX: usize = 64;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authorization {
    /// Every known user may do everything; the server records the permissions.
    #[default]
    AllowAndRecord,
    /// Roles and bindings decide. The server records every request, whether it is allowed or not.
    Rbac,
}

/// A verb on a resource in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The namespace; empty for cluster-scoped resources and for requests over all namespaces.
    pub namespace: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource with its subresource: `pods` or `pods/status`.
    pub resource: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
}

/// A permission that a request needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    pub namespace: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    pub verb: &'a str,
}

/// The permissions that were used, by user and by program.
#[derive(Debug, Default)]
pub(crate) struct Record {
    used: Mutex<BTreeMap<String, BTreeMap<String, BTreeSet<Permission>>>>,
    /// The permissions that were refused, by user, with their counts.
    refused: Mutex<BTreeMap<String, BTreeMap<Permission, u64>>>,
}

impl Record {
    /// Records a used permission. Of `user_agent`, only the program's name is kept: `kubectl` of `kubectl/v1.33.0
    /// (linux/amd64)`.
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

    /// Records a refused permission.
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

    pub fn refused(&self, user: &str) -> BTreeMap<Permission, u64> {
        self.refused.lock().get(user).cloned().unwrap_or_default()
    }

    /// The permissions that one user used with any program.
    pub fn of(&self, user: &str) -> Vec<Permission> {
        let users = self.used.lock();
        let used: BTreeSet<&Permission> = users.get(user).into_iter().flat_map(BTreeMap::values).flatten().collect();
        used.into_iter().cloned().collect()
    }

    /// The users under which one program ran, and the permissions that it used.
    pub fn of_program(&self, program: &str) -> (Vec<String>, Vec<Permission>) {
        let users = self.used.lock();
        let with = users.iter().filter_map(|(user, programs)| Some((user, programs.get(program)?)));
        let (names, used): (Vec<String>, Vec<&BTreeSet<Permission>>) = with.map(|(u, set)| (u.clone(), set)).unzip();
        let used: BTreeSet<&Permission> = used.into_iter().flatten().collect();
        (names, used.into_iter().cloned().collect())
    }

    pub fn users(&self) -> Vec<String> {
        self.used.lock().keys().cloned().collect()
    }
}

/// The program's name in a `User-Agent`; `unknown` if the header is empty.
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

    /// The resource with its subresource: `pods` or `pods/status`.
    pub fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
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
