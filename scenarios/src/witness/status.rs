//! Witness `status`: the subject repeats the generation that it acted on in the object's own status.
//!
//! Pure: it is shown every commit in order and says what the commit proves. Only versions with a new generation can be
//! proven this way, so status writes are no commits for the ledger; the ledger is told that deletions cannot be observed.

use std::collections::HashMap;

use facts::Change;

/// What the status witness makes of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The ledger should account for this version.
    pub(crate) counts: bool,
    /// The revision of this object that the commit proves to have been seen.
    pub(crate) proves: Option<Box<str>>,
}

/// Follows generations. Memory: one entry for each live object.
pub(crate) struct Status {
    live: HashMap<Box<str>, Object>,
}

struct Object {
    generation: i64,
    /// The revision that brought the newest generation.
    revision: Box<str>,
    proven: i64,
}

impl Status {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        Self { live: HashMap::new() }
    }

    /// Looks at one commit. `generation` is the object's `metadata.generation`, `observed` what its status repeats.
    pub(crate) fn read(
        &mut self,
        uid: &str,
        rv: &str,
        change: Change,
        generation: i64,
        observed: Option<i64>,
    ) -> Reading {
        if change == Change::Deleted {
            self.live.remove(uid);
            return Reading { counts: true, proves: None };
        }
        let known = self.live.get(uid).map(|known| known.generation);
        let counts = known != Some(generation);
        if counts {
            let proven = self.live.get(uid).map_or(-1, |known| known.proven);
            self.live.insert(uid.into(), Object { generation, revision: rv.into(), proven });
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

    #[test]
    fn a_status_write_proves_the_version_with_that_generation() {
        let mut status = Status::new();
        let created = status.read("a", "1", Change::Added, 1, None);
        assert_eq!(created, Reading { counts: true, proves: None });
        let written = status.read("a", "2", Change::Modified, 1, Some(1));
        assert_eq!(written, Reading { counts: false, proves: Some("1".into()) });
        let again = status.read("a", "3", Change::Modified, 1, Some(1));
        assert_eq!(again, Reading { counts: false, proves: None });
    }

    #[test]
    fn an_old_generation_proves_nothing() {
        let mut status = Status::new();
        status.read("a", "1", Change::Added, 1, None);
        status.read("a", "2", Change::Modified, 2, None);
        assert_eq!(status.read("a", "3", Change::Modified, 2, Some(1)).proves, None);
        assert_eq!(status.read("a", "4", Change::Modified, 2, Some(2)).proves, Some("2".into()));
    }
}
