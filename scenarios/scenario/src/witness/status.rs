//! Witness `status`: the subject repeats the generation, or the version, that it acted on in the object itself.
//!
//! Pure: it reads every commit in order and returns the observation that the commit proves. With generations, only
//! writes with a new one have to be seen, so status writes do not count. With versions, all have to be seen except
//! those in which the field itself changed: the subject wrote these.

use std::collections::HashMap;

use facts::{Change, Commit, Looks, Progress, Uid};
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::known::{By, Known};
use super::{About, Commits, Counts, Kind, Open, Reading, Reporter, Scene};

/// Its keys.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// The JSON pointer of the field that repeats it; a segment such as `type=Ready` selects the entry of a list whose
    /// `type` is `Ready`. Default: `/status/observedGeneration`.
    pub pointer: Option<String>,
    /// Instead of that: the type of the condition in `status.conditions` whose `observedGeneration` repeats it.
    pub condition: Option<String>,
    /// Instead of that: the annotation that repeats it.
    pub annotation: Option<String>,
    /// The repeated value. Default: `generation`.
    pub holds: Option<Holds>,
}

/// The value that identifies the versions of an object.
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

    /// The newest version and nothing else: after a deletion there is no status to write.
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

/// Follows the repeated values. Memory: an entry for each existing object beside those of [`Known`].
struct Repeated {
    by: By,
    known: Known,
    observed: HashMap<Uid, i64>,
    /// Whether the field was ever written. Until then, a misspelt name is more likely than that everything is missed.
    /// Other proofs of versions must not make the field look written.
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

    /// A lagging subject has seen the version that it reports, and no later one.
    #[test]
    fn an_old_generation_proves_the_old_version() {
        let mut status = Repeated::new(By::Generation);
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(read(&mut status, 3, Change::Modified, 2, Some(1)).1, Some(("1".into(), Change::Added)));
        assert_eq!(read(&mut status, 4, Change::Modified, 2, Some(2)).1, Some(("2".into(), Change::Modified)));
        assert_eq!(read(&mut status, 5, Change::Modified, 2, Some(1)).1, None, "it was proven");
    }

    /// The write that requests the deletion of an object with a finalizer has its own generation, which no subject
    /// repeats. A subject that releases the object has seen it in that state.
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

    /// A misspelt pointer must end in "nothing was proven", even for a subject with finalizers.
    #[test]
    fn where_nobody_writes_the_field_nothing_is_proven() {
        let mut status = Repeated::new(By::Generation);
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(leave(&mut status, 3, Change::Modified), (Counts::No, None));
        assert_eq!(leave(&mut status, 4, Change::Deleted), (Counts::Version, None));
    }

    /// A write of an object that a finalizer holds in its deletion, or its end.
    fn leave(status: &mut Repeated, revision: u64, change: Change) -> (Counts, Option<(String, Change)>) {
        let commit = Commit { change, ..commit(revision) };
        let progress = Progress { generation: 3, leaving: true, guarded: true, ..Progress::default() };
        let Reading { counts, proves } = status.read(&commit, progress);
        (counts, proves.map(|Proof { revision, change }| (revision.to_string(), change)))
    }

    /// The write that repeats the version makes a new version, which need not be repeated.
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
