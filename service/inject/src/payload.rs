//! The payload: one compressed archive of images in a file. An index describes the chunks of the payload.
//!
//! Equal images give equal bytes, so that an interrupted transfer continues. The digest of every blob is checked while
//! the payload is written, so a damaged blob is found before the transfer and not in the cluster.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use serde_json::json;
use service_seed::digest::Digest;
use service_seed::index::{CHUNK_BYTES_MAX, CHUNKS_MAX, Chunk, FILES_MAX, INDEX_BYTES_MAX, Index, RUN_DIGITS};
use service_seed::{catalog::CATALOG_BYTES_MAX, index};
use sha2::{Digest as _, Sha256};

use super::images::{Images, ImagesError};

/// Smallest chunk size in bytes, because smaller objects would cost a cluster more than the bytes they contain.
const CHUNK_BYTES_LEAST: u32 = 4 << 10;
/// Number of chunks in one folder of the Pod, which is one projected volume. A kubelet holds the content of a volume in
/// memory while it writes the volume.
pub const GROUP: u32 = 32;
/// The window of the compression as a power of two, which decides how much memory the injected program needs. Images
/// are already compressed, so a larger window gains nothing.
const WINDOW_LOG: u32 = 18;
/// The level of the compression: zstd's default.
const LEVEL: i32 = 3;
const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error("the payload's file: {0}")]
    File(#[from] io::Error),
    #[error("sha256:{digest}: its bytes have the digest {found}")]
    Blob { digest: Digest, found: Digest },
    #[error("chunks have {CHUNK_BYTES_LEAST} to {CHUNK_BYTES_MAX} bytes, not {0}, because of the limit of a ConfigMap")]
    ChunkBytes(u32),
    #[error(
        "{chunks} chunks of {chunk_bytes} bytes are too many: an index describes {CHUNKS_MAX}, so take larger chunks (up to {CHUNK_BYTES_MAX} bytes) or fewer images"
    )]
    Chunks { chunks: u64, chunk_bytes: u32 },
    #[error("{what} of {most} is exceeded: take fewer images")]
    Bound { what: &'static str, most: usize },
}

#[derive(Debug)]
pub struct Payload {
    file: File,
    pub index: Index,
    /// Number of bytes of all files in the archive, uncompressed.
    pub unpacked_bytes: u64,
}

impl Payload {
    /// Packs `images` into an unnamed file in `folder`.
    pub fn pack(images: &Images, chunk_bytes: u32, folder: &Path) -> Result<Self, PayloadError> {
        if !(CHUNK_BYTES_LEAST..=CHUNK_BYTES_MAX).contains(&chunk_bytes) {
            return Err(PayloadError::ChunkBytes(chunk_bytes));
        }
        let file = tempfile::tempfile_in(folder)?;
        let cutter = Cutter::new(BufWriter::with_capacity(BUFFER_BYTES, file), chunk_bytes);
        let mut encoder = zstd::Encoder::new(cutter, LEVEL)?;
        encoder.window_log(WINDOW_LOG)?;
        // Every chunk and the whole have a stronger digest.
        encoder.include_checksum(false)?;
        let mut archive = Archive { out: encoder, files: 0, bytes: 0 };
        archive.images(images)?;
        let Archive { mut out, files, bytes } = archive;
        out.write_all(&[0; 1024])?;
        let (writer, chunks, whole) = out.finish()?.end();
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        let payload_bytes: u64 = chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum();
        if chunks.len() > CHUNKS_MAX {
            return Err(PayloadError::Chunks { chunks: chunks.len() as u64, chunk_bytes });
        }
        let mut index = Index {
            run: "0".repeat(RUN_DIGITS),
            payload_bytes,
            payload_digest: whole,
            unpacked_bytes: bytes,
            files,
            window_bytes: 1 << WINDOW_LOG,
            group: GROUP,
            chunks,
        };
        // Another payload, or the same one in other chunks, is another run.
        let digest = Digest::of(index.to_text().as_bytes()).to_string();
        digest[..RUN_DIGITS].clone_into(&mut index.run);
        if index.to_text().len() > INDEX_BYTES_MAX {
            return Err(PayloadError::Chunks { chunks: index.chunks.len() as u64, chunk_bytes });
        }
        Ok(Self { file, index, unpacked_bytes: bytes })
    }

    /// The bytes of the chunk at position `place`.
    pub fn chunk(&self, place: usize) -> io::Result<Vec<u8>> {
        let chunk = self.index.chunks[place];
        // All chunks but the last are of one size.
        let offset = place as u64 * u64::from(self.index.chunks[0].bytes);
        let mut bytes = vec![0; chunk.bytes as usize];
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut bytes, offset)?;
        Ok(bytes)
    }
}

