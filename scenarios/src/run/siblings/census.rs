//! Counts the children of each parent. Does no I/O and reads no clock.
//!
//! The events of two watches have no common order, and a subject may replace children one by one. A child counts as
//! surplus in two cases:
//!
//! - More children exist at once than the parent wants, all created since the parent's present version. For a moment
//!   after a change of the parent, twice as many children are allowed, because some may have been created for the
//!   previous version.
//! - More children, of any version, exist than the parent ever wanted, for longer than [`REPLACED_MS`] after a child
//!   was created.
//!
//! The check for surplus children comes a moment after the child was created, when the parent's version has arrived as
//! well. Memory holds an entry for each existing child and each existing parent. Children without an owner are in
//! [`Orphans`].

use std::collections::{BTreeMap, HashMap, VecDeque};

use facts::{Change, Uid};
use loadgen::audit;
use reports::record::{self, NAMED_CHILDREN_MAX, TOO_MANY_MAX, TooMany};
use serde_json::Value;

use super::orphans::{Found, Orphans};
use super::parents::{self, APART_MS, Of, Parent, Parents};
use crate::scenario::{By, Children};
use crate::witness::is_grandchild;

/// How long a child may exist together with its replacement: the shortest deadline for observations.
const REPLACED_MS: u64 = 5000;

#[derive(Debug, Clone)]
struct Child {
    name: String,
    made_ms: u64,
}

/// A possible surplus child, which is checked later.
#[derive(Debug)]
struct Doubt {
    due_ms: u64,
    kind: usize,
    of: Of,
    child: Uid,
    /// The time at which the child was created.
    at_ms: u64,
    /// Number of children at the time `at_ms`, including this child, that were created since the parent's present
    /// version.
    fresh: u64,
    all: u64,
    names: Vec<String>,
    /// The time at which the parent had fewer children again, if it had.
    fewer_ms: Option<u64>,
    /// Whether this is the second check, which counts children of all versions.
    again: bool,
}

struct Kind {
    keys: Children,
    /// The existing children of each parent.
    live: BTreeMap<Of, BTreeMap<Uid, Child>>,
    of: HashMap<Uid, Of>,
    /// Parents that had too many children, each with the index of its example.
    excess: BTreeMap<Of, Option<usize>>,
    excess_total: u64,
    made: u64,
    parents: u64,
    examples: Vec<TooMany>,
}

pub(super) struct Census {
    /// The resource and the API group of the parents; the group is empty for the core group.
    resource: String,
    group: String,
    parents: Parents,
    kinds: Vec<Kind>,
    orphans: Orphans,
    doubts: VecDeque<Doubt>,
    later: VecDeque<Doubt>,
    unread: Option<String>,
}

impl Census {
    pub(super) fn new(resource: &str, kinds: Vec<Children>) -> Self {
        let kind = |keys| Kind {
            keys,
            live: BTreeMap::new(),
            of: HashMap::new(),
            excess: BTreeMap::new(),
            excess_total: 0,
            made: 0,
            parents: 0,
            examples: Vec::new(),
        };
        Self {
            resource: resource.to_owned(),
            group: resource.split_once('.').map_or_else(String::new, |(_, group)| group.to_owned()),
            parents: Parents::default(),
            kinds: kinds.into_iter().map(kind).collect(),
            orphans: Orphans::default(),
            doubts: VecDeque::new(),
            later: VecDeque::new(),
            unread: None,
        }
    }

    pub(super) fn lost(&mut self, why: String) {
        self.unread.get_or_insert(why);
    }

