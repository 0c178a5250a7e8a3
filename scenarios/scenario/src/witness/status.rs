//! Witness `status`: the subject writes the generation or version that it handled into the object itself.
//!
//! This module does no I/O: it gets every commit in order and returns the observation that the commit proves. If the
//! field has generations, only writes that raise the generation have to be observed, so status writes do not count. If
//! the field has versions, every write has to be observed except the subject's own writes of the field.

use std::collections::HashMap;

use facts::{Change, Commit, Looks, Progress, Uid};
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::known::{By, Known};
use super::{About, Commits, Counts, Kind, Open, Reading, Reporter, Scene};

/// The keys of `witness: {kind: status}`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// The JSON pointer of the field that repeats the generation or version. A segment such as `type=Ready` selects the
    /// entry of a list whose `type` is `Ready`. Default: `/status/observedGeneration`.
    pub pointer: Option<String>,
    /// Instead of `pointer`: the type of the condition in `status.conditions` whose `observedGeneration` repeats the
    /// generation or version.
    pub condition: Option<String>,
    /// Instead of `pointer`: the annotation that repeats the generation or version.
    pub annotation: Option<String>,
    /// The kind of number that the field repeats. Default: `generation`.
    pub holds: Option<Holds>,
}

/// The number that identifies the versions of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Holds {
    /// `metadata.generation`, which rises with each change of the spec.
    Generation,
    /// `metadata.resourceVersion`.
    ResourceVersion,
}

impl Kind for Status {
    const NAME: &'static str = "status";
    const REMEDY: &'static str =
        "Does it write the generation that it handled into the object's status, or wherever `witness` says?";

    /// The witness observes only the newest version, and no deletion, because a deleted object has no status.
    fn sees(&self, _: &About) -> Sees {
        Sees { created: true, updated: true, ..Sees::NOTHING }
    }

    fn check(&self, _: &About) -> Result<(), String> {
        let given = [&self.pointer, &self.condition, &self.annotation].into_iter().flatten();
        if given.clone().count() > 1 {
            return Err("`witness` has more than one of `pointer`, `condition` and `annotation`: keep one".to_owned());
        }
        if given.into_iter().any(|text| text.trim().is_empty()) {
            return Err("`witness` has an empty key: write for example `condition: Ready`".to_owned());
        }
        match &self.pointer {
            Some(pointer) if !pointer.starts_with('/') => {
                Err(format!("witness `pointer: {pointer}` is no JSON pointer: write `/status/observedGeneration`"))
            }
            _ => Ok(()),
        }
    }

    fn looks(&self) -> Option<Looks> {
        let word = |name: &String| name.replace('~', "~0").replace('/', "~1");
        let observed = match (&self.pointer, &self.condition, &self.annotation) {
            (Some(pointer), ..) => pointer.clone(),
            (_, Some(kind), _) => format!("/status/conditions/type={}/observedGeneration", word(kind)),
            (.., Some(name)) => format!("/metadata/annotations/{}", word(name)),
            (None, None, None) => return Some(Looks::default()),
        };
        Some(Looks { observed, ..Looks::default() })
    }

    async fn open(&self, _: &Reporter, _: &Scene) -> anyhow::Result<Open> {
        let by = if self.is_of_generations() { By::Generation } else { By::Revision };
        Ok(Open { commits: Some(Box::new(Repeated::new(by))), ..Open::default() })
    }
}

impl Status {
    pub(super) fn is_of_generations(&self) -> bool {
        self.holds != Some(Holds::ResourceVersion)
    }
}

/// Follows the repeated values of all objects. Memory use: one entry for each existing object, in addition to the
/// entries of [`Known`].
struct Repeated {
    by: By,
    known: Known,
    observed: HashMap<Uid, i64>,
    /// Whether the subject has ever written the field. Before its first write nothing is proven, because a misspelt
    /// pointer is more likely than a subject that misses everything.
    speaks: bool,
}

impl Repeated {
    fn new(by: By) -> Self {
        Self { by, known: Known::new(by, false), observed: HashMap::new(), speaks: false }
    }
}

impl Commits for Repeated {
    fn read(&mut self, commit: &Commit, progress: Progress) -> Reading {
        let uid = &commit.uid;
        let released = self.known.released(commit, progress).filter(|_| self.speaks);
        if commit.change == Change::Deleted {
            self.observed.remove(uid);
            self.known.end(uid);
            return Reading { counts: Counts::Version, proves: released };
        }
        // A value that an object is created with was not written by the subject.
        let news = progress.observed.filter(|observed| {
            let before = self.observed.insert(uid.clone(), *observed);
            before != Some(*observed) && commit.change != Change::Added
        });
        self.speaks |= news.is_some();
        let own = news.is_some() && self.by == By::Revision;
        let counts = if self.known.note(commit, progress, own) { Counts::Version } else { Counts::No };
        Reading { counts, proves: news.and_then(|observed| self.known.prove(uid, observed)).or(released) }
    }
}

#[cfg(test)]
mod tests {
    use facts::Revision;

    use super::super::Proof;
    use super::*;

