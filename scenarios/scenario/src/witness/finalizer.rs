//! Witness `finalizer`: the subject adds its own finalizer to each object.
//!
//! Adding the finalizer proves that the subject saw the object. If an object with the finalizer is being deleted, the
//! subject must see the write that requested the deletion. The removal of the finalizer, or of the object, proves that
//! the subject saw the request of the deletion. If an object is deleted before it has the finalizer, the object's
//! versions that were not observed in time are undecided.

use std::collections::HashMap;

use facts::{Change, Commit, Looks, Progress, Revision, Uid};
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{About, Commits, Counts, Kind, Open, Proof, Reading, Reporter, Scene};

/// The keys of `witness: {kind: finalizer}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Finalizer {
    /// The name of the finalizer that the subject adds and removes, such as `example.com/cleanup`.
    pub name: String,
}

impl Kind for Finalizer {
    const NAME: &'static str = "finalizer";
    const REMEDY: &'static str = "Does it add the finalizer that `witness` names, by exactly that name?";

    fn sees(&self, _: &About) -> Sees {
        Sees { created: true, deleted: true, ..Sees::NOTHING }
    }

    fn check(&self, _: &About) -> Result<(), String> {
        let is_qualified =
            self.name.split_once('/').is_some_and(|(domain, name)| !domain.is_empty() && !name.is_empty());
        // kube-rs documents names that are a domain alone, and an API server accepts them with a warning.
        let is_domain = self.name.contains('.') && !self.name.contains('/');
        if is_qualified || is_domain {
            return Ok(());
        }
        Err(format!(
            "witness `name: {}` is no finalizer: write it as it stands in objects, `example.com/cleanup`",
            self.name
        ))
    }

    fn looks(&self) -> Option<Looks> {
        Some(Looks { finalizer: Some(self.name.clone()), ..Looks::default() })
    }

    async fn open(&self, _: &Reporter, _: &Scene) -> anyhow::Result<Open> {
        Ok(Open { commits: Some(Box::new(Holds::default())), ..Open::default() })
    }
}

/// Follows the subject's finalizer in all objects. Memory use: one entry for each existing object.
#[derive(Default)]
struct Holds {
    live: HashMap<Uid, Object>,
}

struct Object {
    first: Revision,
    held: bool,
    proven: bool,
    leaving: Leaving,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// The object had the finalizer when its deletion was requested, and still has it.
    Held,
    /// The subject removed its finalizer.
    Released,
    /// The object did not have the finalizer when its deletion was requested.
    Unheld,
}

impl Commits for Holds {
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading {
        let uid = &commit.uid;
        let proof = |change| Some(Proof { revision: commit.revision.clone(), change });
        if commit.change == Change::Deleted {
            let leaving = self.live.remove(uid).map_or(Leaving::Unheld, |object| object.leaving);
            return match leaving {
                Leaving::Held => Reading { counts: Counts::No, proves: proof(Change::Deleted) },
                Leaving::Released => Reading::default(),
                Leaving::No | Leaving::Unheld => Reading { counts: Counts::Untold, proves: None },
            };
        }
        let Some(object) = self.live.get_mut(uid) else {
            let (held, leaving) = (progress.held, if progress.leaving { Leaving::Unheld } else { Leaving::No });
            self.live.insert(uid.clone(), Object { first: commit.revision.clone(), held, proven: false, leaving });
            return Reading { counts: Counts::Version, proves: None };
        };
        let was_held = std::mem::replace(&mut object.held, progress.held);
        match (object.leaving, progress.leaving) {
            (Leaving::No, true) => {
                object.leaving = if progress.held { Leaving::Held } else { Leaving::Unheld };
                let counts = if progress.held { Counts::Leaving } else { Counts::No };
                Reading { counts, proves: None }
            }
            (Leaving::Held, _) if !progress.held => {
                object.leaving = Leaving::Released;
                Reading { counts: Counts::No, proves: proof(Change::Deleted) }
            }
            (Leaving::No, false) if progress.held && !was_held && !object.proven => {
                object.proven = true;
                let proves = Some(Proof { revision: object.first.clone(), change: Change::Added });
                Reading { counts: Counts::No, proves }
            }
            _ => Reading::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads commits, each given as (change, whether the object has the finalizer, whether it is being deleted).
    /// Returns, for each commit, whether it must be observed and what it proves.
    fn play(steps: &[(Change, bool, bool)]) -> Vec<(Counts, Option<Change>)> {
        let mut holds = Holds::default();
        let read = |(number, (change, held, leaving)): (u64, &(Change, bool, bool))| {
            let commit = Commit {
                order: facts::Order::of_numbered(number),
                resource: "packages".into(),
                namespace: "n".into(),
                name: "a".into(),
                uid: "a".into(),
                revision: Revision::of_number(number),
                change: *change,
            };
            let progress = Progress { held: *held, leaving: *leaving, ..Progress::default() };
            let Reading { counts, proves } = holds.read(&commit, progress);
            (counts, proves.map(|proof| proof.change))
        };
        (1..).zip(steps).map(read).collect()
    }

    use Change::{Added, Deleted, Modified};

    #[test]
    fn a_finalizer_proves_the_object_and_its_deletion() {
        let added = [(Added, false, false), (Modified, true, false), (Modified, true, false), (Modified, true, true)];
        let seen = [(Counts::Version, None), (Counts::No, Some(Added)), (Counts::No, None), (Counts::Leaving, None)];
        // The finalizer is removed in one write with the deletion, or while another one remains.
        let at_once = play(&[&added[..], &[(Deleted, false, true)]].concat());
        assert_eq!(at_once, [&seen[..], &[(Counts::No, Some(Deleted))]].concat());
        let later = play(&[&added[..], &[(Modified, false, true), (Deleted, false, true)]].concat());
        assert_eq!(later, [&seen[..], &[(Counts::No, Some(Deleted)), (Counts::No, None)]].concat());
    }

    #[test]
    fn an_object_that_was_not_held_asked_nobody() {
        let untold = (Counts::Untold, None);
        assert_eq!(play(&[(Added, false, false), (Deleted, false, false)])[1], untold);
        assert_eq!(play(&[(Added, false, false), (Modified, false, true), (Deleted, false, true)])[2], untold);
        // The creator added the finalizer, which proves nothing about the subject.
        assert_eq!(play(&[(Added, true, false), (Modified, true, false)])[1], (Counts::No, None));
    }

    #[test]
    fn a_name_is_written_as_in_objects() {
        let check = |name: &str| Finalizer { name: name.to_owned() }.check(&About::default());
        assert_eq!(check("example.com/cleanup"), Ok(()));
        assert_eq!(check("cleanup.example.com"), Ok(()));
        assert!(check("cleanup").unwrap_err().contains("is no finalizer"));
    }
}
