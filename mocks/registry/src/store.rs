//! The contents of the registry in memory, under one limit of bytes.
//!
//! Owns repositories, blobs, manifests and tags. The module uses no sockets, no clock and no locks. The content of a
//! blob is stored once. A blob is visible only in repositories to which it was pushed or mounted, as the specification
//! demands.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use bytes::Bytes;

use super::digest::Digest;
use super::manifest::Manifest;
use super::route::Reference;

/// Approximate memory of a map entry without its content, in bytes, so that the limit also bounds small entries.
/// Entries of emptied repositories stay and count too.
pub(super) const ENTRY_BYTES: u64 = 256;

#[derive(Debug)]
pub(super) struct Store {
    bytes_max: u64,
    used_bytes: u64,
    blobs: HashMap<Digest, Blob>,
    repositories: BTreeMap<String, Repository>,
}

/// The error if the limit of stored bytes is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the registry holds {used_bytes} of at most {bytes_max} bytes and {wanted_bytes} more do not fit")]
pub(super) struct Full {
    pub(super) used_bytes: u64,
    pub(super) bytes_max: u64,
    pub(super) wanted_bytes: u64,
}

/// One page of a list, and whether further entries follow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) more: bool,
}

#[derive(Debug)]
struct Blob {
    bytes: Bytes,
    /// Number of repositories that contain the blob. The last removal also removes the content.
    links: usize,
}

#[derive(Debug, Default)]
struct Repository {
    blobs: BTreeSet<Digest>,
    manifests: BTreeMap<Digest, Manifest>,
    tags: BTreeMap<String, Digest>,
    /// For each manifest (subject), the manifests attached to it; the subject itself need not exist.
    referrers: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl Store {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, used_bytes: 0, blobs: HashMap::new(), repositories: BTreeMap::new() }
    }

    pub(super) const fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether the limit allows `wanted_bytes` more bytes; `elsewhere_bytes` is memory outside the store that counts
    /// too.
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
        self.fits(wanted + self.new_repository(repository), 0)?;
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

    /// Makes a blob of `from` visible in `to`; `false` if there is no such blob.
    pub(super) fn mount(&mut self, from: &str, to: &str, digest: &Digest) -> Result<bool, Full> {
        if self.blob(from, digest).is_none() {
            return Ok(false);
        }
        self.fits(ENTRY_BYTES + self.new_repository(to), 0)?;
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

    /// The first digest that this manifest refers to and the repository lacks.
    pub(super) fn missing_reference<'a>(&self, repository: &str, manifest: &'a Manifest) -> Option<&'a Digest> {
        let holder = self.repositories.get(repository);
        let blob_missing = |digest: &&Digest| !holder.is_some_and(|held| held.blobs.contains(*digest));
        let manifest_missing = |digest: &&Digest| !holder.is_some_and(|held| held.manifests.contains_key(*digest));
        manifest.blobs.iter().find(blob_missing).or_else(|| manifest.manifests.iter().find(manifest_missing))
    }

    pub(super) fn put_manifest(&mut self, repository: &str, manifest: Manifest, tag: Option<&str>) -> Result<(), Full> {
        let holder = self.repositories.get(repository);
        let is_new = !holder.is_some_and(|held| held.manifests.contains_key(&manifest.digest));
        let tag_is_new = tag.is_some_and(|tag| !holder.is_some_and(|held| held.tags.contains_key(tag)));
        let manifest_bytes = if is_new { ENTRY_BYTES + manifest.held_bytes() } else { 0 };
        let wanted = manifest_bytes + if tag_is_new { ENTRY_BYTES } else { 0 } + self.new_repository(repository);
        self.fits(wanted, 0)?;
        self.used_bytes += wanted;
        let holder = self.repositories.entry(repository.to_owned()).or_default();
        if let Some(tag) = tag {
            holder.tags.insert(tag.to_owned(), manifest.digest.clone());
        }
        if let Some(subject) = &manifest.subject {
            holder.referrers.entry(subject.clone()).or_default().insert(manifest.digest.clone());
        }
        // The same bytes under another media type have the same digest; the newest type wins, as its pusher expects.
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

    /// Removes a tag, or a manifest with all its tags; `false` if the tag or manifest does not exist.
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
        self.used_bytes -= manifest.held_bytes() + ENTRY_BYTES * entries as u64;
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

    /// The tags that follow `last` in lexical order; `None` for an unknown repository.
    pub(super) fn tags(&self, repository: &str, last: Option<&str>, most: usize) -> Option<Page<String>> {
        let holder = self.repositories.get(repository)?;
        Some(page(holder.tags.range::<str, _>(after(last)).map(|(tag, _)| tag.clone()), most))
    }

    /// The repositories that follow `last` in lexical order.
    pub(super) fn repositories(&self, last: Option<&str>, most: usize) -> Page<String> {
        page(self.repositories.range::<str, _>(after(last)).map(|(name, _)| name.clone()), most)
    }

    /// The manifests attached to a subject, ordered by digest, that follow `last`; an unknown subject has none.
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

    /// Bytes that a repository takes before anything is pushed to it.
    fn new_repository(&self, repository: &str) -> u64 {
        if self.knows(repository) { 0 } else { ENTRY_BYTES + repository.len() as u64 }
    }

    fn link(&mut self, repository: &str, digest: &Digest) {
        self.used_bytes += self.new_repository(repository);
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
mod tests;
