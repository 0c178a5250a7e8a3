//! Children without an owner reference, and children that outlive their parent. Does no I/O and reads no clock.
//!
//! The scenario's key defines a child's parent. If the key is the missing owner reference, the name or a label decides
//! ([`hints`]). An object without a parent is dropped. Parents and children arrive on different watches, so a missing
//! parent is searched again a moment later. A deletion with `propagationPolicy: Orphan` removes owner references;
//! children of such a parent are not counted. Memory holds an entry for each existing child.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use facts::Uid;
use loadgen::audit;
use reports::record::{ORPHANS_MAX, Orphaned};
use serde_json::Value;

use super::super::unowned::hints;
use super::parents::{APART_MS, Of, Parents};
use crate::scenario::By;

/// A child without an owner reference.
#[derive(Debug)]
struct Child {
    kind: usize,
    namespace: Arc<str>,
    name: Arc<str>,
    labels: Value,
    /// The child's parent, once it is known.
    of: Option<Parent>,
    /// The time at which the owner reference was removed, if the child had one.
    lost_ms: Option<u64>,
    /// The time at which the parent was deleted.
    since_ms: Option<u64>,
}

#[derive(Debug)]
struct Parent {
    uid: Uid,
    place: String,
    known: String,
}

#[derive(Debug, Default)]
pub(super) struct Orphans {
    children: HashMap<Uid, Child>,
    of: HashMap<Uid, Vec<Uid>>,
    /// Children that have an owner reference.
    owned: HashSet<Uid>,
    /// Children whose parent is searched again later, with the time of the search.
    later: VecDeque<(u64, Uid)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) total: u64,
    pub(super) first: Vec<Orphaned>,
}

impl Orphans {
    /// Records a child without an owner reference. `by` is the scenario's key, `of` is the parent by this key.
    pub(super) fn unowned(
        &mut self,
        kind: usize,
        t_ms: u64,
        entry: &audit::Entry,
        (by, of): (&By, Option<&Of>),
        parents: &Parents,
    ) {
        let uid = &entry.commit.uid;
        if self.children.contains_key(uid) {
            return;
        }
        let labels = entry.fields.get(2).cloned().unwrap_or_default();
        let (namespace, name) = (entry.commit.namespace.clone(), entry.commit.name.clone());
        let lost_ms = self.owned.remove(uid).then_some(t_ms);
        self.children.insert(uid.clone(), Child { kind, namespace, name, labels, of: None, lost_ms, since_ms: None });
        let known = match by {
            By::Owner => None,
            By::Label(key) => Some(format!("known by its label {key}")),
            By::Name(_) => Some("known by its name".to_owned()),
        };
        match (known, of) {
            (None, _) => {}
            (Some(known), Some(of)) => {
                if let Some((uid_of, place)) = parents.find(of) {
                    self.belongs(uid, Parent { uid: uid_of, place, known });
                    return;
                }
            }
            // By the scenario's key it has no parent.
            (Some(_), None) => {
                self.children.remove(uid);
                return;
            }
        }
        if !self.look(uid, parents) {
            self.later.push_back((t_ms + APART_MS, uid.clone()));
        }
    }

    /// Records that a child has an owner reference.
    pub(super) fn owned(&mut self, uid: &Uid) {
        self.forget(uid);
        self.owned.insert(uid.clone());
    }

    /// Records that a child was deleted.
    pub(super) fn left(&mut self, uid: &Uid) {
        self.forget(uid);
        self.owned.remove(uid);
    }

    fn forget(&mut self, uid: &Uid) {
        let Some(parent) = self.children.remove(uid).and_then(|child| child.of) else { return };
        if let Some(siblings) = self.of.get_mut(&parent.uid) {
            siblings.retain(|one| one != uid);
            if siblings.is_empty() {
                self.of.remove(&parent.uid);
            }
        }
    }

    /// Records that a parent was deleted. `orphaning_ms` is the time of the deletion request if its policy is `Orphan`.
    pub(super) fn parent_gone(&mut self, uid: &Uid, t_ms: u64, orphaning_ms: Option<u64>) {
        for child in self.of.remove(uid).unwrap_or_default() {
            let Some(child) = self.children.get_mut(&child) else { continue };
            // The garbage collector removes the owner reference while the parent is being deleted.
            let times = child.lost_ms.zip(orphaning_ms);
            let is_let_go = times.is_some_and(|(lost_ms, orphaning_ms)| lost_ms + APART_MS >= orphaning_ms);
            child.since_ms = (!is_let_go).then_some(t_ms);
        }
    }

    /// Advances the time, and drops children whose parent is still not found.
    pub(super) fn advance(&mut self, now_ms: u64, parents: &Parents) {
        while self.later.front().is_some_and(|(due_ms, _)| *due_ms <= now_ms) {
            let Some((_, uid)) = self.later.pop_front() else { break };
            if self.children.contains_key(&uid) && !self.look(&uid, parents) {
                self.children.remove(&uid);
            }
        }
    }

    /// The children of each kind that outlived their parent by more than `grace_ms`.
    pub(super) fn finish(self, kinds: usize, now_ms: u64, grace_ms: u64) -> Vec<Found> {
        let mut found: Vec<Found> = (0..kinds).map(|_| Found::default()).collect();
        for child in self.children.into_values() {
            let Some((parent, since_ms)) = child.of.zip(child.since_ms) else { continue };
            let for_ms = now_ms.saturating_sub(since_ms);
            if let Some(found) = found.get_mut(child.kind).filter(|_| for_ms > grace_ms) {
                found.total += 1;
                let child = super::parents::place(&child.namespace, &child.name);
                found.first.push(Orphaned { child, parent: parent.place, known: parent.known, for_ms });
            }
        }
        for found in &mut found {
            found.first.sort_by(|a, b| b.for_ms.cmp(&a.for_ms).then_with(|| a.child.cmp(&b.child)));
            found.first.truncate(ORPHANS_MAX);
        }
        found
    }

    /// Searches the parent of a child. Returns whether the parent was found.
    fn look(&mut self, uid: &Uid, parents: &Parents) -> bool {
        let Some(child) = self.children.get(uid) else { return false };
        let (namespace, name) = (child.namespace.clone(), child.name.clone());
        let parent = hints(&name, &child.labels).into_iter().find_map(|hint| {
            let by_name = || parents.find(&Of::Name(namespace.clone(), hint.text.into()));
            let (uid, place) = parents.find(&Of::Uid(hint.text.into())).or_else(by_name)?;
            Some(Parent { uid, place, known: hint.known() })
        });
        let found = parent.is_some();
        if let Some(parent) = parent {
            self.belongs(uid, parent);
        }
        found
    }

    fn belongs(&mut self, uid: &Uid, parent: Parent) {
        self.of.entry(parent.uid.clone()).or_default().push(uid.clone());
        if let Some(child) = self.children.get_mut(uid) {
            child.of = Some(parent);
        }
    }
}
