//! The multi-version store: every object, one global revision, and the log of events per resource.
//!
//! Owns the existing objects, their versions, and the events since the compaction floor. Each event is serialised once,
//! as the JSON line that watches get; the object's JSON is a substring of that line. A watcher is a [`Cursor`] into the
//! log, so ten thousand watchers cost only ten thousand cursors. The store must not do I/O, read a clock, or know HTTP:
//! callers pass the time.

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

/// The number of a resource: its index in the catalogue and in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// One committed change. The `version` of a deletion is the last state of the object, with the revision of the
/// deletion.
#[derive(Debug)]
pub struct Event {
    pub change: Change,
    /// The new state of the object; after a deletion, its last state.
    pub version: Arc<Version>,
    /// The old state of the object; `None` for a new object.
    pub previous: Option<Arc<Version>>,
}

/// The key of an object in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub resource: ResourceId,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The object must not exist.
    Absent,
    /// The object must have this revision.
    Revision(u64),
}

/// Why the store refused a write: another client wrote the object first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The object exists although the write expected none.
    Exists,
    /// The object has another revision than expected.
    Stale,
    /// The object does not exist.
    Absent,
}

/// Limits of the history that the store keeps for watches and for lists at old revisions.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of events of all resources together.
    pub history_max_events: usize,
    /// Maximum total size of the events' watch lines, in bytes.
    pub history_max_bytes: usize,
    /// Greatest age of an event, in microseconds.
    pub history_max_age_us: u64,
    /// Maximum number of commits that are kept for readers of [`Commits`].
    pub commits_max: usize,
}

#[derive(Debug)]
pub struct Store {
    revision: u64,
    floor: u64,
    /// Number of restores of the store so far.
    timeline: u32,
    shelves: Vec<Shelf>,
    /// One entry for each event of all resources' logs, oldest first; events are dropped in this order.
    order: VecDeque<Kept>,
    history_bytes: usize,
    /// The newest versions, which [`Store::cooling`] has not examined yet.
    warm: VecDeque<Arc<Version>>,
    warm_bytes: usize,
    objects: usize,
    object_bytes: usize,
    dependents: HashMap<Arc<str>, BTreeSet<ObjectKey>>,
    commits: Commits,
    limits: Limits,
}

/// Total size in bytes of the newest versions, which stay unpacked: watches need them now, and many of them are soon
/// replaced.
const WARM_MAX_BYTES: usize = 384 * 1024;
/// Smallest watch line to pack, in bytes; packing a smaller line saves less memory than the pointer to its dictionary
/// needs.
const PACKED_FRAME_MIN_BYTES: usize = 512;
/// Maximum number of unpacked versions that are examined after one write.
const COOLING_LOOKS: usize = 4;

/// A version to be packed. Packing needs no lock on the store.
#[derive(Debug)]
pub struct Cooling {
    version: Arc<Version>,
    dictionary: Arc<Dictionary>,
}

impl Cooling {
    /// Packs the version; returns its resource, and whether packing saved enough memory.
    pub fn run(self) -> (ResourceId, bool) {
        (self.version.identity.resource, self.version.pack(&self.dictionary))
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// The newest versions by namespace, then by name; cluster-scoped objects have the empty namespace.
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
    /// An empty store. The first commit gets revision 2, because clients treat 0 as "not set" and 1 as "just started".
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

    /// The revision of the newest commit.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The highest compacted revision: the oldest revision from which a watch may start.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    pub fn object_count(&self) -> usize {
        self.objects
    }

    /// Total bytes of all existing objects as serialised JSON.
    pub fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    /// The number of kept events of all resources.
    pub fn history_len(&self) -> usize {
        self.order.len() - self.order.partition_point(|kept| kept.revision <= self.floor)
    }

    /// Total bytes of the watch lines of the kept events.
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

    /// The shared text of a namespace's name; `None` while the namespace has no object of this resource.
    pub fn namespace(&self, resource: ResourceId, name: &str) -> Option<Arc<str>> {
        self.shelf(resource)?.objects.get_key_value(name).map(|(name, _)| name.clone())
    }

    /// The keys of all objects that name `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.dependents.get(uid).map(|places| places.iter().cloned().collect()).unwrap_or_default()
    }

    /// The keys of up to `max` objects of one resource, so that a caller can clear a namespace without copying all keys
    /// at once.
    pub fn places(&self, resource: ResourceId, namespace: Option<&str>, max: usize) -> Vec<ObjectKey> {
        let Some(shelf) = self.shelf(resource) else { return Vec::new() };
        let all = shelf.objects.iter().filter(|(ns, _)| namespace.is_none_or(|wanted| wanted == &***ns));
        all.flat_map(|(ns, names)| names.keys().map(move |name| (ns, name)))
            .take(max)
            .map(|(ns, name)| ObjectKey { resource, namespace: ns.clone(), name: name.clone() })
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

    /// Writes a new version of an object: writes the next revision into it, serialises it once and appends the event to
    /// the log.
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

    /// Removes an object. `value` is its last state, into which the store writes the revision of the deletion.
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

    /// A cursor that yields every event of `resource` after `revision`.
    pub fn cursor(&self, resource: ResourceId, revision: u64) -> Result<Cursor, Expired> {
        if revision < self.floor {
            return Err(Expired { requested: revision, floor: self.floor });
        }
        Ok(self.shelf(resource).map_or_else(|| Cursor::start(revision), |shelf| shelf.log.after(revision)))
    }

    /// Appends to `out` up to `max` further events, none after revision `through`. Returns the last event's revision if
    /// more events follow, else the lower of `through` and the store's revision.
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

    /// Appends to `out` further events, none after revision `through`, until a limit in `most` is reached; at least one
    /// event if there is any. Returns whether no further event follows.
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

    /// Drops the history up to and including `revision`: watches and lists that begin before that revision get 410 from
    /// now on. An open watch that is a little behind continues, because etcd's compaction does not touch a real
    /// server's watch cache. The unread events of open watches stay within the limits of the history.
    pub fn compact(&mut self, revision: u64) {
        self.floor = self.floor.max(revision.min(self.revision));
    }

    /// Increments the revision without a commit.
    pub fn skip(&mut self) {
        self.revision += 1;
    }

    /// Drops events older than the configured age. Callers run this function regularly, because a write enforces only
    /// the limits of number and bytes.
    pub fn expire(&mut self, now_us: u64) {
        let oldest_kept_us = now_us.saturating_sub(self.limits.history_max_age_us);
        while self.order.front().is_some_and(|kept| kept.at_us < oldest_kept_us) {
            self.drop_oldest();
        }
    }

    /// The next version to pack: the present state of an object that was not written for a while. Callers call this
    /// function after each write, so that many new objects never stay unpacked. Superseded versions stay unpacked: the
    /// limits of the history bound them, and most written objects are soon written again.
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

    /// Passes to the resource's dictionary whether packing one version saved enough memory.
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
        let owners = if change == Change::Added { version.facts().owners.clone() } else { Box::default() };
        let before = previous.as_ref().map_or(&[][..], |previous| &previous.facts().owners);
        let is_adopted = change != Change::Deleted && version.facts().owners.iter().any(|uid| !before.contains(uid));
        self.commits.push(RawCommit {
            at_us,
            identity: version.identity.clone(),
            revision: version.revision,
            timeline: self.timeline,
            change,
            owners,
            is_adopted,
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
