//! Lists of objects: one page of a consistent snapshot, at the present or at an older revision of the history.
//!
//! Owns the reconstruction of an old state: the changes after the wanted revision are undone in the present state. The
//! cost is proportional to the undone changes and the objects on the page; the store is never copied.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{ResourceId, Shelf, Store, Version};
use facts::Change;

/// Namespace and name of the last object of the previous page.
pub type After = (Arc<str>, Arc<str>);

#[derive(Debug)]
pub struct Page {
    /// The objects of the page, sorted by namespace and name.
    pub items: Vec<Arc<Version>>,
    /// The last object of this page; set only if more objects follow.
    pub next: Option<After>,
    pub revision: u64,
    /// Number of objects at the revision of the list, including those that `keep` rejects; counted only if more objects
    /// follow.
    pub total: usize,
}

/// Error: the wanted revision was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    pub requested: u64,
    /// The oldest revision that a client can request.
    pub floor: u64,
}

type Undone = BTreeMap<After, Option<Arc<Version>>>;

impl Store {
    /// The objects of `resource` at revision `at` that `keep` accepts: at most `limit`, beginning after the object
    /// `after`.
    pub fn list(
        &self,
        resource: ResourceId,
        namespace: Option<&str>,
        at: u64,
        after: Option<&After>,
        limit: usize,
        mut keep: impl FnMut(&Version) -> bool,
    ) -> Result<Page, Expired> {
        // A snapshot may be from before a restore.
        if at < self.floor || at > self.revision {
            return Err(Expired { requested: at, floor: self.floor });
        }
        let mut page = Page { items: Vec::new(), next: None, revision: at, total: 0 };
        let Some(shelf) = self.shelf(resource) else { return Ok(page) };
        let undone = shelf.undone(namespace, at);
        let mut visit = |version: &Arc<Version>| -> bool {
            // A full page has a successor if anything follows, whether it matches or not: the real server does not
            // look, so the last page of a selection can be empty.
            if page.items.len() == limit {
                let last = page.items.last().map(|v| (v.identity.namespace.clone(), v.identity.name.clone()));
                page.next = last;
                return false;
            }
            if !keep(version) {
                return true;
            }
            page.items.push(version.clone());
            true
        };
        merge(shelf.present(namespace, after), &undone, after, &mut visit);
        if page.next.is_some() {
            let present = self.count(resource, namespace);
            let then = undone.values().filter(|before| before.is_some()).count();
            let now = undone.keys().filter(|(ns, name)| self.read(resource, ns, name).is_some()).count();
            page.total = (present + then).saturating_sub(now);
        }
        Ok(page)
    }
}

impl Shelf {
    /// The states at revision `at` of all objects that changed after `at`: each is the state before the object's first
    /// change.
    pub(super) fn undone(&self, namespace: Option<&str>, at: u64) -> Undone {
        let mut undone = Undone::new();
        for event in self.log.newest_first_until(at) {
            let identity = &event.version.identity;
            if namespace.is_none_or(|wanted| wanted == &*identity.namespace) {
                let before = if event.change == Change::Added { None } else { event.previous.clone() };
                undone.insert((identity.namespace.clone(), identity.name.clone()), before);
            }
        }
        undone
    }

    fn present<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&'a After>,
    ) -> impl Iterator<Item = &'a Arc<Version>> + 'a {
        let from: Bound<&str> = match (namespace, after) {
            (Some(namespace), _) => Bound::Included(namespace),
            (None, Some((ns, _))) => Bound::Included(ns),
            (None, None) => Bound::Unbounded,
        };
        let namespaces = self.objects.range::<str, _>((from, Bound::Unbounded));
        let wanted = namespaces.take_while(move |(ns, _)| namespace.is_none_or(|only| only == &***ns));
        wanted.flat_map(move |(ns, names)| {
            let start: Bound<&str> = match after {
                Some((last_ns, last)) if last_ns == ns => Bound::Excluded(last),
                _ => Bound::Unbounded,
            };
            names.range::<str, _>((start, Bound::Unbounded)).map(|(_, version)| version)
        })
    }
}

/// Merges the present objects and the undone changes in the order of keys; an undone change replaces the present
/// object.
fn merge<'a>(
    present: impl Iterator<Item = &'a Arc<Version>>,
    undone: &Undone,
    after: Option<&After>,
    visit: &mut impl FnMut(&Arc<Version>) -> bool,
) {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut old = undone.range((start, Bound::Unbounded)).peekable();
    for version in present {
        let key = (&version.identity.namespace, &version.identity.name);
        while let Some((old_key, before)) = old.next_if(|((ns, name), _)| (ns, name) < key) {
            debug_assert!((&old_key.0, &old_key.1) < key);
            if before.as_ref().is_some_and(|before| !visit(before)) {
                return;
            }
        }
        let shadowed = old.next_if(|((ns, name), _)| (ns, name) == key);
        let shown = match shadowed {
            Some((_, before)) => before.as_ref(),
            None => Some(version),
        };
        if shown.is_some_and(|shown| !visit(shown)) {
            return;
        }
    }
    for (_, before) in old {
        if before.as_ref().is_some_and(|before| !visit(before)) {
            return;
        }
    }
}
