//! Bounded record of objects and of the subject's reads of them. Does no I/O.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use reports::record::{Carried, Read, RequestRow};

/// Maximum number of existing objects remembered, about 150 bytes each.
const LIVE_MAX: usize = 50_000;
/// Maximum number of deleted objects remembered. A recreation follows within seconds, in which no control plane deletes so many
/// objects.
const GONE_MAX: usize = 10_000;
/// Maximum number of creations whose client is not known yet: as many requests as the control plane keeps.
const MADE_MAX: usize = 16_384;
/// Maximum number of remembered objects that the subject read by name.
const GOT_MAX: usize = 4096;
/// Maximum number of remembered collections whose last list by the subject is known.
const LISTED_MAX: usize = 256;

pub(super) type Key = (Arc<str>, Arc<str>, Arc<str>);

#[derive(Debug, Clone, Copy)]
struct Live {
    /// The revision of the object's creation.
    first: u64,
    revision: u64,
    /// The revision and the time in µs of the request to delete the object.
    leaving: Option<(u64, u64)>,
}

#[derive(Debug, Clone)]
pub(super) struct Gone {
    pub(super) at_us: u64,
    pub(super) is_foreign: bool,
    revision: u64,
    /// The first and the last revision of the object, if they are known.
    first: Option<u64>,
    last: Option<u64>,
    leaving: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    live: HashMap<Key, Live>,
    gone: HashMap<Key, Gone>,
    went: VecDeque<Key>,
    /// Existing objects that the subject created.
    own: HashSet<Key>,
    /// Objects whose deletion the subject requested.
    taken: HashSet<Key>,
    /// The newest creations, by revision.
    made: HashMap<u64, (Key, u64)>,
    making: VecDeque<u64>,
    got: HashMap<Key, Read>,
    asked: VecDeque<Key>,
    /// Time and revision of the subject's last list, by resource and namespace.
    listed: HashMap<(Arc<str>, Arc<str>), (u64, u64)>,
}

impl Memory {
    pub(super) fn added(&mut self, key: Key, revision: u64, at_us: u64) {
        if self.live.len() < LIVE_MAX {
            self.live.insert(key.clone(), Live { first: revision, revision, leaving: None });
        }
        if self.making.len() == MADE_MAX
            && let Some(oldest) = self.making.pop_front()
        {
            self.made.remove(&oldest);
        }
        self.made.insert(revision, (key, at_us));
        self.making.push_back(revision);
    }

    pub(super) fn modified(&mut self, key: &Key, revision: u64, at_us: u64, leaving: bool) {
        if let Some(live) = self.live.get_mut(key) {
            live.revision = revision;
            if leaving {
                live.leaving.get_or_insert((revision, at_us));
            }
        }
    }

    /// Records the deletion of an object. Returns whether another client created the object and the subject had not
    /// requested its deletion.
    pub(super) fn deleted(&mut self, key: Key, revision: u64, at_us: u64) -> bool {
        let live = self.live.remove(&key);
        let (first, last) = (live.map(|live| live.first), live.map(|live| live.revision));
        let leaving = live.and_then(|live| live.leaving);
        let (own, taken) = (self.own.remove(&key), self.taken.remove(&key));
        let is_foreign = !own && !taken && !self.is_full();
        if self.went.len() == GONE_MAX
            && let Some(oldest) = self.went.pop_front()
        {
            self.gone.remove(&oldest);
        }
        let gone = Gone { at_us, is_foreign, revision, first, last, leaving };
        if self.gone.insert(key.clone(), gone).is_none() {
            self.went.push_back(key);
        }
        is_foreign
    }

    /// Returns the object that was created with this revision, and the time of the creation. A second call returns
    /// `None`.
    pub(super) fn made(&mut self, revision: u64) -> Option<(Key, u64)> {
        self.made.remove(&revision)
    }

    /// Marks an object created at `made_us` as the subject's own. Returns the last deleted object with the same name,
    /// if any. The deletion may be earlier or later than `made_us`.
    pub(super) fn own(&mut self, key: &Key, made_us: u64) -> Option<Gone> {
        let is_full = self.is_full();
        let Some(gone) = self.gone.get_mut(key) else {
            if !is_full {
                self.own.insert(key.clone());
            }
            return None;
        };
        let before = gone.clone();
        if gone.at_us > made_us {
            gone.is_foreign = false;
        } else if !is_full {
            self.own.insert(key.clone());
        }
        Some(before)
    }

