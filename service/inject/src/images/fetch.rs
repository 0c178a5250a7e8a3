//! Fetches images from a registry into an OCI layout: whole manifests, and blobs in ranges of limited size.
//!
//! Objects that belong to an image's digest, such as signatures, are fetched too. The registry client sends the
//! requests, with its credentials, mirrors, redirects and retries.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use service_seed::digest::Digest;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::manifest::{Descriptor, Manifest, REF_NAME};
use super::{Blob, ImagesError, Shelf, Taken, beside};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Image, Keyring, Kind, Piece, Registry, Wanted};

/// Time limit for fetching one range of a blob, or a manifest.
const PIECE_TIME: Duration = Duration::from_mins(1);
/// Maximum number of referrers of one image: enough for a year of daily attestations.
const REFERRERS_MAX: usize = 512;
/// Maximum number of bytes of one referrer, because anybody with the right to push can attach objects of any size.
const BESIDE_BYTES_MAX: u64 = 256 << 20;

pub struct Fetch {
    registry: Registry,
    folder: PathBuf,
}

pub struct Fetched {
    folder: PathBuf,
    listed: Vec<Descriptor>,
}

impl Fetch {
    /// A layout in the existing `folder`, into which images are fetched with `registry`.
    pub fn new(registry: Registry, folder: PathBuf) -> Self {
        Self { registry, folder }
    }

    /// Fetches an image with all its components; with `platform`, only the image for this platform of an index. The
    /// image becomes the first entry of the layout.
    pub async fn fetch(&self, text: &str, platform: Option<&str>) -> Result<(Fetched, Taken), ImagesError> {
        let wrong = |what: String| ImagesError::Source { text: text.to_owned(), what };
        let image = Image::parse(text).map_err(|error| wrong(error.to_string()))?;
        let taken = Taken::of(image.clone());
        let reference = image.digest.clone().unwrap_or_else(|| taken.name.tag.clone());
        let top = self.manifest(&image, text, &reference).await?;
        // Manifests that are still to be read; a fetched index adds to it.
        let mut todo = vec![top.clone()];
        let mut images = Vec::new();
        while let Some(descriptor) = todo.pop() {
            let digest = descriptor.digest(&self.folder)?;
            let path = self.path(&digest);
            let bytes = fs::read(&path).map_err(|source| ImagesError::Read { path: path.clone(), source })?;
            let manifest = Manifest::parse(&bytes, &path)?;
            // If one image of an index is taken, the index itself is left out.
            if manifest.manifests.is_empty() || platform.is_none() {
                images.push(digest);
            }
            for child in manifest.manifests {
                if platform.is_none_or(|platform| child.is_for(platform)) {
                    todo.push(self.manifest(&image, text, &child.digest).await?);
                }
            }
            for part in manifest.config.iter().chain(&manifest.layers) {
                self.blob(&image, text, part).await?;
            }
        }
        let mut listed = vec![top];
        for digest in images {
            self.beside(&image, text, &digest, &mut listed).await?;
        }
        Ok((Fetched { folder: self.folder.clone(), listed }, taken))
    }

    /// Fetches the signatures and other objects that belong to the image with this digest, and lists them as a layout
    /// does.
    async fn beside(
        &self,
        image: &Image,
        text: &str,
        digest: &Digest,
        listed: &mut Vec<Descriptor>,
    ) -> Result<(), ImagesError> {
        for referrer in self.referrers(image, text, digest).await? {
            if referrer.media_type.as_deref().and_then(Kind::of) != Some(Kind::Image) {
                left_out(text, &referrer.digest, "it is no manifest with layers");
                continue;
            }
            listed.extend(self.whole(image, text, &referrer.digest).await?);
        }
        for tag in beside::tags(digest) {
            if let Some(mut found) = self.whole(image, text, &tag).await? {
                found.annotations.insert(REF_NAME.to_owned(), tag);
                listed.push(found);
            }
        }
        Ok(())
    }

    /// Referrers of an image from the referrers API, or from a tag if the registry lacks this API.
    async fn referrers(&self, image: &Image, text: &str, digest: &Digest) -> Result<Vec<Descriptor>, ImagesError> {
        let (place, nobody) = ((image.host.as_str(), image.repository.as_str()), Keyring::default());
        let ask = async |wanted| {
            let piece = self.registry.piece(place, wanted, &nobody, Instant::now() + PIECE_TIME).await;
            piece.map_err(Self::failed(text))
        };
        let (named, tag) = (format!("sha256:{digest}"), beside::list_tag(digest));
        let mut piece = ask(Wanted::Referrers(&named)).await?;
        if piece == Piece::Unknown {
            piece = ask(Wanted::Manifest(&tag)).await?;
        }
        let Piece::Found(bytes) = piece else { return Ok(Vec::new()) };
        let wrong = |what: String| ImagesError::Registry {
            image: text.to_owned(),
            cause: format!("the referrers of sha256:{digest}: {what}"),
        };
        let list: Manifest = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if list.manifests.len() > REFERRERS_MAX {
            return Err(wrong(format!("there are {}, and at most {REFERRERS_MAX} travel", list.manifests.len())));
        }
        Ok(list.manifests)
    }

