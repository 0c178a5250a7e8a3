//! [`Stored`]: the objects that the API server really stores, and whether their images are pinned.
//!
//! Lists and watches each kind that the load writes, as any client can. A stored object with an image without a digest
//! is unpinned, however the webhook was called, answered or failed open. Every write that an answer confirmed must
//! appear in the watch. If a write is missing, the harness reports a gap.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::Plan;
use crate::admission::Error;
use crate::audit::{Agreement, Audit, Config, Entry};
use crate::churn::{Api, Writes};
use facts::{Change, Commit, Uid};

/// Maximum number of commits that one batch contains.
const BATCH_MAX: usize = 4096;
/// Maximum number of unpinned objects that are remembered by uid; no load has more.
const UNPINNED_MAX: usize = 10_000;
/// Maximum number of example texts between two calls of [`Stored::take`].
const EXAMPLES_MAX: usize = 5;
/// The length of a SHA-256 in hex.
const DIGEST_HEX: usize = 64;

/// The watches of stored objects, one for each kind.
#[derive(Debug)]
pub struct Stored {
    watched: BTreeMap<&'static str, Watched>,
    namespaces: BTreeSet<String>,
    tally: Tally,
}

#[derive(Debug)]
struct Watched {
    audit: Audit,
    agreement: Agreement,
}

/// The findings since the last call of [`Stored::take`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of stored versions of objects with images.
    pub stored: u64,
    /// Number of objects that became unpinned: stored with an image that has no digest.
    pub unpinned: u64,
    /// Descriptions of some unpinned objects: `Pod lh-admission-x-0/cart-7 was stored with the image r:5000/a:1`.
    pub examples: Vec<String>,
}

/// Counts versions and unpinned objects. Pure: no I/O.
#[derive(Debug, Default)]
struct Tally {
    /// The uids of objects that are unpinned now.
    unpinned: BTreeSet<Uid>,
    found: Found,
}

impl Stored {
    /// Starts to watch the kinds that the plan writes and for which the webhook is registered. `covers` decides whether
    /// the webhook is registered for a group and a plural name. Call this function before the first write.
    pub async fn watch(plan: &Plan, api: &Api, covers: &(dyn Fn(&str, &str) -> bool + Sync)) -> Result<Self, Error> {
        let mut watched = BTreeMap::new();
        for (kind, pod_spec) in plan.watched().filter(|(kind, _)| covers(kind.group(), kind.plural())) {
            let group = if kind.group().is_empty() { String::new() } else { format!(".{}", kind.group()) };
            let mut config = Config::new(api.clone(), &format!("{}{group}/{}", kind.plural(), kind.version()));
            config.pod_spec = Some(pod_spec.to_owned());
            let audit = Audit::start(config).await.map_err(|error| failed(&error))?;
            watched.insert(kind.plural(), Watched { audit, agreement: Agreement::default() });
        }
        let namespaces = plan.namespaces().iter().cloned().collect();
        Ok(Self { watched, namespaces, tally: Tally::default() })
    }

    /// Adds the writes that answers confirmed.
    pub fn wrote(&mut self, writes: BTreeMap<&'static str, Writes>) {
        for (plural, writes) in writes {
            if let Some(watched) = self.watched.get_mut(plural) {
                watched.agreement.writes(writes);
            }
        }
    }

    /// The findings since the last call. Call this function every few seconds.
    pub fn take(&mut self) -> Result<Found, Error> {
        let now = Instant::now();
        for (plural, Watched { audit, agreement }) in &mut self.watched {
            loop {
                let batch = match audit.try_batch(BATCH_MAX) {
                    Ok(batch) => batch,
                    // The end: everything was read.
                    Err(crate::audit::Error::Finished) => break,
                    Err(error) => return Err(failed(&error)),
                };
                if batch.is_empty() {
                    break;
                }
                for entry in batch {
                    agreement.commit(&entry);
                    if self.namespaces.contains(&*entry.commit.namespace) {
                        self.tally.commit(plural, entry);
                    }
                }
            }
            agreement.advance(now);
        }
        Ok(std::mem::take(&mut self.tally.found))
    }

