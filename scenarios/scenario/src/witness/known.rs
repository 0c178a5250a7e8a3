//! Keeps the existing objects, and for each the versions that the subject has proven to know. This module turns claims
//! (reports that name no version) into observations.
//!
//! Commits are read in their order, and each claim is resolved with all commits before the claim. A version is proven
//! once, by the first claim about it or about a newer version. The proof of a deletion is the end of a sign, such as a
//! child, by which the subject showed the object before.
//!
//! After the request to delete an object, the subject has to observe only the deletion, although the object's
//! generation still rises. A subject that removes its finalizer does not repeat the raised generation. The removal of a
//! finalizer that is not the harness's, alone or with the object, proves that the subject saw the deletion request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use facts::{Change, Commit, Observation, Progress, Revision, Uid};

use super::{Claim, Commits, Counts, Fact, Of, Proof, Reading, Resolved};

/// Number of recent versions of an object that a claim can be about. A claim about an older version proves nothing.
const RECENT_MAX: usize = 16;
/// Maximum number of deleted objects that a claim can still be about.
const GONE_MAX: usize = 65_536;

/// The number that identifies the versions of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// No number: the witness shows only that an object exists.
    Nothing,
    /// `metadata.generation`. Versions are identified by the generation, so writes that do not change the generation
    /// need not be observed.
    Generation,
    Revision,
}

/// The existing objects and some deleted objects. Memory use: one entry for each existing object and for the newest
/// deleted objects.
pub(super) struct Known {
    by: By,
    /// Whether the witness can observe deletions.
    deletions: bool,
    objects: HashMap<Uid, Object>,
    names: HashMap<ObjectName, Uid>,
    gone: VecDeque<Uid>,
}

type ObjectName = (Arc<str>, Arc<str>);

struct Object {
    place: ObjectName,
    first: Revision,
    recent: VecDeque<Version>,
    /// The index of the newest version that is proven; 0 if no version is proven.
    proven: u64,
    /// Time since which a sign (such as a child) shows that the subject knows the object. The end of this sign proves
    /// the deletion.
    shown_ms: Option<u64>,
    gone: Gone,
    /// Whether the object's deletion was requested, and a finalizer from that time still holds the object.
    held: bool,
}

struct Version {
    /// The index of the version among the object's versions, counted from 1.
    turn: u64,
    number: i64,
    revision: Revision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    No,
    /// The object is deleted, and the subject has to prove that it knows of the deletion.
    Owed,
    /// The object is deleted, and nothing more about it can be observed.
    Closed,
}

impl Known {
    pub(super) fn new(by: By, deletions: bool) -> Self {
        Self { by, deletions, objects: HashMap::new(), names: HashMap::new(), gone: VecDeque::new() }
    }

    /// Adds a new version of an object. Returns whether the subject has to observe this version. The subject need not
    /// observe a version that it wrote itself, or a version of an object that is being deleted.
    pub(super) fn note(&mut self, commit: &Commit, progress: Progress, own: bool) -> bool {
        let own = own || progress.leaving;
        let number = match self.by {
            By::Nothing => 0,
            By::Generation => progress.generation,
            By::Revision => commit.revision.number().and_then(|number| i64::try_from(number).ok()).unwrap_or(0),
        };
        let held = progress.leaving && progress.guarded;
        let Some(object) = self.objects.get_mut(&commit.uid) else {
            let place = (Arc::clone(&commit.namespace), Arc::clone(&commit.name));
            self.names.insert(place.clone(), commit.uid.clone());
            let first = commit.revision.clone();
            let recent = [Version { turn: 1, number, revision: first.clone() }].into();
            let object = Object { place, first, recent, proven: 0, shown_ms: None, gone: Gone::No, held };
            self.objects.insert(commit.uid.clone(), object);
            return true;
        };
        object.held = held;
        let Some(newest) = object.recent.back() else { return false };
        let (turn, revision) = (newest.turn, newest.revision.clone());
        if newest.number == number {
            return false;
        }
        let version = if own {
            Version { turn, number, revision }
        } else {
            Version { turn: turn + 1, number, revision: commit.revision.clone() }
        };
        if object.recent.len() == RECENT_MAX {
            object.recent.pop_front();
        }
        object.recent.push_back(version);
        !own
    }

