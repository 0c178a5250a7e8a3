//! Witness `status`: the subject repeats the generation that it acted on in the object's own status.
//!
//! Pure: it is shown every commit in order and says what the commit proves. Only versions with a new generation can be
//! proven this way, so status writes are no commits for the ledger; the ledger is told that deletions cannot be observed.

use std::collections::HashMap;

use facts::{Change, Commit, Progress, Revision, Uid};
use reports::record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Commits, Ear, Kind, Open, Reading};

/// Where nearly every API keeps it.
const POINTER: &str = "/status/observedGeneration";

/// Its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// The JSON pointer of the field that repeats `metadata.generation`. Default: `/status/observedGeneration`.
    #[serde(default)]
    pub pointer: Option<String>,
}

impl Kind for Status {
    const NAME: &'static str = "status";
    const REMEDY: &'static str = "Does it write the generation that it handled into the object's status?";

    /// The newest generation and nothing else: after a deletion nobody writes a status.
    fn sees(&self) -> Sees {
        Sees { created: true, updated: true, ..Sees::NOTHING }
    }

    fn check(&self) -> Result<(), String> {
        match &self.pointer {
            Some(pointer) if !pointer.starts_with('/') => {
                Err(format!("witness `pointer: {pointer}` is no JSON pointer: write `/status/observedGeneration`"))
            }
            _ => Ok(()),
        }
    }

    fn progress(&self) -> Option<&str> {
        Some(self.pointer.as_deref().unwrap_or(POINTER))
    }

    async fn open(&self, _: &Ear) -> anyhow::Result<Open> {
        Ok(Open { commits: Some(Box::new(Generations::default())), ..Open::default() })
    }
}

/// Follows generations. Memory: one entry for each live object.
#[derive(Default)]
struct Generations {
    live: HashMap<Uid, Object>,
}

struct Object {
    generation: i64,
    /// The revision that brought the newest generation.
    revision: Revision,
    proven: i64,
}

impl Commits for Generations {
    fn read(&mut self, commit: &Commit, Progress { generation, observed }: Progress) -> Reading {
        let uid = &commit.uid;
        if commit.change == Change::Deleted {
            self.live.remove(uid);
            return Reading { counts: true, proves: None };
        }
        let known = self.live.get(uid).map(|known| known.generation);
        let counts = known != Some(generation);
        if counts {
            let proven = self.live.get(uid).map_or(-1, |known| known.proven);
            self.live.insert(uid.clone(), Object { generation, revision: commit.revision.clone(), proven });
        }
        let Some(entry) = self.live.get_mut(uid) else { return Reading::default() };
        // An older generation in the status proves an older version, which the newer one has superseded already.
        let proves = (observed == Some(entry.generation) && entry.proven != entry.generation).then(|| {
            entry.proven = entry.generation;
            entry.revision.clone()
        });
        Reading { counts, proves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        status: &mut Generations,
        revision: u64,
        change: Change,
        generation: i64,
        observed: Option<i64>,
    ) -> Reading {
        let commit = Commit {
            order: facts::Order::of_numbered(revision),
            resource: "packages".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: "a".into(),
            revision: Revision::of_number(revision),
            change,
        };
        status.read(&commit, Progress { generation, observed })
    }

    #[test]
    fn a_status_write_proves_the_version_with_that_generation() {
        let mut status = Generations::default();
        let created = read(&mut status, 1, Change::Added, 1, None);
        assert_eq!(created, Reading { counts: true, proves: None });
        let written = read(&mut status, 2, Change::Modified, 1, Some(1));
        assert_eq!(written, Reading { counts: false, proves: Some("1".into()) });
        let again = read(&mut status, 3, Change::Modified, 1, Some(1));
        assert_eq!(again, Reading { counts: false, proves: None });
    }

    #[test]
    fn an_old_generation_proves_nothing() {
        let mut status = Generations::default();
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(read(&mut status, 3, Change::Modified, 2, Some(1)).proves, None);
        assert_eq!(read(&mut status, 4, Change::Modified, 2, Some(2)).proves, Some("2".into()));
    }
}
