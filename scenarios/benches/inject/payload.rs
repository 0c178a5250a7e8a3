//! Makes a payload for the injected program, in the folder layout that a kubelet mounts, without cluster and injector.
//!
//! The payload has the archive format, compression and chunk size of the injector. The blobs cannot be compressed,
//! because layers of images are compressed already.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

/// The injector's default chunk size.
const CHUNK_BYTES: usize = 512 << 10;
/// Number of chunks per projected volume, as in the injector.
const GROUP: usize = 32;
/// Logarithm to base 2 of the zstd compressor's window size.
const WINDOW_LOG: u32 = 18;
const LEVEL: i32 = 3;
/// Size of one layer in bytes.
const BLOB_BYTES: usize = 32_000_000;
/// The name that a kubelet's atomic writer gives to the folder with a volume's files.
const VERSION: &str = "..2024_01_01_00_00_00.000000001";

/// A folder with the chunks and their index.
pub(crate) struct Payload {
    folder: tempfile::TempDir,
    pub(crate) index_sha256: String,
    /// Size of all chunks together, in bytes.
    pub(crate) bytes: u64,
}

impl Payload {
    /// Creates a payload of `megabytes` and writes it into the folders that a kubelet would mount.
    pub(crate) fn mount(megabytes: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let chunks = folder.path().join("chunks");
        let cutter = Cutter {
            chunks,
            bytes: Vec::with_capacity(CHUNK_BYTES),
            lines: String::new(),
            whole: Sha256::new(),
            count: 0,
            total: 0,
        };
        let mut encoder = zstd::Encoder::new(BufWriter::with_capacity(CHUNK_BYTES, cutter), LEVEL)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.include_checksum(false)?;
        let mut archive = tar::Builder::new(encoder);
        let (mut files, mut unpacked) = (0, 0);
        let mut put = |name: &str, bytes: &[u8]| -> Result<()> {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, bytes)?;
            (files, unpacked) = (files + 1, unpacked + bytes.len());
            Ok(())
        };
        put("catalog", b"longhaul-catalog 1\nrepository a\n")?;
        let mut left = megabytes * 1_000_000;
        while left > 0 {
            let blob = noise(left.min(BLOB_BYTES), left as u64);
            put(&format!("blobs/sha256/{}", hex::encode(Sha256::digest(&blob))), &blob)?;
            left -= blob.len();
        }
        let writer = archive.into_inner()?.finish()?;
        let cutter = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let (lines, count, bytes, whole) = cutter.end()?;
        let index = format!(
            "longhaul-seed-index 1\nrun {}\npayload {bytes} {whole}\nunpacked {unpacked} {files}\nwindow {}\ngroup {GROUP}\nchunks {count}\n{lines}",
            "0".repeat(16),
            1 << WINDOW_LOG
        );
        std::fs::write(folder.path().join("index"), &index)?;
        Ok(Self { folder, index_sha256: hex::encode(Sha256::digest(&index)), bytes })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Cuts the compressed stream into chunks and writes the chunks into the folders of volumes.
struct Cutter {
    chunks: PathBuf,
    bytes: Vec<u8>,
    lines: String,
    whole: Sha256,
    count: usize,
    total: u64,
}

impl Cutter {
    fn cut(&mut self) -> std::io::Result<()> {
        let (name, volume) = (format!("{:05}", self.count), self.chunks.join(format!("{:05}", self.count / GROUP)));
        if self.count.is_multiple_of(GROUP) {
            std::fs::create_dir_all(volume.join(VERSION))?;
            symlink(VERSION, volume.join("..data"))?;
        }
        std::fs::write(volume.join(VERSION).join(&name), &self.bytes)?;
        symlink(Path::new("..data").join(&name), volume.join(&name))?;
        self.whole.update(&self.bytes);
        let _ = writeln!(self.lines, "{name} {} {}", self.bytes.len(), hex::encode(Sha256::digest(&self.bytes)));
        self.total += self.bytes.len() as u64;
        self.count += 1;
        self.bytes.clear();
        Ok(())
    }

    fn end(mut self) -> Result<(String, usize, u64, String)> {
        if !self.bytes.is_empty() {
            self.cut().context("the last chunk")?;
        }
        Ok((self.lines, self.count, self.total, hex::encode(self.whole.finalize())))
    }
}

impl Write for Cutter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let most = bytes.len().min(CHUNK_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..most]);
        if self.bytes.len() == CHUNK_BYTES {
            self.cut()?;
        }
        Ok(most)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Incompressible bytes, generated from `seed` with xorshift64*.
pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        noise.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}
