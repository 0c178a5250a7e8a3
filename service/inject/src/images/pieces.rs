//! Reads the images of a payload like a registry, so that signature checks use exactly the content that is injected.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use service_seed::digest::Digest;

use super::{Blob, Images, MANIFEST_BYTES_MAX};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Keyring, Piece, Wanted};
use service_registry::{Pieces, Question};

/// The manifests and blobs of one repository of the payload.
pub struct InPayload {
    images: Arc<Images>,
    repository: String,
}

impl InPayload {
    /// A source that always reads `repository`, whatever the repository's name is at the registry.
    pub fn new(images: Arc<Images>, repository: String) -> Self {
        Self { images, repository }
    }

    fn answer(&self, wanted: Wanted<'_>) -> Result<Piece, Failure> {
        let (blob, bytes_max) = match wanted {
            Wanted::Referrers(image) => {
                let image = Digest::from_oci(image);
                let list = image.map_or_else(String::new, |image| self.images.referrers_list(&image));
                return Ok(Piece::Found(list.into()));
            }
            Wanted::Image(reference) | Wanted::Manifest(reference) => (self.manifest(reference), MANIFEST_BYTES_MAX),
            Wanted::Blob { digest, bytes_max } => (self.blob(digest), u64::try_from(bytes_max).unwrap_or(u64::MAX)),
            Wanted::Part { .. } => return Ok(Piece::Unknown),
        };
        let Some(blob) = blob else { return Ok(Piece::Absent) };
        if blob.bytes > bytes_max {
            let what = format!("a piece of {} bytes; at most {bytes_max} are read", blob.bytes);
            return Err(Failure::new(Class::Invalid, what));
        }
        let unread = |what: String| Failure::new(Class::Unavailable, what);
        let mut bytes = Vec::new();
        let mut reader = blob.reader().map_err(|error| unread(error.to_string()))?;
        reader.read_to_end(&mut bytes).map_err(|error| unread(error.to_string()))?;
        Ok(Piece::Found(Bytes::from(bytes)))
    }

    fn manifest(&self, reference: &str) -> Option<&Blob> {
        let repository = self.images.catalog.repositories.get(&self.repository)?;
        let digest = match Digest::from_oci(reference) {
            Some(digest) => digest,
            None => *repository.tags.get(reference)?,
        };
        if repository.manifests.contains(&digest) { self.images.blobs.get(&digest) } else { None }
    }

    fn blob(&self, digest: &str) -> Option<&Blob> {
        self.images.blobs.get(&Digest::from_oci(digest)?)
    }
}

impl Pieces for InPayload {
    fn piece<'p>(&'p self, _question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>> {
        future::ready(self.answer(wanted)).boxed()
    }

    fn relevant(&self, _host: &str, _repository: &str, _keyring: &Keyring) -> Keyring {
        Keyring::default()
    }
}
