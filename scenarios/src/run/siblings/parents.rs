//! The parents that are there, by uid and by name.

use std::collections::HashMap;

use facts::Uid;

/// How far two watches of one control plane are apart at most, on a busy machine.
pub(super) const APART_MS: u64 = 1000;

/// How a parent is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Of {
    Uid(Uid),
    Name(std::sync::Arc<str>, std::sync::Arc<str>),
}

/// The parents that are there.
#[derive(Debug, Default)]
pub(super) struct Parents {
    pub(super) by_uid: HashMap<Uid, Parent>,
    pub(super) names: HashMap<(std::sync::Arc<str>, std::sync::Arc<str>), Uid>,
}

/// What is known of a parent.
#[derive(Debug, Clone, Default)]
pub(super) struct Parent {
    pub(super) place: String,
    pub(super) generation: i64,
    /// How often what it wants was written, as far as its generation tells.
    pub(super) specified: u64,
    /// When it was written last.
    pub(super) since_ms: u64,
    /// The most that any of its versions wanted, by kind of children.
    pub(super) wanted: Vec<u64>,
    /// Whether it has had children, by kind.
    pub(super) had: Vec<bool>,
    /// Since when it is going.
    pub(super) going_ms: Option<u64>,
    /// Since when it is going and its children are to stay (`propagationPolicy: Orphan`), so that the garbage collector takes their owner away.
    pub(super) orphaning_ms: Option<u64>,
}

impl Parents {
    /// The uid and the place of one.
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

/// Namespace and name, as people write them.
pub(super) fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
