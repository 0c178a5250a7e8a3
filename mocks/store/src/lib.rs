//! The multi-version store: every object, one global revision, and the log of events per resource.
//!
//! Owns the existing objects, their versions, and the events since the compaction floor. Each event's JSON is
//! serialised once, as the line that goes on the wire; an object is a slice of that line. Watchers are [`Cursor`]s into
//! the log, so ten thousand of them cost cursors. It must not do I/O, read a clock, or know HTTP: time is an argument.

pub mod batch;
mod cold;
mod commits;
mod log;
pub mod ordered;
mod page;
mod rewind;
mod version;
pub mod wakers;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

pub use commits::{Commits, RawCommit};
pub use log::{Cursor, Lost, Most};
pub use page::{After, Expired, Page};
pub use rewind::{RewindError, Rewound};
pub use version::head;

use facts::{Change, Progress};
pub use version::{Facts, Identity, Version};

use cold::{Dictionary, Vocabulary};
use log::Log;

/// The number of a resource: its place in the catalogue and in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// One committed change. `version` of a deletion is the last state under the revision of the deletion.
#[derive(Debug)]
pub struct Event {
    pub change: Change,
    /// The new state of the object.
    pub version: Arc<Version>,
    /// The old state of the object; `None` for a new one.
    pub previous: Option<Arc<Version>>,
}

/// The place of an object in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub resource: ResourceId,
    /// Empty for objects without a namespace.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// The precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// There is no such object.
    Absent,
    /// The object is at this revision.
    Revision(u64),
}

/// Why a write was not made: another write was faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is an object although none was expected.
    Exists,
    /// The object is at another revision.
    Stale,
    /// The object is gone.
    Absent,
}

/// Limits of the history that is kept for watches and old lists.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Events of all resources.
    pub history_max_events: usize,
    /// Bytes of their frames.
    pub history_max_bytes: usize,
    /// Age of an event, in microseconds.
    pub history_max_age_us: u64,
    /// Commits that are kept for readers of [`Commits`].
    pub commits_max: usize,
}

#[derive(Debug)]
pub struct Store {
    revision: u64,
    floor: u64,
    /// How often the store was restored.
    timeline: u32,
    shelves: Vec<Shelf>,
    /// One entry per event in any log, oldest first: the order of dropping.
    order: VecDeque<Kept>,
    history_bytes: usize,
    /// The newest versions, which [`Store::cooling`] has not examined yet, and the bytes of their frames.
    warm: VecDeque<Arc<Version>>,
    warm_bytes: usize,
    objects: usize,
    object_bytes: usize,
    dependents: HashMap<Arc<str>, BTreeSet<Place>>,
    commits: Commits,
    limits: Limits,
}

/// The newest history stays unpacked: watches need it now, and packing a version that is soon replaced is wasted work.
const WARM_MAX_BYTES: usize = 384 * 1024;
/// Smaller frames are not worth a dictionary's pointer.
const PACKED_FRAME_MIN_BYTES: usize = 512;
/// Warm versions that one write examines.
const COOLING_LOOKS: usize = 4;

/// A version to be packed, which happens without holding the store.
#[derive(Debug)]
pub struct Cooling {
    version: Arc<Version>,
    dictionary: Arc<Dictionary>,
}

impl Cooling {
    /// Packs it; returns its resource, and whether packing was worth it.
    pub fn run(self) -> (ResourceId, bool) {
        (self.version.identity.resource, self.version.pack(&self.dictionary))
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// By namespace, then by name; cluster-scoped objects live under the empty namespace.
    objects: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<Version>>>,
    log: Log,
    vocabulary: Vocabulary,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    revision: u64,
    at_us: u64,
    resource: ResourceId,
    bytes: u32,
}

impl Store {
    /// An empty store whose first commit gets revision 2, so that no object ever carries 0 or 1, which clients treat as
    /// "not set" and "just started".
    pub fn new(limits: Limits) -> Self {
        Self {
            revision: 1,
            floor: 0,
            timeline: 0,
            shelves: Vec::new(),
            order: VecDeque::new(),
            history_bytes: 0,
            warm: VecDeque::new(),
            warm_bytes: 0,
            objects: 0,
            object_bytes: 0,
            dependents: HashMap::new(),
            commits: Commits::new(limits.commits_max),
            limits,
        }
    }

    /// The newest revision.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The highest compacted revision: a watch may start from it, not before.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn object_count(&self) -> usize {
        self.objects
    }

    /// Bytes of the serialised present state.
    pub fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    /// The number of kept events.
    pub fn history_len(&self) -> usize {
        self.order.len() - self.order.partition_point(|kept| kept.revision <= self.floor)
    }

    /// The bytes of the kept events' frames.
    pub fn history_bytes(&self) -> usize {
        self.history_bytes
    }

    #[inline]
    pub fn commits(&self) -> &Commits {
        &self.commits
    }

