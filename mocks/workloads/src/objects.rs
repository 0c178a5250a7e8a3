//! The last observed state of all objects.
//!
//! Owns the index of objects by their owners. The number of objects is limited by [`OBJECTS_MAX`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::fields::{controller, text, uid};
use super::kind::{Key, Kind};

/// Maximum number of objects that are kept, each about 4 KiB; further objects are ignored.
pub(crate) const OBJECTS_MAX: usize = 50_000;

#[derive(Debug, Default)]
pub(crate) struct Objects {
    all: BTreeMap<Key, Arc<Value>>,
    /// Objects by the uid of their controller.
    owned: HashMap<Box<str>, BTreeSet<Key>>,
}

impl Objects {
    /// Stores an object, or removes the object if `value` is `None`. Returns its old state, and `false` if the limit is
    /// reached.
    pub(crate) fn put(&mut self, key: &Key, value: Option<&Arc<Value>>) -> (Option<Arc<Value>>, bool) {
        if value.is_some() && self.all.len() >= OBJECTS_MAX && !self.all.contains_key(key) {
            return (None, false);
        }
        let before = match value {
            Some(value) => self.all.insert(key.clone(), value.clone()),
            None => self.all.remove(key),
        };
        let owner = |value: &Value| controller(value).map(|owner| Box::from(text(owner, "/uid")));
        let (was, is) = (before.as_deref().and_then(owner), value.and_then(|value| owner(value)));
        if was != is {
            if let Some(was) = was
                && let Some(keys) = self.owned.get_mut(&was)
            {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(&was);
                }
            }
            if let Some(is) = is {
                self.owned.entry(is).or_default().insert(key.clone());
            }
        }
        (before, true)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.all.len() >= OBJECTS_MAX
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.all.get(key)
    }

    pub(crate) fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.all.get(&Key::new(kind, namespace, name))
    }

    pub(crate) fn of_kind<'o>(
        &'o self,
        kind: Kind,
        namespace: Option<&'o str>,
    ) -> impl Iterator<Item = (&'o Key, &'o Arc<Value>)> {
        let first = Key::new(kind, namespace.unwrap_or_default(), "");
        self.all
            .range(first..)
            .take_while(move |(key, _)| key.kind == kind && namespace.is_none_or(|wanted| *key.namespace == *wanted))
    }

    /// The objects of one kind whose controller is `owner`.
    pub(crate) fn owned(&self, owner: &Value, kind: Kind) -> Vec<Arc<Value>> {
        let keys = self.owned.get(uid(owner)).into_iter().flatten();
        keys.filter(|key| key.kind == kind).filter_map(|key| self.all.get(key)).cloned().collect()
    }

    /// The controller of an object; `None` if another object with the same name has replaced it.
    pub(crate) fn controller(&self, value: &Value) -> Option<(Key, Arc<Value>)> {
        let owner = controller(value)?;
        let kind = Kind::ALL.into_iter().find(|kind| {
            let (version, _, name) = kind.names();
            version == text(owner, "/apiVersion") && name == text(owner, "/kind")
        })?;
        let namespace = text(value, "/metadata/namespace");
        let key = Key::new(kind, namespace, text(owner, "/name"));
        let found = self.all.get(&key)?;
        (uid(found) == text(owner, "/uid")).then(|| (key, found.clone()))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all.keys()
    }
}