    /// Records a change of a parent. `entry` has the parent's deletion mark, the list of wanted children of each kind,
    /// and the parent's finalizers.
    pub(super) fn parent(&mut self, t_ms: u64, entry: &audit::Entry) {
        let (uid, place) = (&entry.commit.uid, (entry.commit.namespace.clone(), entry.commit.name.clone()));
        if entry.commit.change == Change::Deleted {
            let orphaning_ms = self.parents.remove(uid, &place).and_then(|parent| parent.orphaning_ms);
            self.orphans.parent_gone(uid, t_ms, orphaning_ms);
            for kind in &mut self.kinds {
                for of in [Of::Uid(uid.clone()), Of::Name(place.0.clone(), place.1.clone())] {
                    let example = kind.excess.remove(&of).flatten().and_then(|at| kind.examples.get_mut(at));
                    if let Some(example) = example {
                        example.to_ms.get_or_insert(t_ms.max(example.from_ms));
                    }
                }
            }
            return;
        }
        let wants = |(at, kind): (usize, &Kind)| match &kind.keys.per_entry {
            Some(_) => entry.fields.get(at + 1).and_then(Value::as_array).map_or(0, |list| list.len() as u64),
            None => kind.keys.per_parent.unwrap_or(1).into(),
        };
        let wanted: Vec<u64> = self.kinds.iter().enumerate().map(wants).collect();
        let known = self.parents.by_uid.entry(uid.clone()).or_default();
        // If objects have no generation, each version may have another spec.
        let generation = entry.progress.generation;
        if generation == 0 || known.generation != generation {
            (known.since_ms, known.generation) = (t_ms, generation);
            known.specified += 1;
        }
        known.place = parents::place(&place.0, &place.1);
        known.wanted.resize(wanted.len(), 0);
        known.wanted.iter_mut().zip(wanted).for_each(|(most, wanted)| *most = wanted.max(*most));
        let going_ms = known.going_ms.unwrap_or(t_ms);
        known.going_ms = is_set(entry.fields.first()).then_some(going_ms);
        let finalizers = entry.fields.get(self.kinds.len() + 1).and_then(Value::as_array);
        if finalizers.is_some_and(|list| list.iter().any(|one| one == "orphan")) {
            known.orphaning_ms = known.going_ms;
        }
        self.parents.names.insert(place.clone(), uid.clone());
        for kind in 0..self.kinds.len() {
            for of in [Of::Uid(uid.clone()), Of::Name(place.0.clone(), place.1.clone())] {
                if self.kinds[kind].live.contains_key(&of) {
                    self.has(kind, &of);
                }
            }
        }
    }

    /// Records a change of a child. `entry` has the child's deletion mark, its owners, and its labels.
    pub(super) fn child(&mut self, kind: usize, t_ms: u64, entry: &audit::Entry) {
        let group = self.group.clone();
        let Some(kind_of) = self.kinds.get_mut(kind) else { return };
        let uid = &entry.commit.uid;
        let gone = entry.commit.change == Change::Deleted || is_set(entry.fields.first());
        let is_owned = entry.fields.get(1).and_then(Value::as_array).is_some_and(|owners| !owners.is_empty());
        let of = if gone { None } else { parent_of(&kind_of.keys.by, &group, entry) };
        if gone {
            self.orphans.left(uid);
        } else if is_owned {
            self.orphans.owned(uid);
        } else {
            self.orphans.unowned(kind, t_ms, entry, (&kind_of.keys.by, of.as_ref()), &self.parents);
        }
        if kind_of.of.get(uid) != of.as_ref()
            && let Some((left, fewer)) = kind_of.leave(uid)
        {
            let waits =
                self.doubts.iter_mut().filter(|doubt| doubt.kind == kind && doubt.of == left && fewer < doubt.all);
            for doubt in waits {
                doubt.fewer_ms.get_or_insert(t_ms);
            }
        }
        if gone || of.is_none() {
            self.settle(kind, t_ms);
            return;
        }
        let Some(of) = of else { return };
        if kind_of.of.contains_key(uid) {
            return;
        }
        kind_of.made += 1;
        kind_of.of.insert(uid.clone(), of.clone());
        let live = kind_of.live.entry(of.clone()).or_default();
        live.insert(uid.clone(), Child { name: entry.commit.name.to_string(), made_ms: t_ms });
        self.has(kind, &of);
        let live = &self.kinds[kind].live[&of];
        let all = live.len() as u64;
        if all < 2 {
            return;
        }
        let mut newest: Vec<&Child> = live.values().collect();
        newest.sort_by(|a, b| b.made_ms.cmp(&a.made_ms).then_with(|| a.name.cmp(&b.name)));
        let names = newest.iter().take(NAMED_CHILDREN_MAX).map(|child| child.name.clone()).collect();
        let since_ms = self.known(&of).map_or(0, |parent| parent.since_ms);
        let fresh = live.values().filter(|child| child.made_ms >= since_ms).count() as u64;
        let (due_ms, child, fewer_ms) = (t_ms + APART_MS, uid.clone(), None);
        let doubt = Doubt { due_ms, kind, of, child, at_ms: t_ms, fresh, all, names, fewer_ms, again: false };
        self.doubts.push_back(doubt);
    }