    fn commit(revision: u64) -> Commit {
        Commit {
            order: facts::Order::of_numbered(revision),
            resource: "packages".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: "a".into(),
            revision: Revision::of_number(revision),
            change: Change::Modified,
        }
    }

    fn read(
        status: &mut Repeated,
        revision: u64,
        change: Change,
        generation: i64,
        observed: Option<i64>,
    ) -> (bool, Option<(String, Change)>) {
        let commit = Commit { change, ..commit(revision) };
        let Reading { counts, proves } = status.read(&commit, Progress { generation, observed, ..Progress::default() });
        (counts == Counts::Version, proves.map(|Proof { revision, change }| (revision.to_string(), change)))
    }

    #[test]
    fn a_status_write_proves_the_version_with_that_generation() {
        let mut status = Repeated::new(By::Generation);
        assert_eq!(read(&mut status, 1, Change::Added, 1, None), (true, None));
        assert_eq!(read(&mut status, 2, Change::Modified, 1, Some(1)), (false, Some(("1".into(), Change::Added))));
        assert_eq!(read(&mut status, 3, Change::Modified, 1, Some(1)), (false, None));
    }

    /// A subject that lags has seen the version that it repeats, but no later version.
    #[test]
    fn an_old_generation_proves_the_old_version() {
        let mut status = Repeated::new(By::Generation);
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(read(&mut status, 3, Change::Modified, 2, Some(1)).1, Some(("1".into(), Change::Added)));
        assert_eq!(read(&mut status, 4, Change::Modified, 2, Some(2)).1, Some(("2".into(), Change::Modified)));
        assert_eq!(read(&mut status, 5, Change::Modified, 2, Some(1)).1, None, "it was proven");
    }

    /// The request to delete an object with a finalizer raises the generation, and no subject repeats this generation.
    /// A subject that removes its finalizer has seen the request of the deletion.
    #[test]
    fn an_object_that_is_let_go_was_seen() {
        let mut status = Repeated::new(By::Generation);
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 1, Some(1));
        read(&mut status, 3, Change::Modified, 2, Some(1));
        assert_eq!(leave(&mut status, 4, Change::Modified), (Counts::No, None));
        let seen = Some(("3".into(), Change::Modified));
        assert_eq!(leave(&mut status, 5, Change::Deleted), (Counts::Version, seen));
    }

    /// With a misspelt pointer nothing is proven, even if the subject uses finalizers.
    #[test]
    fn where_nobody_writes_the_field_nothing_is_proven() {
        let mut status = Repeated::new(By::Generation);
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(leave(&mut status, 3, Change::Modified), (Counts::No, None));
        assert_eq!(leave(&mut status, 4, Change::Deleted), (Counts::Version, None));
    }

    /// Adds a write of an object whose deletion waits for a finalizer, or the end of such an object.
    fn leave(status: &mut Repeated, revision: u64, change: Change) -> (Counts, Option<(String, Change)>) {
        let commit = Commit { change, ..commit(revision) };
        let progress = Progress { generation: 3, leaving: true, guarded: true, ..Progress::default() };
        let Reading { counts, proves } = status.read(&commit, progress);
        (counts, proves.map(|Proof { revision, change }| (revision.to_string(), change)))
    }

    /// The write by which the subject repeats a version creates a new version, which the subject need not repeat.
    #[test]
    fn a_repeated_version_proves_it() {
        let mut status = Repeated::new(By::Revision);
        assert!(read(&mut status, 1, Change::Added, 1, None).0);
        assert_eq!(read(&mut status, 2, Change::Modified, 1, Some(1)), (false, Some(("1".into(), Change::Added))));
        assert_eq!(read(&mut status, 3, Change::Modified, 1, Some(1)), (true, None), "somebody else wrote");
        assert_eq!(read(&mut status, 4, Change::Modified, 1, Some(2)), (false, None), "its own write, seen again");
        assert_eq!(read(&mut status, 5, Change::Modified, 1, Some(3)), (false, Some(("3".into(), Change::Modified))));
    }

    #[test]
    fn the_field_is_a_pointer_a_condition_or_an_annotation() {
        let read = |text: &str| serde_saphyr::from_str::<Status>(text).unwrap();
        let path = |text: &str| read(text).looks().unwrap().observed;
        assert_eq!(path("{}"), "/status/observedGeneration");
        assert_eq!(path("{pointer: /status/seen}"), "/status/seen");
        assert_eq!(path("{condition: Ready}"), "/status/conditions/type=Ready/observedGeneration");
        assert_eq!(path("{annotation: a.b/seen}"), "/metadata/annotations/a.b~1seen");
        let wrong = |text: &str| read(text).check(&About::default()).unwrap_err();
        assert!(wrong("{pointer: status}").contains("is no JSON pointer"));
        assert!(wrong("{condition: Ready, annotation: a}").contains("keep one"));
        assert!(wrong("{annotation: ''}").contains("empty key"));
        assert_eq!(read("{annotation: a, holds: resourceVersion}").check(&About::default()), Ok(()));
    }
}