    /// The newest version of an object.
    pub fn read(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<&Arc<Version>> {
        self.shelf(resource)?.objects.get(namespace)?.get(name)
    }

    /// The name of a namespace as its objects share it; `None` while it has no object.
    pub fn namespace(&self, resource: ResourceId, name: &str) -> Option<Arc<str>> {
        self.shelf(resource)?.objects.get_key_value(name).map(|(name, _)| name.clone())
    }

    /// Every object that names `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    /// Up to `max` places of one resource in one namespace, for clearing a namespace without copying it.
    pub fn places(&self, resource: ResourceId, namespace: Option<&str>, max: usize) -> Vec<Place> {
        let Some(shelf) = self.shelf(resource) else { return Vec::new() };
        let all = shelf.objects.iter().filter(|(ns, _)| namespace.is_none_or(|wanted| wanted == &***ns));
        all.flat_map(|(ns, names)| names.keys().map(move |name| (ns, name)))
            .take(max)
            .map(|(ns, name)| Place { resource, namespace: ns.clone(), name: name.clone() })
            .collect()
    }

    /// The number of a resource's objects, in one namespace or in all.
    pub fn count(&self, resource: ResourceId, namespace: Option<&str>) -> usize {
        let Some(shelf) = self.shelf(resource) else { return 0 };
        match namespace {
            Some(namespace) => shelf.objects.get(namespace).map_or(0, BTreeMap::len),
            None => shelf.objects.values().map(BTreeMap::len).sum(),
        }
    }

    /// Writes a new version of an object: stamps the revision into it, serialises it once and appends the event.
    pub fn put(
        &mut self,
        identity: &Arc<Identity>,
        expect: Expect,
        value: &mut Value,
        facts: Facts,
        at_us: u64,
    ) -> Result<Arc<Event>, Refused> {
        let previous = self.check(identity, expect)?;
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        let version = Arc::new(Version::stamp(identity.clone(), self.revision + 1, change, value, facts));
        self.index_owners(previous.as_deref(), Some(&version));
        let shelf = self.shelf_mut(identity.resource);
        let names = shelf.objects.entry(identity.namespace.clone()).or_default();
        names.insert(identity.name.clone(), version.clone());
        self.objects += usize::from(previous.is_none());
        self.object_bytes += version.frame_bytes();
        self.object_bytes -= previous.as_ref().map_or(0, |previous| previous.frame_bytes());
        Ok(self.append(change, version, previous, at_us))
    }

    /// Removes an object. `value` is its last state; it is stamped with the revision of the deletion.
    pub fn remove(
        &mut self,
        identity: &Arc<Identity>,
        expected: u64,
        value: &mut Value,
        facts: Facts,
        at_us: u64,
    ) -> Result<Arc<Event>, Refused> {
        let previous = self.check(identity, Expect::Revision(expected))?;
        let version = Arc::new(Version::stamp(identity.clone(), self.revision + 1, Change::Deleted, value, facts));
        self.index_owners(previous.as_deref(), None);
        let shelf = self.shelf_mut(identity.resource);
        if let Some(names) = shelf.objects.get_mut(&identity.namespace) {
            names.remove(&identity.name);
            if names.is_empty() {
                shelf.objects.remove(&identity.namespace);
            }
        }
        self.objects -= 1;
        self.object_bytes -= previous.as_ref().map_or(0, |previous| previous.frame_bytes());
        Ok(self.append(Change::Deleted, version, previous, at_us))
    }

    /// A cursor that will yield every event of `resource` after `revision`.
    pub fn cursor(&self, resource: ResourceId, revision: u64) -> Result<Cursor, Expired> {
        if revision < self.floor {
            return Err(Expired { requested: revision, floor: self.floor });
        }
        Ok(self.shelf(resource).map_or_else(|| Cursor::start(revision), |shelf| shelf.log.after(revision)))
    }

    /// Appends up to `max` further events, none after revision `through`, to `out`. Returns the revision up to which
    /// the cursor has seen everything: the global one if it is drained, else that of the last event.
    pub fn pull(
        &self,
        resource: ResourceId,
        cursor: &mut Cursor,
        max: usize,
        through: u64,
        out: &mut Vec<Arc<Event>>,
    ) -> Result<u64, Lost> {
        let through = through.min(self.revision);
        Ok(if self.pull_within(resource, cursor, Most { events: max, bytes: usize::MAX }, through, out)? {
            through
        } else {
            out.last().map_or(self.floor, |event| event.version.revision)
        })
    }

    /// Appends further events, none after revision `through`, to `out` until one of the two limits is reached; at least
    /// one if there is any. Returns whether the cursor is drained.
    pub fn pull_within(
        &self,
        resource: ResourceId,
        cursor: &mut Cursor,
        most: Most,
        through: u64,
        out: &mut Vec<Arc<Event>>,
    ) -> Result<bool, Lost> {
        let through = through.min(self.revision);
        self.shelf(resource).map_or(Ok(true), |shelf| shelf.log.pull(cursor, most, through, out))
    }

    /// Drops the history up to and including `revision`: watches and lists that begin before it get 410 from now on. An
    /// open watch that is a little behind goes on, as in a real server, whose watch cache no compaction of etcd
    /// touches. Its unread events stay within the limits of the history.
    pub fn compact(&mut self, revision: u64) {
        self.floor = self.floor.max(revision.min(self.revision));
    }

    /// Uses up one revision without a commit.
    pub fn skip(&mut self) {
        self.revision += 1;
    }

    /// Drops events older than the configured age. Called now and then; writes enforce the other two limits.
    pub fn expire(&mut self, now_us: u64) {
        let oldest_kept_us = now_us.saturating_sub(self.limits.history_max_age_us);
        while self.order.front().is_some_and(|kept| kept.at_us < oldest_kept_us) {
            self.drop_oldest();
        }
    }

    /// The next version to pack: the present state of an object that was not written for a while. Called after each
    /// write, so that the memory of many new objects never piles up. Superseded versions stay unpacked: the history has
    /// its own limits, and most written objects are written again soon.
    pub fn cooling(&mut self) -> Option<Cooling> {
        for _ in 0..COOLING_LOOKS {
            if self.warm_bytes <= WARM_MAX_BYTES {
                return None;
            }
            let version = self.warm.pop_front()?;
            self.warm_bytes = self.warm_bytes.saturating_sub(version.frame_bytes());
            let shelf = self.shelves.get_mut(version.identity.resource.0 as usize)?;
            let names = shelf.objects.get(&version.identity.namespace);
            let present = names.and_then(|names| names.get(&version.identity.name));
            if version.frame_bytes() >= PACKED_FRAME_MIN_BYTES
                && present.is_some_and(|present| Arc::ptr_eq(present, &version))
                && let Some(dictionary) = shelf.vocabulary.dictionary(|out| version.append_frame(out))
            {
                return Some(Cooling { version, dictionary });
            }
        }
        None
    }

    /// Notes whether packing was worth it.
    pub fn cooled(&mut self, resource: ResourceId, worth: bool) {
        self.shelf_mut(resource).vocabulary.judge(worth);
    }

    fn check(&self, identity: &Identity, expect: Expect) -> Result<Option<Arc<Version>>, Refused> {
        let current = self.read(identity.resource, &identity.namespace, &identity.name);
        match (expect, current) {
            (Expect::Absent, None) => Ok(None),
            (Expect::Absent, Some(_)) => Err(Refused::Exists),
            (Expect::Revision(_), None) => Err(Refused::Absent),
            (Expect::Revision(revision), Some(current)) if current.revision == revision => Ok(Some(current.clone())),
            (Expect::Revision(_), Some(_)) => Err(Refused::Stale),
        }
    }

    fn append(
        &mut self,
        change: Change,
        version: Arc<Version>,
        previous: Option<Arc<Version>>,
        at_us: u64,
    ) -> Arc<Event> {
        let resource = version.identity.resource;
        self.revision = version.revision;
        self.commits.push(RawCommit {
            at_us,
            identity: version.identity.clone(),
            revision: version.revision,
            timeline: self.timeline,
            change,
            progress: version.facts().progress,
        });
        let bytes = version.frame_bytes();
        self.history_bytes += bytes;
        let kept_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.warm.push_back(version.clone());
        self.warm_bytes += bytes;
        self.order.push_back(Kept { revision: version.revision, at_us, resource, bytes: kept_bytes });
        let event = Arc::new(Event { change, version, previous });
        self.shelf_mut(resource).log.push(event.clone());
        // The newest event always stays, so that the cursor of a watcher that keeps up is never lost.
        while self.order.len() > 1
            && (self.order.len() > self.limits.history_max_events || self.history_bytes > self.limits.history_max_bytes)
        {
            self.drop_oldest();
        }
        event
    }

    fn drop_oldest(&mut self) {
        if let Some(kept) = self.order.pop_front() {
            self.shelf_mut(kept.resource).log.drop_oldest();
            self.history_bytes = self.history_bytes.saturating_sub(kept.bytes as usize);
            self.floor = self.floor.max(kept.revision);
        }
    }

    fn index_owners(&mut self, before: Option<&Version>, after: Option<&Version>) {
        let owners = |version: Option<&Version>| version.map(|v| v.facts().owners.clone()).unwrap_or_default();
        let (old, new) = (owners(before), owners(after));
        if old == new {
            return;
        }
        let Some(version) = after.or(before) else { return };
        let place = version.identity.place();
        for uid in old {
            if let Some(places) = self.dependents.get_mut(&uid) {
                places.remove(&place);
                if places.is_empty() {
                    self.dependents.remove(&uid);
                }
            }
        }
        for uid in new {
            self.dependents.entry(uid).or_default().insert(place.clone());
        }
    }

    fn shelf(&self, resource: ResourceId) -> Option<&Shelf> {
        self.shelves.get(resource.0 as usize)
    }

    fn shelf_mut(&mut self, resource: ResourceId) -> &mut Shelf {
        let index = resource.0 as usize;
        if self.shelves.len() <= index {
            self.shelves.resize_with(index + 1, Shelf::default);
        }
        &mut self.shelves[index]
    }
}

#[cfg(test)]
mod tests;
