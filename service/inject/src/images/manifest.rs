//! Parses manifests and indexes of the OCI image specification and of Docker's schema 2, to find the blobs to which
//! they refer.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use service_seed::digest::Digest;

use super::{ImagesError, Shelf};

/// The media type of an image manifest that states no media type.
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index that states no media type.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The annotation with the name of an image in a layout.
pub(super) const REF_NAME: &str = "org.opencontainers.image.ref.name";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: Option<String>,
    pub digest: String,
    #[serde(default)]
    pub size: Option<u64>,
    #[serde(default)]
    pub platform: Option<Platform>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    pub variant: Option<String>,
}

/// The blobs to which a manifest or an index refers.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    pub media_type: Option<String>,
    pub manifests: Vec<Descriptor>,
    pub config: Option<Descriptor>,
    pub layers: Vec<Descriptor>,
    pub subject: Option<Descriptor>,
    pub artifact_type: Option<String>,
    pub annotations: Option<Value>,
}

impl Descriptor {
    /// The digest of the blob; an error unless the digest is SHA-256, the only algorithm that is served.
    pub fn digest(&self, path: &Path) -> Result<Digest, ImagesError> {
        let what = || format!("`{}` is not sha256: and 64 lower-case hex digits", self.digest);
        Digest::from_oci(&self.digest).ok_or_else(|| ImagesError::Shape { path: path.into(), what: what() })
    }

    pub fn has_digest_on(&self, shelf: &dyn Shelf) -> bool {
        Digest::from_oci(&self.digest).is_some_and(|digest| shelf.blob(&digest).is_some())
    }

    /// Whether the image is for `os/architecture` or `os/architecture/variant`.
    pub fn is_for(&self, platform: &str) -> bool {
        let Some(own) = &self.platform else { return false };
        let plain = format!("{}/{}", own.os, own.architecture);
        platform == plain || own.variant.as_ref().is_some_and(|variant| platform == format!("{plain}/{variant}"))
    }
}

impl Manifest {
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ImagesError> {
        let shape = |what: String| ImagesError::Shape { path: path.into(), what };
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| shape(format!("a manifest cannot be read: {error}")))?;
        if manifest.manifests.is_empty() && manifest.config.is_none() && manifest.layers.is_empty() {
            return Err(shape("a manifest that names neither images nor a configuration".to_owned()));
        }
        Ok(manifest)
    }

    /// The media type of a manifest that states no media type.
    pub fn implied_media_type(&self) -> &'static str {
        if self.manifests.is_empty() { IMAGE } else { INDEX }
    }
}