    /// Records that a parent has children of this kind.
    fn has(&mut self, kind: usize, of: &Of) {
        let Some(parent) = self.parents.get_mut(of) else { return };
        parent.had.resize(self.kinds.len(), false);
        if !std::mem::replace(&mut parent.had[kind], true) {
            self.kinds[kind].parents += 1;
        }
    }

    /// Advances the time and performs the checks whose time has come.
    pub(super) fn advance(&mut self, now_ms: u64) {
        while self.doubts.front().is_some_and(|doubt| doubt.due_ms <= now_ms) {
            let Some(doubt) = self.doubts.pop_front() else { break };
            self.look(doubt, now_ms);
        }
        while self.later.front().is_some_and(|doubt| doubt.due_ms <= now_ms) {
            let Some(doubt) = self.later.pop_front() else { break };
            self.look(doubt, now_ms);
        }
        for kind in 0..self.kinds.len() {
            self.settle(kind, now_ms);
        }
        self.orphans.advance(now_ms, &self.parents);
    }

    /// Ends the count. Children that outlived their parent by at most `grace_ms` are no orphans yet.
    pub(super) fn finish(mut self, now_ms: u64, grace_ms: u64) -> Vec<record::Siblings> {
        // By now the events of both watches are there.
        self.advance(now_ms);
        let rest: Vec<Doubt> = self.doubts.drain(..).collect();
        for doubt in rest {
            self.look(doubt, now_ms);
        }
        let (of, unread) = (self.resource, self.unread);
        let found = self.orphans.finish(self.kinds.len(), now_ms, grace_ms);
        let kind = |(kind, found): (Kind, Found)| record::Siblings {
            resource: loadgen::churn::names(&kind.keys.resource).map_or_else(String::new, |(name, _)| name),
            of: of.clone(),
            unread: unread.clone(),
            parents: kind.parents,
            made: kind.made,
            excess: kind.excess_total,
            examples: kind.examples,
            orphaned: found.total,
            orphans: found.first,
        };
        self.kinds.into_iter().zip(found).map(kind).collect()
    }

    fn known(&self, of: &Of) -> Option<&Parent> {
        self.parents.get(of)
    }

    fn look(&mut self, doubt: Doubt, now_ms: u64) {
        // The children of a parent that is deleted, or being deleted, will be deleted too.
        let Some(parent) = self.known(&doubt.of).filter(|parent| parent.going_ms.is_none()).cloned() else { return };
        let wanted = parent.wanted.get(doubt.kind).copied().unwrap_or_default();
        if doubt.again {
            let live = self.kinds[doubt.kind].live.get(&doubt.of);
            let still = live.filter(|live| live.contains_key(&doubt.child) && live.len() as u64 > wanted);
            if let Some(all) = still.map(|live| live.len() as u64) {
                self.charge(&doubt, &parent, wanted, all);
            }
            return;
        }
        let changed = parent.specified > 1 && doubt.at_ms < parent.since_ms.saturating_add(REPLACED_MS);
        let allowed = if changed { wanted.saturating_mul(2) } else { wanted };
        if doubt.fresh > allowed {
            self.charge(&doubt, &parent, wanted, doubt.all);
        } else if doubt.all > wanted {
            self.later.push_back(Doubt { due_ms: doubt.at_ms + REPLACED_MS, again: true, ..doubt });
        }
        self.settle(doubt.kind, now_ms);
    }

