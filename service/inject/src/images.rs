//! The images of a payload: names, manifests and blobs. A blob that several images need is stored once.
//!
//! This module finds the components of an image (configuration, layers, images of an index, referrers) and the source
//! of their bytes. A source is a [`Shelf`]: a folder, an archive, or images that were fetched from a registry.

mod archive;
mod beside;
mod fetch;
mod layout;
mod manifest;
mod pieces;
mod source;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use service_seed::catalog::{self, Catalog, Repository};
use service_seed::digest::Digest;

pub use fetch::Fetch;
use manifest::{Descriptor, Manifest};
pub use pieces::InPayload;
use service_registry::Image;
pub use source::Source;

/// Largest manifest that is read, in bytes (OCI distribution specification).
const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of levels of nested image indexes.
const DEPTH_MAX: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    #[error("`{text}`: {what}")]
    Source {
        text: String,
        /// The text to write on the command line instead.
        what: String,
    },
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {what}", path.display())]
    Shape { path: PathBuf, what: String },
    #[error("{}: sha256:{digest} is missing, which {of} needs", path.display())]
    Missing {
        /// The path at which the blob was expected.
        path: PathBuf,
        digest: Digest,
        /// The image that needs the missing blob.
        of: String,
    },
    #[error("{image}: {cause}")]
    Registry {
        image: String,
        /// Why the registry did not deliver the object.
        cause: String,
    },
}

#[derive(Debug, Clone)]
pub struct Blob {
    pub bytes: u64,
    place: Storage,
}

#[derive(Debug, Clone)]
enum Storage {
    /// The blob is in a file and starts at this offset.
    File(PathBuf, u64),
    Memory(Vec<u8>),
}

impl Blob {
    fn file(path: impl Into<PathBuf>, offset: u64, bytes: u64) -> Self {
        Self { bytes, place: Storage::File(path.into(), offset) }
    }

    fn memory(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.len() as u64, place: Storage::Memory(bytes) }
    }

    /// A reader of the blob's bytes. The reader returns fewer bytes than the blob's size only if the file was
    /// truncated.
    pub fn reader(&self) -> Result<Box<dyn Read + '_>, ImagesError> {
        match &self.place {
            Storage::Memory(bytes) => Ok(Box::new(Cursor::new(bytes))),
            Storage::File(path, offset) => {
                let open = || -> io::Result<_> {
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(*offset))?;
                    Ok(file.take(self.bytes))
                };
                Ok(Box::new(open().map_err(|source| ImagesError::Read { path: path.clone(), source })?))
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ImagesError> {
        if self.bytes > MANIFEST_BYTES_MAX {
            let what = format!("a manifest of {} bytes; the most is {MANIFEST_BYTES_MAX}", self.bytes);
            return Err(ImagesError::Shape { path: path.into(), what });
        }
        let mut bytes = Vec::new();
        let read = self.reader()?.read_to_end(&mut bytes);
        read.map_err(|source| ImagesError::Read { path: path.into(), source })?;
        Ok(bytes)
    }
}

trait Shelf {
    fn path(&self) -> &Path;
    /// The blob with this digest; `None` if the source lacks it.
    fn blob(&self, digest: &Digest) -> Option<Blob>;
    /// The entries of the source's index.
    fn listed(&self) -> &[Descriptor];
}

#[derive(Debug, Default)]
pub struct Images {
    pub blobs: BTreeMap<Digest, Blob>,
    pub catalog: Catalog,
    /// The referrers of each manifest, as descriptors for a list of referrers.
    pub referrers: BTreeMap<Digest, Vec<Value>>,
}