    /// The proof that the subject gives by removing its finalizer. Must be called before the commit is added by
    /// [`Self::note`].
    pub(super) fn released(&mut self, commit: &Commit, progress: Progress) -> Option<Proof> {
        let object = self.objects.get_mut(&commit.uid).filter(|object| object.held)?;
        if commit.change != Change::Deleted && progress.guarded {
            return None;
        }
        object.held = false;
        let newest = object.recent.back()?;
        let (turn, revision) = (newest.turn, newest.revision.clone());
        object.prove(turn, revision)
    }

    /// Adds the deletion of an object. Returns whether the subject has to observe the deletion.
    pub(super) fn end(&mut self, uid: &Uid) -> Counts {
        let Some(object) = self.objects.get_mut(uid) else { return Counts::Untold };
        let owed = self.deletions && object.shown_ms.is_some();
        object.gone = if owed { Gone::Owed } else { Gone::Closed };
        self.gone.push_back(uid.clone());
        if self.gone.len() > GONE_MAX
            && let Some(uid) = self.gone.pop_front()
            && let Some(object) = self.objects.remove(&uid)
            && self.names.get(&object.place) == Some(&uid)
        {
            self.names.remove(&object.place);
        }
        if owed { Counts::Version } else { Counts::Untold }
    }

    /// The proof of the version with this number, if the version exists and is not proven yet.
    pub(super) fn prove(&mut self, uid: &Uid, number: i64) -> Option<Proof> {
        let object = self.objects.get_mut(uid)?;
        let version = object.recent.iter().rfind(|version| version.number == number)?;
        let (turn, revision) = (version.turn, version.revision.clone());
        object.prove(turn, revision)
    }

    /// Whether the version with this number may still be committed.
    fn is_ahead(&self, uid: &Uid, number: i64) -> bool {
        let newest = self.objects.get(uid).and_then(|object| object.recent.back());
        newest.is_some_and(|newest| newest.number < number)
    }
}

impl Object {
    fn prove(&mut self, turn: u64, revision: Revision) -> Option<Proof> {
        if turn <= self.proven {
            return None;
        }
        // The first proof of an object counts as its addition, for any version.
        let change = if self.proven == 0 { Change::Added } else { Change::Modified };
        self.proven = turn;
        Some(Proof { revision, change })
    }
}

impl Commits for Known {
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading {
        let proves = self.released(commit, progress);
        let counts = match commit.change {
            Change::Deleted => self.end(&commit.uid),
            _ if self.note(commit, progress, false) => Counts::Version,
            _ => Counts::No,
        };
        Reading { counts, proves }
    }

