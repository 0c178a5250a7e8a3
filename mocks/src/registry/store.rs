//! Everything the registry holds, in memory, under one byte cap.
//!
//! Owns repositories, blobs, manifests and tags. Pure: no sockets, no clock, no locks. A blob's content is kept once
//! and is visible only in repositories that it was pushed to or mounted into, as the specification wants.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use bytes::Bytes;

use super::digest::Digest;
use super::manifest::Manifest;
use super::route::Reference;

/// What an entry of a map costs beside its content, roughly: it makes the cap a bound on small entries too.
const ENTRY_BYTES: u64 = 256;

/// The registry's content.
#[derive(Debug)]
pub(super) struct Store {
    bytes_max: u64,
    used_bytes: u64,
    blobs: HashMap<Digest, Blob>,
    repositories: BTreeMap<String, Repository>,
}

/// The cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the registry holds {used_bytes} of at most {bytes_max} bytes and {wanted_bytes} more do not fit")]
pub(super) struct Full {
    pub(super) used_bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) wanted_bytes: u64,
}

/// Some entries of a list and whether more follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) more: bool,
}

#[derive(Debug)]
struct Blob {
    bytes: Bytes,
    /// In how many repositories it is; the last one to go takes the content along.
    links: usize,
}

#[derive(Debug, Default)]
struct Repository {
    blobs: BTreeSet<Digest>,
    manifests: BTreeMap<Digest, Manifest>,
    tags: BTreeMap<String, Digest>,
    /// Subject to the manifests attached to it; a subject need not exist.
    referrers: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl Store {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, used_bytes: 0, blobs: HashMap::new(), repositories: BTreeMap::new() }
    }

    pub(super) const fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether so many bytes still fit; `elsewhere_bytes` is memory that others hold under the same cap.
    pub(super) const fn fits(&self, wanted_bytes: u64, elsewhere_bytes: u64) -> Result<(), Full> {
        let used_bytes = self.used_bytes.saturating_add(elsewhere_bytes);
        if used_bytes.saturating_add(wanted_bytes) > self.bytes_max {
            return Err(Full { used_bytes, bytes_max: self.bytes_max, wanted_bytes });
        }
        Ok(())
    }

    pub(super) fn knows(&self, repository: &str) -> bool {
        self.repositories.contains_key(repository)
    }

    /// Stores a blob whose digest has been checked.
    pub(super) fn put_blob(&mut self, repository: &str, digest: &Digest, bytes: Bytes) -> Result<(), Full> {
        let is_new = !self.blobs.contains_key(digest);
        let wanted = ENTRY_BYTES + if is_new { bytes.len() as u64 } else { 0 };
        self.fits(wanted, 0)?;
        if is_new {
            self.used_bytes += bytes.len() as u64;
            self.blobs.insert(digest.clone(), Blob { bytes, links: 0 });
        }
        self.link(repository, digest);
        Ok(())
    }

    pub(super) fn blob(&self, repository: &str, digest: &Digest) -> Option<Bytes> {
        let known = self.repositories.get(repository)?.blobs.contains(digest);
        known.then(|| self.blobs.get(digest).map(|blob| blob.bytes.clone())).flatten()
    }

    /// Makes a blob of `from` visible in `to`; false when it is not there to be mounted.
    pub(super) fn mount(&mut self, from: &str, to: &str, digest: &Digest) -> Result<bool, Full> {
        if self.blob(from, digest).is_none() {
            return Ok(false);
        }
        self.fits(ENTRY_BYTES, 0)?;
        self.link(to, digest);
        Ok(true)
    }

    pub(super) fn delete_blob(&mut self, repository: &str, digest: &Digest) -> bool {
        let Some(holder) = self.repositories.get_mut(repository) else { return false };
        if !holder.blobs.remove(digest) {
            return false;
        }
        self.used_bytes -= ENTRY_BYTES;
        if let Some(blob) = self.blobs.get_mut(digest) {
            blob.links -= 1;
            if blob.links == 0 {
                self.used_bytes -= blob.bytes.len() as u64;
                self.blobs.remove(digest);
            }
        }
        true
    }

    /// The first thing that this manifest refers to and that is not in the repository.
    pub(super) fn missing_reference<'a>(&self, repository: &str, manifest: &'a Manifest) -> Option<&'a Digest> {
        let holder = self.repositories.get(repository);
        let blob_missing = |digest: &&Digest| !holder.is_some_and(|held| held.blobs.contains(*digest));
        let manifest_missing = |digest: &&Digest| !holder.is_some_and(|held| held.manifests.contains_key(*digest));
        manifest.blobs.iter().find(blob_missing).or_else(|| manifest.manifests.iter().find(manifest_missing))
    }

    /// Stores a manifest, and points `tag` at it.
    pub(super) fn put_manifest(&mut self, repository: &str, manifest: Manifest, tag: Option<&str>) -> Result<(), Full> {
        let holder = self.repositories.get(repository);
        let is_new = !holder.is_some_and(|held| held.manifests.contains_key(&manifest.digest));
        let tag_is_new = tag.is_some_and(|tag| !holder.is_some_and(|held| held.tags.contains_key(tag)));
        let manifest_bytes = if is_new { ENTRY_BYTES + manifest.bytes.len() as u64 } else { 0 };
        let wanted = manifest_bytes + if tag_is_new { ENTRY_BYTES } else { 0 };
        self.fits(wanted, 0)?;
        self.used_bytes += wanted;
        let holder = self.repositories.entry(repository.to_owned()).or_default();
        if let Some(tag) = tag {
            holder.tags.insert(tag.to_owned(), manifest.digest.clone());
        }
        if let Some(subject) = &manifest.subject {
            holder.referrers.entry(subject.clone()).or_default().insert(manifest.digest.clone());
        }
        // The same bytes under another media type are the same digest; the newest type wins, as its pusher expects.
        holder.manifests.insert(manifest.digest.clone(), manifest);
        Ok(())
    }

    pub(super) fn manifest(&self, repository: &str, reference: &Reference) -> Option<&Manifest> {
        let holder = self.repositories.get(repository)?;
        let digest = match reference {
            Reference::Digest(digest) => digest,
            Reference::Tag(tag) => holder.tags.get(tag)?,
        };
        holder.manifests.get(digest)
    }

    /// Removes a tag, or a manifest with all its tags; false when there is none.
    pub(super) fn delete_manifest(&mut self, repository: &str, reference: &Reference) -> bool {
        let Some(holder) = self.repositories.get_mut(repository) else { return false };
        let digest = match reference {
            Reference::Tag(tag) => {
                let removed = holder.tags.remove(tag).is_some();
                self.used_bytes -= if removed { ENTRY_BYTES } else { 0 };
                return removed;
            }
            Reference::Digest(digest) => digest,
        };
        let Some(manifest) = holder.manifests.remove(digest) else { return false };
        let tags_before = holder.tags.len();
        holder.tags.retain(|_, target| target != digest);
        let entries = 1 + tags_before - holder.tags.len();
        self.used_bytes -= manifest.bytes.len() as u64 + ENTRY_BYTES * entries as u64;
        if let Some(subject) = &manifest.subject
            && let Some(attached) = holder.referrers.get_mut(subject)
        {
            attached.remove(digest);
            if attached.is_empty() {
                holder.referrers.remove(subject);
            }
        }
        true
    }

    /// Tags in lexical order after `last`; none when the repository is unknown.
    pub(super) fn tags(&self, repository: &str, last: Option<&str>, most: usize) -> Option<Page<String>> {
        let holder = self.repositories.get(repository)?;
        Some(page(holder.tags.range::<str, _>(after(last)).map(|(tag, _)| tag.clone()), most))
    }

    /// Repositories in lexical order after `last`.
    pub(super) fn repositories(&self, last: Option<&str>, most: usize) -> Page<String> {
        page(self.repositories.range::<str, _>(after(last)).map(|(name, _)| name.clone()), most)
    }

    /// Manifests attached to a subject, by digest after `last`; an unknown subject has none.
    pub(super) fn referrers(
        &self,
        repository: &str,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: Option<&Digest>,
        most: usize,
    ) -> Page<&Manifest> {
        let holder = self.repositories.get(repository);
        let attached = holder.and_then(|held| held.referrers.get(subject).map(|digests| (held, digests)));
        let found = attached.into_iter().flat_map(|(held, digests)| {
            let from = last.map_or(Bound::Unbounded, Bound::Excluded);
            digests.range((from, Bound::Unbounded)).filter_map(|digest| held.manifests.get(digest))
        });
        let wanted =
            |manifest: &&Manifest| artifact_type.is_none() || manifest.artifact_type.as_deref() == artifact_type;
        page(found.filter(wanted), most)
    }

    fn link(&mut self, repository: &str, digest: &Digest) {
        if self.repositories.entry(repository.to_owned()).or_default().blobs.insert(digest.clone()) {
            self.used_bytes += ENTRY_BYTES;
            if let Some(blob) = self.blobs.get_mut(digest) {
                blob.links += 1;
            }
        }
    }
}

