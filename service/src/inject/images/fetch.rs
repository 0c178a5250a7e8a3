//! Images from a registry, fetched into a layout in a folder of our own: manifests whole, blobs piece by piece.
//!
//! The requests are the registry client's, with its credentials, mirrors, redirects and retries.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use service_seed::digest::Digest;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::manifest::{Descriptor, Manifest};
use super::{Blob, ImagesError, Name, Shelf};
use crate::registry::{Image, Registry};

/// How long one piece of a blob, or a manifest, may take.
const PIECE_TIME: Duration = Duration::from_mins(1);

/// Fetches into a folder.
pub struct Fetch {
    registry: Registry,
    folder: PathBuf,
}

/// What was fetched.
pub struct Fetched {
    folder: PathBuf,
    listed: Vec<Descriptor>,
}

impl Fetch {
    /// Fetches with `registry` into `folder`, which exists.
    pub fn new(registry: Registry, folder: PathBuf) -> Self {
        Self { registry, folder }
    }

    /// Fetches an image with everything that belongs to it, or of an index only what is for `platform`.
    pub async fn fetch(&self, text: &str, platform: Option<&str>) -> Result<(Fetched, Name), ImagesError> {
        let wrong = |what: String| ImagesError::Source { text: text.to_owned(), what };
        let image = Image::parse(text).map_err(|error| wrong(error.to_string()))?;
        let name =
            Name { repository: image.repository.clone(), tag: image.tag.clone().unwrap_or_else(|| "latest".into()) };
        let reference = image.digest.clone().unwrap_or_else(|| name.tag.clone());
        let top = self.manifest(&image, text, &reference).await?;
        // Manifests that are still to be looked into; a fetched index adds to it.
        let mut todo = vec![top.clone()];
        while let Some(descriptor) = todo.pop() {
            let digest = descriptor.digest(&self.folder)?;
            let path = self.path(&digest);
            let bytes = fs::read(&path).map_err(|source| ImagesError::Read { path: path.clone(), source })?;
            let manifest = Manifest::parse(&bytes, &path)?;
            for child in manifest.manifests {
                if platform.is_none_or(|platform| child.is_for(platform)) {
                    todo.push(self.manifest(&image, text, &child.digest).await?);
                }
            }
            for part in manifest.config.iter().chain(&manifest.layers) {
                self.blob(&image, text, part).await?;
            }
        }
        Ok((Fetched { folder: self.folder.clone(), listed: vec![top] }, name))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    fn failed(text: &str) -> impl Fn(crate::verdicts::Failure) -> ImagesError + '_ {
        move |failure| ImagesError::Registry { image: text.to_owned(), cause: failure.cause }
    }

    async fn manifest(&self, image: &Image, text: &str, reference: &str) -> Result<Descriptor, ImagesError> {
        let fetched =
            self.registry.manifest_bytes(&image.host, &image.repository, reference, Instant::now() + PIECE_TIME);
        let (media_type, bytes) = fetched.await.map_err(Self::failed(text))?;
        let digest = Digest::of(&bytes);
        if reference.contains(':') && reference != format!("sha256:{digest}") {
            let cause = "the registry answered with another manifest than the digest asked for".to_owned();
            return Err(ImagesError::Registry { image: text.to_owned(), cause });
        }
        let path = self.path(&digest);
        fs::write(&path, &bytes).map_err(|source| ImagesError::Read { path, source })?;
        Ok(Descriptor { media_type: Some(media_type), digest: format!("sha256:{digest}"), ..Descriptor::default() })
    }

    /// Fetches a blob unless it is there; its bytes are compared with its digest before it gets its name.
    async fn blob(&self, image: &Image, text: &str, part: &Descriptor) -> Result<(), ImagesError> {
        let digest = part.digest(&self.folder)?;
        let path = self.path(&digest);
        if path.exists() {
            return Ok(());
        }
        let partial = path.with_extension("partial");
        let read = |source| ImagesError::Read { path: partial.clone(), source };
        let mut file = File::create(&partial).map_err(read)?;
        let (mut hasher, mut at) = (Sha256::new(), 0);
        loop {
            let piece =
                self.registry.blob_part(&image.host, &image.repository, &part.digest, at, Instant::now() + PIECE_TIME);
            let piece = piece.await.map_err(Self::failed(text))?;
            hasher.update(&piece.bytes);
            file.write_all(&piece.bytes).map_err(read)?;
            at += piece.bytes.len() as u64;
            if at >= piece.total || piece.bytes.is_empty() {
                break;
            }
        }
        if Digest::from(hasher) != digest {
            let cause = format!("what the registry sent for {} has another digest", part.digest);
            return Err(ImagesError::Registry { image: text.to_owned(), cause });
        }
        fs::rename(&partial, &path).map_err(read)
    }
}

impl Shelf for Fetched {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn blob(&self, digest: &Digest) -> Option<Blob> {
        let path = self.folder.join(digest.to_string());
        let bytes = fs::metadata(&path).ok()?.len();
        Some(Blob::file(path, 0, bytes))
    }

    fn listed(&self) -> &[Descriptor] {
        &self.listed
    }
}
