//! An OCI image layout in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use service_seed::digest::Digest;

use super::manifest::{Descriptor, Manifest};
use super::{Blob, ImagesError, Shelf};

/// A folder with `index.json` and `blobs`.
pub struct Layout {
    folder: PathBuf,
    listed: Vec<Descriptor>,
}

impl Layout {
    pub fn open(folder: &Path) -> Result<Self, ImagesError> {
        let path = folder.join("index.json");
        let blob = match fs::metadata(&path) {
            Ok(metadata) => Blob::file(&path, 0, metadata.len()),
            Err(source) => return Err(ImagesError::Read { path, source }),
        };
        let index = Manifest::parse(&blob.read(&path)?, &path)?;
        Ok(Self { folder: folder.into(), listed: index.manifests })
    }
}

impl Shelf for Layout {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn blob(&self, digest: &Digest) -> Option<Blob> {
        let path = self.folder.join("blobs/sha256").join(digest.to_string());
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(Blob::file(path, 0, metadata.len()))
    }

    fn listed(&self) -> &[Descriptor] {
        &self.listed
    }
}