fn after(last: Option<&str>) -> (Bound<&str>, Bound<&str>) {
    (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

fn page<T>(mut all: impl Iterator<Item = T>, most: usize) -> Page<T> {
    let items: Vec<T> = all.by_ref().take(most).collect();
    Page { more: all.next().is_some() && most > 0, items }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn manifest(text: &str, subject: Option<&Digest>) -> Manifest {
        let subject = subject.map_or(String::new(), |s| format!(r#","subject":{{"digest":"{s}"}}"#));
        let body =
            format!(r#"{{"schemaVersion":2,"annotations":{{"t":"{text}"}},"artifactType":"t/{text}"{subject}}}"#);
        Manifest::read(Some("application/json"), body.into()).unwrap()
    }

    #[derive(Debug, Clone)]
    enum Step {
        PutBlob(u8, u8),
        DeleteBlob(u8, u8),
        Mount(u8, u8, u8),
        PutManifest(u8, u8, u8),
        DeleteTag(u8, u8),
        DeleteManifest(u8, u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let n = 0..3_u8;
        prop_oneof![
            (n.clone(), n.clone()).prop_map(|(r, b)| Step::PutBlob(r, b)),
            (n.clone(), n.clone()).prop_map(|(r, b)| Step::DeleteBlob(r, b)),
            (n.clone(), n.clone(), n.clone()).prop_map(|(f, t, b)| Step::Mount(f, t, b)),
            (n.clone(), n.clone(), n.clone()).prop_map(|(r, m, t)| Step::PutManifest(r, m, t)),
            (n.clone(), n.clone()).prop_map(|(r, t)| Step::DeleteTag(r, t)),
            (n.clone(), n).prop_map(|(r, m)| Step::DeleteManifest(r, m)),
        ]
    }

    proptest! {
        /// After any history the cap holds, and removing everything gives every byte back.
        #[test]
        fn bytes_are_neither_lost_nor_invented(steps in prop::collection::vec(step(), 0..60)) {
            let cap = 4_000;
            let mut store = Store::new(cap);
            let repo = |n: u8| format!("r{n}");
            let content = |n: u8| Bytes::from(vec![n; 100 + usize::from(n)]);
            for step in steps {
                match step {
                    Step::PutBlob(r, b) => {
                        let _ = store.put_blob(&repo(r), &Digest::sha256(&content(b)), content(b));
                    }
                    Step::DeleteBlob(r, b) => {
                        store.delete_blob(&repo(r), &Digest::sha256(&content(b)));
                    }
                    Step::Mount(f, t, b) => {
                        let _ = store.mount(&repo(f), &repo(t), &Digest::sha256(&content(b)));
                    }
                    Step::PutManifest(r, m, t) => {
                        let manifest = manifest(&m.to_string(), Some(&Digest::sha256(b"s")));
                        let _ = store.put_manifest(&repo(r), manifest, Some(&t.to_string()));
                    }
                    Step::DeleteTag(r, t) => {
                        store.delete_manifest(&repo(r), &Reference::Tag(t.to_string()));
                    }
                    Step::DeleteManifest(r, m) => {
                        let digest = manifest(&m.to_string(), Some(&Digest::sha256(b"s"))).digest;
                        store.delete_manifest(&repo(r), &Reference::Digest(digest));
                    }
                }
                prop_assert!(store.used_bytes() <= cap);
            }
            for (r, n) in (0..3).flat_map(|r| (0..3).map(move |n| (r, n))) {
                store.delete_blob(&repo(r), &Digest::sha256(&content(n)));
                store.delete_manifest(&repo(r), &Reference::Tag(n.to_string()));
                let digest = manifest(&n.to_string(), Some(&Digest::sha256(b"s"))).digest;
                store.delete_manifest(&repo(r), &Reference::Digest(digest));
            }
            prop_assert_eq!(store.used_bytes(), 0);
        }

        /// Pages of any size, put together, are the whole sorted list without gap or repetition.
        #[test]
        fn pages_add_up(tags in prop::collection::btree_set("[a-zA-Z0-9_]{1,4}", 0..20), most in 1..7_usize) {
            let mut store = Store::new(1 << 20);
            store.put_blob("r", &Digest::sha256(b""), Bytes::new()).unwrap();
            for tag in &tags {
                store.put_manifest("r", manifest("x", None), Some(tag)).unwrap();
            }
            let (mut seen, mut last) = (Vec::new(), None);
            loop {
                let page = store.tags("r", last.as_deref(), most).unwrap();
                prop_assert!(page.items.len() <= most);
                last = page.items.last().cloned();
                seen.extend(page.items);
                if !page.more {
                    break;
                }
            }
            prop_assert_eq!(seen, tags.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_blob_is_visible_only_where_it_was_pushed_or_mounted() {
        let mut store = Store::new(1 << 20);
        let digest = Digest::sha256(b"x");
        store.put_blob("a", &digest, Bytes::from_static(b"x")).unwrap();
        assert!(store.blob("b", &digest).is_none());
        assert!(!store.mount("c", "b", &digest).unwrap());
        assert!(store.mount("a", "b", &digest).unwrap());
        assert!(store.delete_blob("a", &digest));
        assert_eq!(store.blob("b", &digest).unwrap(), "x");
        assert!(store.blob("a", &digest).is_none());
    }

    #[test]
    fn referrers_are_filtered_and_paged() {
        let mut store = Store::new(1 << 20);
        let subject = Digest::sha256(b"s");
        for text in ["a", "b", "c"] {
            store.put_manifest("r", manifest(text, Some(&subject)), None).unwrap();
        }
        let first = store.referrers("r", &subject, None, None, 2);
        assert!(first.more && first.items.len() == 2);
        let last = first.items[1].digest.clone();
        let second = store.referrers("r", &subject, None, Some(&last), 2);
        assert!(!second.more && second.items.len() == 1);
        let filtered = store.referrers("r", &subject, Some("t/b"), None, 10);
        assert_eq!(filtered.items.len(), 1);
        assert!(store.referrers("r", &Digest::sha256(b"t"), None, None, 10).items.is_empty());
    }
}
