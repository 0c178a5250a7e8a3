//! Images in a tar file: an OCI layout, or the output of `docker save`.
//!
//! Nothing is unpacked: blobs are read from their position in the file. Docker's own format has no manifest that a
//! registry could serve, so this module makes one. Layers are not compressed one by one, because the whole payload is
//! compressed later.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use service_seed::digest::Digest;
use sha2::{Digest as _, Sha256};

use super::manifest::{Descriptor, Manifest, REF_NAME};
use super::{Blob, ImagesError, Shelf};

/// Maximum number of entries of an archive; no image of usual size has so many files.
const ENTRIES_MAX: usize = 100_000;
/// Maximum number of links that are followed for one file.
const LINKS_MAX: usize = 8;
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";

pub struct Archive {
    path: PathBuf,
    blobs: BTreeMap<Digest, Blob>,
    listed: Vec<Descriptor>,
}

struct Files {
    path: PathBuf,
    plain: BTreeMap<String, (u64, u64)>,
    links: BTreeMap<String, String>,
}

/// An image in the `manifest.json` of `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

impl Archive {
    pub fn open(path: &Path) -> Result<Self, ImagesError> {
        let files = Files::scan(path)?;
        if let Some(index) = files.blob("index.json") {
            return Self::layout(&files, &index);
        }
        if let Some(manifest) = files.blob("manifest.json") {
            Self::saved(&files, &manifest)
        } else {
            let what = "neither an OCI layout (index.json) nor an archive of Docker (manifest.json)".to_owned();
            Err(ImagesError::Shape { path: path.into(), what })
        }
    }

    fn layout(files: &Files, index: &Blob) -> Result<Self, ImagesError> {
        let index = Manifest::parse(&index.read(&files.path)?, &files.path)?;
        let blob = |name: &String| {
            let digest = Digest::from_hex(name.strip_prefix("blobs/sha256/")?)?;
            Some((digest, files.blob(name)?))
        };
        let blobs = files.plain.keys().filter_map(blob).collect();
        Ok(Self { path: files.path.clone(), blobs, listed: index.manifests })
    }

    fn saved(files: &Files, manifest: &Blob) -> Result<Self, ImagesError> {
        let shape = |what: String| ImagesError::Shape { path: files.path.clone(), what };
        let saved: Vec<Saved> = serde_json::from_slice(&manifest.read(&files.path)?)
            .map_err(|error| shape(format!("manifest.json: {error}")))?;
        let mut archive = Self { path: files.path.clone(), blobs: BTreeMap::new(), listed: Vec::new() };
        for image in saved {
            let part = |name: &str| files.blob(name).ok_or_else(|| shape(format!("`{name}` is missing")));
            let config = archive.keep(part(&image.config)?, CONFIG)?;
            let mut layers = Vec::new();
            for name in &image.layers {
                let blob = part(name)?;
                let media_type = if is_gzip(&blob)? { LAYER_GZIP } else { LAYER };
                layers.push(archive.keep(blob, media_type)?);
            }
            let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": layers});
            let blob = Blob::memory(manifest.to_string().into_bytes());
            let descriptor = archive.keep(blob, IMAGE)?;
            let descriptor: Descriptor =
                serde_json::from_value(descriptor).map_err(|error| shape(format!("manifest.json: {error}")))?;
            for tag in image.repo_tags.unwrap_or_default() {
                let mut named = descriptor.clone();
                named.annotations.insert(REF_NAME.to_owned(), tag);
                archive.listed.push(named);
            }
            if archive.listed.is_empty() {
                archive.listed.push(descriptor);
            }
        }
        Ok(archive)
    }

    /// Adds a blob with the digest of its bytes; returns its descriptor.
    fn keep(&mut self, blob: Blob, media_type: &str) -> Result<serde_json::Value, ImagesError> {
        let mut hasher = Sha256::new();
        let copied = io::copy(&mut blob.reader()?, &mut hasher);
        copied.map_err(|source| ImagesError::Read { path: self.path.clone(), source })?;
        let digest = Digest::from(hasher);
        let described = json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": blob.bytes});
        self.blobs.insert(digest, blob);
        Ok(described)
    }
}

impl Shelf for Archive {
    fn path(&self) -> &Path {
        &self.path
    }

    fn blob(&self, digest: &Digest) -> Option<Blob> {
        self.blobs.get(digest).cloned()
    }

    fn listed(&self) -> &[Descriptor] {
        &self.listed
    }
}

impl Files {
    fn scan(path: &Path) -> Result<Self, ImagesError> {
        let read = |source| ImagesError::Read { path: path.into(), source };
        let shape = |what: &str| ImagesError::Shape { path: path.into(), what: what.to_owned() };
        let mut archive = tar::Archive::new(File::open(path).map_err(read)?);
        let mut files = Self { path: path.into(), plain: BTreeMap::new(), links: BTreeMap::new() };
        for (count, entry) in archive.entries_with_seek().map_err(read)?.enumerate() {
            let entry = entry.map_err(|_| shape("not a tar file, or a damaged one; is it compressed?"))?;
            if count >= ENTRIES_MAX {
                return Err(shape("more entries than an image has"));
            }
            let name = entry.path().map_err(read)?.to_string_lossy().trim_start_matches("./").to_owned();
            let kind = entry.header().entry_type();
            if kind.is_file() {
                files.plain.insert(name, (entry.raw_file_position(), entry.size()));
            } else if let Ok(Some(target)) = entry.link_name() {
                // Symbolic links are relative to their folder, hard links to the archive. Only the former lead upwards.
                let target = target.to_string_lossy().into_owned();
                let target = if kind.is_symlink() { beside(&name, &target) } else { target };
                files.links.insert(name, target);
            }
        }
        Ok(files)
    }

    fn blob(&self, name: &str) -> Option<Blob> {
        let mut name = name.trim_start_matches("./");
        for _ in 0..LINKS_MAX {
            if let Some((offset, bytes)) = self.plain.get(name) {
                return Some(Blob::file(&self.path, *offset, *bytes));
            }
            name = self.links.get(name)?;
        }
        None
    }
}

/// The name in the archive to which the link `name` with the target `target` leads.
fn beside(name: &str, target: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "" | "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_gzip(blob: &Blob) -> Result<bool, ImagesError> {
    let mut magic = Vec::new();
    let read = blob.reader()?.take(2).read_to_end(&mut magic);
    Ok(read.is_ok() && magic == [0x1f, 0x8b])
}