    /// Ends the watches after the load was stopped and its last writes were passed on. Waits until the watches have
    /// shown every object of a list that is read at the end. An error means that the harness missed writes. Call
    /// [`Self::take`] after this function.
    pub async fn finish(&mut self) -> Result<(), Error> {
        for (plural, watched) in &mut self.watched {
            let report = watched.audit.finish().await.map_err(|error| failed(&error))?;
            if !report.is_complete() {
                return Err(Error::Stored { problem: format!("{plural}: {report}") });
            }
        }
        Ok(())
    }

    /// Checks that every confirmed write appeared in a watch. Call this function after all findings were taken.
    pub fn agrees(self) -> Result<(), Error> {
        for (plural, watched) in self.watched {
            let outcome = watched.agreement.finish();
            if !outcome.agrees() {
                return Err(Error::Stored { problem: format!("{plural}: {outcome}") });
            }
        }
        Ok(())
    }
}

impl Tally {
    fn commit(&mut self, plural: &str, Entry { commit, images, .. }: Entry) {
        let Commit { namespace, name, uid, change, .. } = commit;
        if change == Change::Deleted {
            self.unpinned.remove(&uid);
            return;
        }
        if images.is_empty() {
            return;
        }
        self.found.stored += 1;
        let Some(image) = images.iter().find(|image| !is_pinned(image)) else {
            self.unpinned.remove(&uid);
            return;
        };
        // Beyond the bound each version counts: too high a count is better than too low a one.
        let known = self.unpinned.contains(&uid);
        if !known && self.unpinned.len() < UNPINNED_MAX {
            self.unpinned.insert(uid);
        }
        if known {
            return;
        }
        self.found.unpinned += 1;
        if self.found.examples.len() < EXAMPLES_MAX {
            self.found.examples.push(format!("{plural} {namespace}/{name} was stored with the image {image}"));
        }
    }
}

fn is_pinned(image: &str) -> bool {
    image.rsplit_once("@sha256:").is_some_and(|(name, hex)| {
        !name.is_empty()
            && hex.len() == DIGEST_HEX
            && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

fn failed(error: &crate::audit::Error) -> Error {
    Error::Stored { problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Source;
    use facts::{Order, Progress};

    fn commit(uid: &str, change: Change, images: &[&str]) -> Entry {
        let commit = Commit {
            order: Order::default(),
            resource: "pods".into(),
            namespace: "n".into(),
            name: uid.into(),
            uid: uid.into(),
            revision: "1".into(),
            change,
        };
        let images = images.iter().map(|image| (*image).to_owned()).collect();
        let (at, progress) = (Instant::now(), Progress::default());
        Entry { at, commit, progress, images, fields: Vec::new(), source: Source::Watched }
    }

    /// An object counts once while it is unpinned, whatever other changes it has.
    #[test]
    fn objects_count_once_while_they_are_unpinned() {
        let pinned = format!("r/a:1@sha256:{}", "a".repeat(64));
        let mut tally = Tally::default();
        for (uid, change, images) in [
            ("a", Change::Added, vec![pinned.as_str()]),
            ("b", Change::Added, vec![pinned.as_str(), "r/a:1"]),
            ("b", Change::Modified, vec![pinned.as_str(), "r/a:1"]),
            ("b", Change::Modified, vec![pinned.as_str()]),
            ("b", Change::Modified, vec!["r/a:1"]),
            ("b", Change::Deleted, vec!["r/a:1"]),
            ("c", Change::Added, vec!["r/a:1@sha256:short"]),
            ("d", Change::Added, vec![]),
        ] {
            tally.commit("pods", commit(uid, change, &images));
        }
        let Found { stored, unpinned, examples } = tally.found;
        assert_eq!((stored, unpinned), (6, 3));
        assert_eq!(examples[0], "pods n/b was stored with the image r/a:1");
        assert_eq!(tally.unpinned.iter().map(Uid::as_str).collect::<Vec<_>>(), ["c"]);
    }
}