struct Archive<W: Write> {
    out: W,
    files: u32,
    bytes: u64,
}

impl<W: Write> Archive<W> {
    fn images(&mut self, images: &Images) -> Result<(), PayloadError> {
        let catalog = images.catalog.to_text();
        if catalog.len() > CATALOG_BYTES_MAX {
            return Err(PayloadError::Bound { what: "a catalog", most: CATALOG_BYTES_MAX });
        }
        self.small("catalog", catalog.as_bytes())?;
        self.small("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        self.small("index.json", layout_index(images).as_bytes())?;
        for subject in images.referrers.keys() {
            self.small(&format!("referrers/sha256/{subject}"), images.referrers_list(subject).as_bytes())?;
        }
        for (digest, blob) in &images.blobs {
            let mut hashed = Hashed { inner: blob.reader()?, hasher: Sha256::new() };
            self.file(&format!("blobs/sha256/{digest}"), blob.bytes, &mut hashed)?;
            let found = Digest::from(hashed.hasher);
            if found != *digest {
                return Err(PayloadError::Blob { digest: *digest, found });
            }
        }
        if self.files > FILES_MAX {
            return Err(PayloadError::Bound { what: "a number of files", most: FILES_MAX as usize });
        }
        if self.bytes > index::UNPACKED_BYTES_MAX {
            return Err(PayloadError::Bound {
                what: "a number of bytes",
                most: usize::try_from(index::UNPACKED_BYTES_MAX).unwrap_or(usize::MAX),
            });
        }
        Ok(())
    }

    fn small(&mut self, name: &str, content: &[u8]) -> Result<(), PayloadError> {
        self.file(name, content.len() as u64, &mut &content[..])
    }

    /// Writes the archive entry of a file without owner and time, so that equal content gives equal bytes.
    fn file(&mut self, name: &str, bytes: u64, content: &mut dyn Read) -> Result<(), PayloadError> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_size(bytes);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_cksum();
        self.out.write_all(header.as_bytes())?;
        let copied = io::copy(&mut content.take(bytes), &mut self.out)?;
        if copied != bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} became shorter")).into());
        }
        let padding = usize::try_from(bytes.wrapping_neg() % 512).unwrap_or(0);
        self.out.write_all(&[0; 512][..padding])?;
        self.files += 1;
        self.bytes += bytes;
        Ok(())
    }
}

/// The `index.json` of the payload, which makes it an OCI layout for other tools.
fn layout_index(images: &Images) -> String {
    let mut manifests = Vec::new();
    for (name, repository) in &images.catalog.repositories {
        for (tag, digest) in &repository.tags {
            let Some(manifest) = images.catalog.manifests.get(digest) else { continue };
            manifests.push(json!({
                "mediaType": manifest.media_type, "digest": format!("sha256:{digest}"), "size": manifest.bytes,
                "annotations": {"org.opencontainers.image.ref.name": format!("{name}:{tag}")},
            }));
        }
    }
    let media_type = "application/vnd.oci.image.index.v1+json";
    json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests}).to_string()
}

struct Hashed<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(target)?;
        self.hasher.update(&target[..read]);
        Ok(read)
    }
}

/// A writer that passes bytes on, and hashes the whole payload and each chunk.
struct Cutter<W> {
    out: W,
    chunk_bytes: u32,
    whole: Sha256,
    current: Sha256,
    at: u32,
    chunks: Vec<Chunk>,
}

impl<W: Write> Cutter<W> {
    fn new(out: W, chunk_bytes: u32) -> Self {
        Self { out, chunk_bytes, whole: Sha256::new(), current: Sha256::new(), at: 0, chunks: Vec::new() }
    }

    fn cut(&mut self) {
        let number = u32::try_from(self.chunks.len()).unwrap_or(u32::MAX);
        let digest = Digest::from(std::mem::take(&mut self.current));
        self.chunks.push(Chunk { number, bytes: self.at, digest });
        self.at = 0;
    }

    fn end(mut self) -> (W, Vec<Chunk>, Digest) {
        if self.at > 0 {
            self.cut();
        }
        (self.out, self.chunks, Digest::from(self.whole))
    }
}

impl<W: Write> Write for Cutter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = (self.chunk_bytes - self.at) as usize;
        let written = self.out.write(&bytes[..bytes.len().min(left)])?;
        let part = &bytes[..written];
        self.whole.update(part);
        self.current.update(part);
        self.at += u32::try_from(written).unwrap_or(0);
        if self.at == self.chunk_bytes {
            self.cut();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