    /// Handles a write of the subject whose result is unknown: all objects that were created in this collection during
    /// the write may be the subject's own.
    pub(super) fn may_be_own(&mut self, resource: &str, namespace: &str, (from_us, to_us): (u64, u64)) {
        let of = |(key, at_us): &&(Key, u64)| {
            *key.0 == *resource && *key.1 == *namespace && (from_us..=to_us).contains(at_us)
        };
        let made: Vec<(Key, u64)> = self.made.values().filter(of).cloned().collect();
        for (key, made_us) in made {
            self.own(&key, made_us);
        }
    }

    /// Whether the subject has created more objects than can be remembered. If the memory is full, the creator of
    /// further objects is unknown.
    pub(super) fn is_full(&self) -> bool {
        self.own.len() >= LIVE_MAX
    }

    /// Whether a deletion request at `at_us` concerns an object of another client whose deletion nobody had requested.
    pub(super) fn takes(&self, key: &Key, at_us: u64) -> bool {
        if self.own.contains(key) || self.taken.contains(key) || self.is_full() {
            return false;
        }
        match (self.live.get(key), self.gone.get(key)) {
            (Some(live), _) => live.leaving.is_none_or(|(_, leaving_us)| leaving_us >= at_us),
            (None, Some(gone)) => {
                let asked_us = gone.leaving.map_or(gone.at_us, |(_, leaving_us)| leaving_us);
                gone.is_foreign && asked_us >= at_us
            }
            // It is not remembered.
            (None, None) => false,
        }
    }

    /// Records that the subject requested the deletion of an object.
    pub(super) fn taken(&mut self, key: &Key) {
        if self.live.contains_key(key) {
            self.taken.insert(key.clone());
        } else if let Some(gone) = self.gone.get_mut(key) {
            gone.is_foreign = false;
        }
    }

    pub(super) fn gone(&self, key: &Key) -> Option<&Gone> {
        self.gone.get(key).filter(|_| !self.live.contains_key(key))
    }

    /// Records the subject's read of one object.
    pub(super) fn got(&mut self, key: Key, t_ms: u64, row: &RequestRow) {
        let read = Read::Got { t_ms, status: row.status, revision: row.last_revision };
        if self.got.insert(key.clone(), read).is_some() {
            return;
        }
        if self.asked.len() == GOT_MAX
            && let Some(oldest) = self.asked.pop_front()
        {
            self.got.remove(&oldest);
        }
        self.asked.push_back(key);
    }

    /// Records the subject's list of a collection.
    pub(super) fn listed(&mut self, row: &RequestRow) {
        let Some(revision) = row.last_revision.filter(|_| row.succeeded()) else { return };
        let of = (Arc::from(&*row.resource), Arc::from(&*row.namespace));
        // A filtered list says nothing about objects that are not in it.
        let is_whole = row.labels.is_none() && row.fields.is_none();
        if is_whole && (self.listed.len() < LISTED_MAX || self.listed.contains_key(&of)) {
            self.listed.insert(of, (row.ended_ms.unwrap_or(row.t_ms), revision));
        }
    }

    /// The subject's reads of an object by get and list.
    pub(super) fn read(&self, key: &Key, gone: Option<&Gone>) -> Vec<Read> {
        let listed = |namespace: Arc<str>| self.listed.get(&(key.0.clone(), namespace)).copied();
        let all = listed("".into());
        let first = match gone {
            Some(gone) => gone.first,
            None => self.live.get(key).map(|live| live.first).or_else(|| self.gone.get(key)?.first),
        };
        // A list from before the object's creation says nothing about it.
        let newest = all.max(listed(key.1.clone())).filter(|(_, listed)| first.is_none_or(|first| *listed >= first));
        let listed = newest.map(|(t_ms, revision)| {
            let there = gone.is_none_or(|gone| revision < gone.revision);
            Read::Listed { t_ms, revision, there }
        });
        listed.into_iter().chain(self.got.get(key).copied()).collect()
    }

    /// The revisions of an object that a watch may have delivered, ascending.
    pub(super) fn versions(&self, key: &Key, gone: Option<&Gone>) -> Vec<(u64, Carried)> {
        if let Some(gone) = gone {
            let leaving = gone.leaving.map(|(revision, _)| (revision, Carried::Leaving));
            return leaving.into_iter().chain([(gone.revision, Carried::Deletion)]).collect();
        }
        let last = self.live.get(key).map(|live| live.revision);
        let last = last.or_else(|| self.gone.get(key).and_then(|gone| gone.last));
        last.into_iter().map(|revision| (revision, Carried::Version)).collect()
    }
}