    /// Fetches a manifest with its blobs; `None` if the manifest is missing or is left out.
    async fn whole(&self, image: &Image, text: &str, reference: &str) -> Result<Option<Descriptor>, ImagesError> {
        let Some(found) = self.manifest_if_there(image, text, reference).await? else { return Ok(None) };
        let path = self.path(&found.digest(&self.folder)?);
        let bytes = fs::read(&path).map_err(|source| ImagesError::Read { path: path.clone(), source })?;
        let manifest = Manifest::parse(&bytes, &path)?;
        if let Some(why) = stays_behind(&manifest, &path) {
            left_out(text, reference, &why);
            return Ok(None);
        }
        for part in manifest.config.iter().chain(&manifest.layers) {
            self.blob(image, text, part).await?;
        }
        Ok(Some(found))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    fn failed(text: &str) -> impl Fn(Failure) -> ImagesError + '_ {
        move |failure| ImagesError::Registry { image: text.to_owned(), cause: failure.cause }
    }

    async fn manifest(&self, image: &Image, text: &str, reference: &str) -> Result<Descriptor, ImagesError> {
        let there = self.manifest_if_there(image, text, reference).await?;
        there.ok_or_else(|| ImagesError::Registry {
            image: text.to_owned(),
            cause: format!("{} has no `{reference}` in {}", image.host, image.repository),
        })
    }

    async fn manifest_if_there(
        &self,
        image: &Image,
        text: &str,
        reference: &str,
    ) -> Result<Option<Descriptor>, ImagesError> {
        let fetched =
            self.registry.manifest_bytes(&image.host, &image.repository, reference, Instant::now() + PIECE_TIME);
        let (media_type, bytes) = match fetched.await {
            Err(failure) if failure.class == Class::NotFound => return Ok(None),
            fetched => fetched.map_err(Self::failed(text))?,
        };
        let digest = Digest::of(&bytes);
        if reference.contains(':') && reference != format!("sha256:{digest}") {
            let cause = "the registry answered with another manifest than the digest asked for".to_owned();
            return Err(ImagesError::Registry { image: text.to_owned(), cause });
        }
        let path = self.path(&digest);
        fs::write(&path, &bytes).map_err(|source| ImagesError::Read { path, source })?;
        let digest = format!("sha256:{digest}");
        Ok(Some(Descriptor { media_type: Some(media_type), digest, ..Descriptor::default() }))
    }

    /// Fetches a blob unless the layout already contains it. The digest of the bytes is checked before the file gets
    /// its name.
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
            if part.size.is_some_and(|size| size != piece.total) {
                let cause = format!("{} has {} bytes, which differs from its manifest", part.digest, piece.total);
                return Err(ImagesError::Registry { image: text.to_owned(), cause });
            }
            hasher.update(&piece.bytes);
            file.write_all(&piece.bytes).map_err(read)?;
            at += piece.bytes.len() as u64;
            if at >= piece.total || piece.bytes.is_empty() {
                break;
            }
        }
        if Digest::from(hasher) != digest {
            let cause = format!("the content that the registry sent for {} has another digest", part.digest);
            return Err(ImagesError::Registry { image: text.to_owned(), cause });
        }
        fs::rename(&partial, &path).map_err(read)
    }
}

/// Why the manifest of a signature or similar object is left out; `None` if the payload contains it.
fn stays_behind(manifest: &Manifest, path: &Path) -> Option<String> {
    let parts = || manifest.config.iter().chain(&manifest.layers);
    // A size that is not stated counts as too large.
    let bytes = parts().fold(0_u64, |sum, part| sum.saturating_add(part.size.unwrap_or(u64::MAX)));
    if !manifest.manifests.is_empty() {
        Some("an index signs nothing".to_owned())
    } else if parts().any(|part| part.digest(path).is_err()) {
        Some("it names a blob by another digest than SHA-256".to_owned())
    } else if bytes > BESIDE_BYTES_MAX {
        Some(format!("it has more than {BESIDE_BYTES_MAX} bytes"))
    } else {
        None
    }
}

/// Logs that a signature or similar object is left out of the payload. With `--verify`, a left-out signature does not
/// count.
fn left_out(image: &str, what: &str, why: &str) {
    eprintln!("{image}: {what} beside it does not travel: {why}");
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_too_large_or_signs_nothing_stays_behind() {
        let digest = format!("sha256:{}", Digest::of(b"x"));
        let why = |manifest: Value| stays_behind(&serde_json::from_value(manifest).unwrap(), Path::new("x"));
        let layers =
            |sizes: &[u64]| -> Value { sizes.iter().map(|size| json!({"digest": digest, "size": size})).collect() };
        assert_eq!(why(json!({"layers": layers(&[1, BESIDE_BYTES_MAX - 1])})), None);
        for large in [layers(&[2, BESIDE_BYTES_MAX - 1]), layers(&[u64::MAX, 1]), json!([{"digest": digest}])] {
            assert!(why(json!({"layers": large})).unwrap().contains("more than 268435456 bytes"), "{large}");
        }
        assert!(why(json!({"manifests": layers(&[1])})).unwrap().contains("signs nothing"));
        assert!(why(json!({"layers": [{"digest": "sha512:00", "size": 1}]})).unwrap().contains("SHA-256"));
    }
}