    fn resolve(&mut self, claim: &Claim, last: bool) -> Resolved {
        let unknown = if last { Resolved::Nothing } else { Resolved::NotYet };
        let uid = match &claim.of {
            Of::Uid(uid) => Some(uid),
            Of::Name(namespace, name) => self.names.get(&(Arc::clone(namespace), Arc::clone(name))),
        };
        let Some(uid) = uid.cloned() else { return unknown };
        let Some(object) = self.objects.get_mut(&uid) else { return unknown };
        let proof = match (claim.what, object.gone) {
            (Fact::There { ends }, Gone::No) => {
                object.shown_ms = ends.then_some(claim.t_ms);
                object.prove(1, object.first.clone())
            }
            (Fact::There { .. }, _) | (Fact::Gone, Gone::Closed) => None,
            (Fact::Version(number), _) => match self.prove(&uid, number) {
                None if self.is_ahead(&uid, number) => return unknown,
                proof => proof,
            },
            (Fact::Gone, Gone::Owed) => {
                object.gone = Gone::Closed;
                let newest = object.recent.back().map_or(&object.first, |newest| &newest.revision);
                Some(Proof { revision: newest.clone(), change: Change::Deleted })
            }
            (Fact::Gone, Gone::No) if !last => return Resolved::NotYet,
            (Fact::Gone, Gone::No) => {
                // The sign ended for another reason: from here on nothing shows that the subject knows the object.
                object.shown_ms = object.shown_ms.filter(|shown_ms| *shown_ms > claim.t_ms);
                None
            }
        };
        proof.map_or(Resolved::Nothing, |Proof { revision, change }| {
            Resolved::Proves(Observation { t_ms: claim.t_ms, uid, revision, change })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(known: &mut Known, uid: &str, revision: u64, change: Change, generation: i64) -> Counts {
        let commit = Commit {
            order: facts::Order::of_numbered(revision),
            resource: "packages".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: uid.into(),
            revision: Revision::of_number(revision),
            change,
        };
        known.read(&commit, Progress { generation, ..Progress::default() }).counts
    }

    fn claimed(known: &mut Known, of: Of, what: Fact) -> Option<(String, Change)> {
        match known.resolve(&Claim { t_ms: 5, of, what }, true) {
            Resolved::Proves(seen) => Some((seen.revision.to_string(), seen.change)),
            _ => None,
        }
    }

    fn uid(uid: &str) -> Of {
        Of::Uid(uid.into())
    }

    const THERE: Fact = Fact::There { ends: true };

    /// The first sign that the subject knows an object proves the object's first version, once. The end of this sign
    /// proves the object's deletion, once.
    #[test]
    fn what_is_there_and_what_is_gone() {
        let mut known = Known::new(By::Nothing, true);
        assert_eq!(commit(&mut known, "u", 1, Change::Added, 1), Counts::Version);
        assert_eq!(commit(&mut known, "u", 2, Change::Modified, 2), Counts::No, "no version can be told");
        let by_name = Of::Name("n".into(), "a".into());
        assert_eq!(claimed(&mut known, by_name.clone(), THERE), Some(("1".into(), Change::Added)));
        assert_eq!(claimed(&mut known, uid("u"), THERE), None);
        assert_eq!(commit(&mut known, "u", 3, Change::Deleted, 2), Counts::Version);
        assert_eq!(claimed(&mut known, uid("u"), THERE), None);
        assert_eq!(claimed(&mut known, by_name, Fact::Gone), Some(("1".into(), Change::Deleted)));
        assert_eq!(claimed(&mut known, uid("u"), Fact::Gone), None);
    }

    /// The end of a sign proves no deletion if the sign never existed or has already ended.
    #[test]
    fn a_deletion_is_owed_by_who_showed_the_object() {
        for before in [None, Some(Fact::There { ends: false })] {
            let mut known = Known::new(By::Nothing, true);
            commit(&mut known, "u", 1, Change::Added, 1);
            before.map(|what| claimed(&mut known, uid("u"), what));
            assert_eq!(commit(&mut known, "u", 2, Change::Deleted, 1), Counts::Untold, "{before:?}");
            assert_eq!(claimed(&mut known, uid("u"), Fact::Gone), None);
        }
        let mut known = Known::new(By::Nothing, true);
        commit(&mut known, "u", 1, Change::Added, 1);
        claimed(&mut known, uid("u"), THERE);
        assert_eq!(claimed(&mut known, uid("u"), Fact::Gone), None, "it is there");
        assert_eq!(commit(&mut known, "u", 2, Change::Deleted, 1), Counts::Untold);
    }

    #[test]
    fn versions_are_proven_by_their_number() {
        let mut known = Known::new(By::Generation, false);
        commit(&mut known, "u", 1, Change::Added, 1);
        assert_eq!(commit(&mut known, "u", 2, Change::Modified, 1), Counts::No);
        assert_eq!(commit(&mut known, "u", 3, Change::Modified, 2), Counts::Version);
        assert_eq!(commit(&mut known, "u", 4, Change::Modified, 3), Counts::Version);
        let mut say = |number| claimed(&mut known, uid("u"), Fact::Version(number));
        assert_eq!(say(2), Some(("3".into(), Change::Added)), "the first that was seen");
        assert_eq!((say(1), say(2), say(9)), (None, None, None));
        assert_eq!(say(3), Some(("4".into(), Change::Modified)));
        let mut known = Known::new(By::Revision, false);
        commit(&mut known, "u", 7, Change::Added, 0);
        assert_eq!(commit(&mut known, "u", 9, Change::Modified, 0), Counts::Version);
        assert_eq!(claimed(&mut known, uid("u"), Fact::Version(9)), Some(("9".into(), Change::Added)));
    }

    /// A subject that removes its finalizer has seen the deletion request, and does not repeat the new generation.
    #[test]
    fn who_lets_an_object_go_has_seen_it() {
        let read = |known: &mut Known, revision, change, (generation, leaving, guarded)| {
            let commit = Commit {
                order: facts::Order::of_numbered(revision),
                resource: "packages".into(),
                namespace: "n".into(),
                name: "a".into(),
                uid: "u".into(),
                revision: Revision::of_number(revision),
                change,
            };
            let progress = Progress { generation, leaving, guarded, ..Progress::default() };
            let Reading { counts, proves } = known.read(&commit, progress);
            (counts, proves.map(|proof| (proof.revision.to_string(), proof.change)))
        };
        let proof = |revision: &str, change| Some((revision.to_owned(), change));
        // It is released with its deletion, or before that because the harness has a finalizer too.
        for first in
            [(Change::Deleted, (3, true, true), Counts::Untold), (Change::Modified, (3, true, false), Counts::No)]
        {
            let mut known = Known::new(By::Generation, false);
            assert_eq!(read(&mut known, 1, Change::Added, (1, false, true)), (Counts::Version, None));
            assert_eq!(read(&mut known, 2, Change::Modified, (2, false, true)), (Counts::Version, None));
            assert_eq!(read(&mut known, 3, Change::Modified, (3, true, true)), (Counts::No, None));
            let (change, progress, counts) = first;
            assert_eq!(read(&mut known, 4, change, progress), (counts, proof("2", Change::Added)));
        }
        // There was no finalizer, so nothing was shown.
        let mut known = Known::new(By::Generation, false);
        read(&mut known, 1, Change::Added, (1, false, false));
        assert_eq!(read(&mut known, 2, Change::Modified, (2, true, false)), (Counts::No, None));
        assert_eq!(read(&mut known, 3, Change::Deleted, (2, true, false)), (Counts::Untold, None));
        // The generation of the write that requests the deletion is as good a proof as the one before.
        let mut known = Known::new(By::Generation, true);
        read(&mut known, 1, Change::Added, (1, false, true));
        read(&mut known, 2, Change::Modified, (2, true, true));
        assert_eq!(claimed(&mut known, uid("u"), Fact::Version(2)), Some(("1".into(), Change::Added)));
        assert_eq!(read(&mut known, 3, Change::Deleted, (2, true, true)), (Counts::Untold, None), "it was proven");
    }

    /// On a real control plane a claim may arrive before its commit.
    #[test]
    fn what_is_not_known_yet_waits() {
        let mut known = Known::new(By::Generation, true);
        let claim = |what| Claim { t_ms: 5, of: uid("u"), what };
        assert_eq!(known.resolve(&claim(THERE), false), Resolved::NotYet);
        commit(&mut known, "u", 1, Change::Added, 1);
        assert_eq!(known.resolve(&claim(Fact::Version(2)), false), Resolved::NotYet);
        assert!(matches!(known.resolve(&claim(THERE), false), Resolved::Proves(_)));
        assert_eq!(known.resolve(&claim(Fact::Gone), false), Resolved::NotYet);
        commit(&mut known, "u", 2, Change::Deleted, 1);
        assert!(matches!(known.resolve(&claim(Fact::Gone), false), Resolved::Proves(_)));
    }
}