    fn charge(&mut self, doubt: &Doubt, parent: &Parent, wanted: u64, found: u64) {
        let kind = &mut self.kinds[doubt.kind];
        if let Some(known) = kind.excess.get(&doubt.of) {
            if let Some(example) = known.and_then(|at| kind.examples.get_mut(at))
                && example.found < found
            {
                (example.found, example.children) = (found, doubt.names.clone());
            }
            return;
        }
        kind.excess_total += 1;
        let example = (kind.examples.len() < TOO_MANY_MAX).then(|| {
            kind.examples.push(TooMany {
                object: parent.place.clone(),
                wanted,
                found,
                from_ms: doubt.at_ms,
                to_ms: doubt.fewer_ms,
                children: doubt.names.clone(),
            });
            kind.examples.len() - 1
        });
        kind.excess.insert(doubt.of.clone(), example);
    }

    /// Records the time at which parents with too many children have the right number again.
    fn settle(&mut self, kind: usize, now_ms: u64) {
        let wanted = |of: &Of| self.known(of).and_then(|parent| parent.wanted.get(kind).copied());
        let right: Vec<usize> = self.kinds[kind]
            .excess
            .iter()
            .filter(|(of, _)| {
                let live = self.kinds[kind].live.get(*of).map_or(0, |live| live.len() as u64);
                wanted(of).is_none_or(|wanted| live <= wanted)
            })
            .filter_map(|(_, example)| *example)
            .collect();
        for at in right {
            let kind = &mut self.kinds[kind];
            let last = kind.examples.get_mut(at).filter(|example| example.to_ms.is_none());
            if let Some(example) = last {
                example.to_ms = Some(now_ms.max(example.from_ms));
            }
        }
    }
}

impl Kind {
    /// Removes a child that was deleted or has a new parent. Returns the old parent, and the number of its remaining
    /// children.
    fn leave(&mut self, uid: &Uid) -> Option<(Of, u64)> {
        let of = self.of.remove(uid)?;
        let live = self.live.get_mut(&of)?;
        live.remove(uid);
        let left = live.len() as u64;
        if left == 0 {
            self.live.remove(&of);
        }
        Some((of, left))
    }
}

fn is_set(field: Option<&Value>) -> bool {
    field.is_some_and(|at| !at.is_null())
}

/// The parent of a child, as the child's own fields show it.
fn parent_of(by: &By, group: &str, entry: &audit::Entry) -> Option<Of> {
    let owners = entry.fields.get(1).unwrap_or(&Value::Null);
    let named = |key: &str| entry.fields.get(2).and_then(|labels| labels[key].as_str());
    match by {
        By::Label(key) if is_grandchild(owners, named(key)) => return None,
        By::Name(_) if is_grandchild(owners, None) => return None,
        _ => {}
    }
    match by {
        By::Owner => {
            let owners = entry.fields.get(1).and_then(Value::as_array).into_iter().flatten();
            let of_group = |owner: &&Value| {
                let version = owner["apiVersion"].as_str().unwrap_or_default();
                version.split_once('/').map_or("", |(group, _)| group) == group
            };
            owners.filter(of_group).find_map(|owner| owner["uid"].as_str()).map(|uid| Of::Uid(uid.into()))
        }
        By::Label(key) => {
            let label = entry.fields.get(2).and_then(|labels| labels[key].as_str());
            label.map(|uid| Of::Uid(uid.into()))
        }
        By::Name(pattern) => {
            let (before, behind) = Children::name_parts(pattern);
            let name = entry.commit.name.strip_prefix(before)?.strip_suffix(behind)?;
            (!name.is_empty()).then(|| Of::Name(entry.commit.namespace.clone(), name.into()))
        }
    }
}

#[cfg(test)]
mod tests;
