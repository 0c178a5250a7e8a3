//! Witness `status`: the subject repeats the generation that it acted on in the object's own status.
//!
//! Pure: it is shown every commit in order and says what the commit proves. Only versions with a new generation can be
//! proven this way, so status writes are no commits for the ledger; the ledger is told that deletions cannot be observed.

use std::collections::HashMap;

use facts::{Change, Commit, Progress, Revision, Uid};

/// What the status witness makes of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The ledger should account for this version.
    pub(crate) counts: bool,
    /// The revision of this object that the commit proves to have been seen.
    pub(crate) proves: Option<Revision>,
}

/// Follows generations. Memory: one entry for each live object.
pub(crate) struct Status {
    live: HashMap<Uid, Object>,
}

struct Object {
    generation: i64,
    /// The revision that brought the newest generation.
    revision: Revision,
    proven: i64,
}

impl Status {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        Self { live: HashMap::new() }
    }

    /// Looks at one commit.
    pub(crate) fn read(&mut self, commit: &Commit, Progress { generation, observed }: Progress) -> Reading {
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

    fn read(status: &mut Status, revision: u64, change: Change, generation: i64, observed: Option<i64>) -> Reading {
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
        let mut status = Status::new();
        let created = read(&mut status, 1, Change::Added, 1, None);
        assert_eq!(created, Reading { counts: true, proves: None });
        let written = read(&mut status, 2, Change::Modified, 1, Some(1));
        assert_eq!(written, Reading { counts: false, proves: Some("1".into()) });
        let again = read(&mut status, 3, Change::Modified, 1, Some(1));
        assert_eq!(again, Reading { counts: false, proves: None });
    }

    #[test]
    fn an_old_generation_proves_nothing() {
        let mut status = Status::new();
        read(&mut status, 1, Change::Added, 1, None);
        read(&mut status, 2, Change::Modified, 2, None);
        assert_eq!(read(&mut status, 3, Change::Modified, 2, Some(1)).proves, None);
        assert_eq!(read(&mut status, 4, Change::Modified, 2, Some(2)).proves, Some("2".into()));
    }
}
