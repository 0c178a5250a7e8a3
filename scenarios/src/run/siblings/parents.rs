//! The existing parents of children, by uid and by name.

use std::collections::HashMap;

use facts::Uid;

/// Maximum difference between the delays of two watches of one control plane, on a busy machine.
pub(super) const APART_MS: u64 = 1000;

/// The key by which a child refers to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Of {
    Uid(Uid),
    Name(std::sync::Arc<str>, std::sync::Arc<str>),
}

#[derive(Debug, Default)]
pub(super) struct Parents {
    pub(super) by_uid: HashMap<Uid, Parent>,
    pub(super) names: HashMap<(std::sync::Arc<str>, std::sync::Arc<str>), Uid>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Parent {
    pub(super) place: String,
    pub(super) generation: i64,
    /// Number of changes of the parent's spec (`metadata.generation`).
    pub(super) specified: u64,
    /// Time of the parent's last write.
    pub(super) since_ms: u64,
    /// Maximum number of children that any version of the parent wanted, by kind.
    pub(super) wanted: Vec<u64>,
    /// Whether the parent has had children, by kind.
    pub(super) had: Vec<bool>,
    /// Time at which the parent's deletion was requested.
    pub(super) going_ms: Option<u64>,
    /// Time at which a deletion with `propagationPolicy: Orphan` was requested. If a deletion has the policy `Orphan`,
    /// the garbage collector removes the children's owner references.
    pub(super) orphaning_ms: Option<u64>,
}

impl Parents {
    /// Finds a parent. Returns its uid, and its namespace and name for messages.
    pub(super) fn find(&self, of: &Of) -> Option<(Uid, String)> {
        let uid = self.uid(of)?;
        Some((uid.clone(), self.by_uid.get(uid)?.place.clone()))
    }

    pub(super) fn uid<'a>(&'a self, of: &'a Of) -> Option<&'a Uid> {
        match of {
            Of::Uid(uid) => Some(uid),
            Of::Name(namespace, name) => self.names.get(&(namespace.clone(), name.clone())),
        }
    }

    pub(super) fn get(&self, of: &Of) -> Option<&Parent> {
        self.by_uid.get(self.uid(of)?)
    }

    pub(super) fn get_mut(&mut self, of: &Of) -> Option<&mut Parent> {
        let uid = self.uid(of)?.clone();
        self.by_uid.get_mut(&uid)
    }

    pub(super) fn remove(&mut self, uid: &Uid, place: &(std::sync::Arc<str>, std::sync::Arc<str>)) -> Option<Parent> {
        if self.names.get(place) == Some(uid) {
            self.names.remove(place);
        }
        self.by_uid.remove(uid)
    }
}

/// Namespace and name of a parent, for messages.
pub(super) fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