impl Images {
    /// Adds the image of `descriptor` under `name`, with all its components. With `platform` (such as `linux/amd64`),
    /// only the image for that platform is taken from an index.
    fn put(
        &mut self,
        shelf: &dyn Shelf,
        descriptor: &Descriptor,
        name: &Name,
        platform: Option<&str>,
    ) -> Result<Digest, ImagesError> {
        let of = name.to_string();
        let mut descriptor = descriptor.clone();
        if let Some(platform) = platform {
            let manifest = Self::manifest(shelf, &descriptor, &of)?.0;
            if !manifest.manifests.is_empty() {
                let fitting = manifest.manifests.into_iter().find(|one| one.is_for(platform));
                let missing = || format!("{of} has no image for {platform}");
                let shape = |what| ImagesError::Shape { path: shelf.path().into(), what };
                descriptor = fitting.ok_or_else(|| shape(missing()))?;
            }
        }
        let digest = self.tree(shelf, &descriptor, name, 0)?;
        let repository = self.repository(&name.repository);
        repository.tags.insert(name.tag.clone(), digest);
        self.referrers_of(shelf, name)?;
        self.tagged_beside(shelf, name)?;
        Ok(digest)
    }

    fn repository(&mut self, name: &str) -> &mut Repository {
        self.catalog.repositories.entry(name.to_owned()).or_default()
    }

    fn manifest(shelf: &dyn Shelf, descriptor: &Descriptor, of: &str) -> Result<(Manifest, Blob), ImagesError> {
        let digest = descriptor.digest(shelf.path())?;
        let missing = || ImagesError::Missing { path: shelf.path().into(), digest, of: of.to_owned() };
        let blob = shelf.blob(&digest).ok_or_else(missing)?;
        let manifest = Manifest::parse(&blob.read(shelf.path())?, shelf.path())?;
        Ok((manifest, blob))
    }

    /// Adds a manifest and everything to which it refers.
    fn tree(
        &mut self,
        shelf: &dyn Shelf,
        descriptor: &Descriptor,
        name: &Name,
        depth: usize,
    ) -> Result<Digest, ImagesError> {
        let (path, of) = (shelf.path(), name.to_string());
        let digest = descriptor.digest(path)?;
        let (manifest, blob) = Self::manifest(shelf, descriptor, &of)?;
        let shape = |what: String| ImagesError::Shape { path: path.into(), what };
        let media_type = descriptor.media_type.clone().or_else(|| manifest.media_type.clone());
        let media_type = media_type.unwrap_or_else(|| manifest.implied_media_type().to_owned());
        if !catalog::is_media_type(&media_type) {
            return Err(shape(format!("{of}: `{media_type}` is no media type")));
        }
        if depth > DEPTH_MAX {
            return Err(shape(format!("{of}: indexes lie more than {DEPTH_MAX} deep")));
        }
        let mut present = 0;
        for child in &manifest.manifests {
            // A layout may have a part of an index only, as most copies of one platform do.
            if shelf.blob(&child.digest(path)?).is_some() {
                self.tree(shelf, child, name, depth + 1)?;
                present += 1;
            }
        }
        if present == 0 && !manifest.manifests.is_empty() {
            return Err(shape(format!("{of}: none of the images of its index is there")));
        }
        for part in manifest.config.iter().chain(&manifest.layers) {
            let digest = part.digest(path)?;
            let missing = || ImagesError::Missing { path: path.into(), digest, of: of.clone() };
            let blob = shelf.blob(&digest).ok_or_else(missing)?;
            if part.size.is_some_and(|size| size != blob.bytes) {
                return Err(shape(format!("{of}: the size of sha256:{digest} differs from its manifest")));
            }
            self.blobs.insert(digest, blob);
        }
        self.catalog.manifests.insert(digest, catalog::Manifest { bytes: blob.bytes, media_type });
        self.blobs.insert(digest, blob);
        self.repository(&name.repository).manifests.insert(digest);
        Ok(digest)
    }

    /// Adds signatures and other objects whose tags contain an image's digest.
    fn tagged_beside(&mut self, shelf: &dyn Shelf, name: &Name) -> Result<(), ImagesError> {
        for descriptor in shelf.listed() {
            let Some(tag) = beside::tag_of(descriptor, shelf.listed()) else { continue };
            let Some(image) = beside::image_of(&tag) else { continue };
            if self.repository(&name.repository).manifests.contains(&image) {
                let digest = self.tree(shelf, descriptor, name, 0)?;
                self.repository(&name.repository).tags.insert(tag, digest);
            }
        }
        Ok(())
    }

    /// Entries of a source that may refer to an image: all listed entries, and the entries in lists of referrers.
    fn referring(shelf: &dyn Shelf, of: &str) -> Result<Vec<Descriptor>, ImagesError> {
        let mut all = shelf.listed().to_vec();
        for descriptor in shelf.listed() {
            if beside::tag_of(descriptor, shelf.listed()).is_some_and(|tag| beside::is_list(&tag)) {
                let children = Self::manifest(shelf, descriptor, of)?.0.manifests;
                all.extend(children.into_iter().filter(|child| child.has_digest_on(shelf)));
            }
        }
        Ok(all)
    }

    /// Adds signatures and other objects that refer to an image.
    fn referrers_of(&mut self, shelf: &dyn Shelf, name: &Name) -> Result<(), ImagesError> {
        for descriptor in &Self::referring(shelf, &name.to_string())? {
            let digest = descriptor.digest(shelf.path())?;
            let known = self.catalog.repositories.get(&name.repository);
            if known.is_some_and(|known| known.manifests.contains(&digest)) {
                continue;
            }
            let Ok((manifest, _)) = Self::manifest(shelf, descriptor, &name.to_string()) else { continue };
            let Some(subject) = &manifest.subject else { continue };
            let subject = subject.digest(shelf.path())?;
            if !known.is_some_and(|known| known.manifests.contains(&subject)) {
                continue;
            }
            self.tree(shelf, descriptor, name, 0)?;
            let stored = &self.catalog.manifests[&digest];
            let kind = manifest.artifact_type.or_else(|| manifest.config.and_then(|config| config.media_type));
            let mut entry =
                json!({"mediaType": stored.media_type, "digest": format!("sha256:{digest}"), "size": stored.bytes});
            if let Some(kind) = kind {
                entry["artifactType"] = kind.into();
            }
            if let Some(annotations) = manifest.annotations {
                entry["annotations"] = annotations;
            }
            let list = self.referrers.entry(subject).or_default();
            // An image with two names has them once.
            if list.iter().all(|listed| listed["digest"] != entry["digest"]) {
                list.push(entry);
            }
        }
        Ok(())
    }

    /// The list of referrers of `image`, as a registry answers it.
    pub fn referrers_list(&self, image: &Digest) -> String {
        let descriptors = self.referrers.get(image).map(Vec::as_slice).unwrap_or_default();
        let media_type = "application/vnd.oci.image.index.v1+json";
        json!({"schemaVersion": 2, "mediaType": media_type, "manifests": descriptors}).to_string()
    }

    /// Number of signatures and similar objects that belong to the payload's images.
    pub fn count_beside(&self) -> usize {
        let tags = self.catalog.repositories.values().flat_map(|repository| repository.tags.keys());
        let tagged = tags.filter(|tag| beside::image_of(tag).is_some()).count();
        tagged + self.referrers.values().map(Vec::len).sum::<usize>()
    }

    pub fn bytes(&self) -> u64 {
        self.blobs.values().map(|blob| blob.bytes).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub name: Name,
    /// The image's name with host, as its source names it. Policies match this name.
    pub known_as: String,
}

/// The name of an image in the registry of the injected program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub repository: String,
    pub tag: String,
}

impl Taken {
    /// Parses the image reference in `text`. The parsed name has no host, because the injected program serves the
    /// images of all hosts.
    fn parse(text: &str) -> Result<Self, ImagesError> {
        let wrong = |what: String| ImagesError::Source { text: text.to_owned(), what };
        Ok(Self::of(Image::parse(text).map_err(|error| wrong(error.to_string()))?))
    }

    fn of(image: Image) -> Self {
        let tag = image.tag.unwrap_or_else(|| "latest".to_owned());
        let known_as = Image { tag: Some(tag.clone()), digest: None, ..image };
        Self { known_as: known_as.full_name(), name: Name { repository: known_as.repository, tag } }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.repository, self.tag)
    }
}

#[cfg(test)]
pub mod tests;
