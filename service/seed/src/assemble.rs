//! From chunks to a folder that may be served: the pipeline, and the folder's name as the mark that all is verified.
//!
//! Three threads hand a few buffers on: one reads and verifies chunks, one hashes the whole, one decompresses and unpacks. Nothing is
//! unpacked before its chunk is verified, and the folder gets the name that is served only after the whole is.
//!
//! Three fifths of the work are SHA-256, of each chunk and of the whole, at one time on two cores. With two buffers the threads waited for
//! each other: 200 MB came at 850 MB/s instead of 960.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sha2::{Digest as _, Sha256};

use crate::args::Args;
use crate::catalog::Catalog;
use crate::chunks::Chunks;
use crate::digest::Digest;
use crate::failure::Failure;
use crate::index::{INDEX_BYTES_MAX, Index};
use crate::unpack::{Bounds, unpack};

/// Where the payload is unpacked.
const ASSEMBLING: &str = "assembling";
/// Name of the folder once the whole is verified.
const VERIFIED: &str = "verified";
/// Chunks in memory: at least one that is read while the other is used, and as many more as these bytes hold.
const BUFFERED_BYTES: usize = 7 << 19;
const BUFFERS_MIN: usize = 2;
/// Small chunks gain nothing from more.
const BUFFERS_MAX: usize = 8;
/// Stack of the thread that unpacks: its buffers are on the heap, the decompressor's tables are not large.
const STACK_BYTES: usize = 256 << 10;

/// The content that is served.
#[derive(Debug)]
pub struct Store {
    pub folder: PathBuf,
    /// Its names and manifests.
    pub catalog: Catalog,
}

/// A chunk on its way.
type Bytes = Arc<Vec<u8>>;

/// Reads index and chunks, verifies, unpacks.
pub fn assemble(args: &Args) -> Result<Store, Failure> {
    let index = index(args)?;
    let (assembling, verified) = (args.out.join(ASSEMBLING), args.out.join(VERIFIED));
    for folder in [&assembling, &verified] {
        // Left by a container that was ended before.
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Failure::file(folder, error)),
            _ => {}
        }
    }
    fs::create_dir(&assembling).map_err(|error| Failure::file(&assembling, error))?;
    let catalog = run(&index, &args.chunks, &assembling);
    let catalog = catalog.inspect_err(|_| {
        // What was unpacked so far is of no use to anybody; that it goes is not worth an error of its own.
        let _ = fs::remove_dir_all(&assembling);
    })?;
    fs::rename(&assembling, &verified).map_err(|error| Failure::file(&verified, error))?;
    eprintln!(
        "longhaul-seed: run {}: {} chunks, {} bytes verified",
        index.run,
        index.chunks.len(),
        index.payload_bytes
    );
    Ok(Store { folder: verified, catalog })
}

/// Reads the index and compares it with the digest that was announced.
fn index(args: &Args) -> Result<Index, Failure> {
    let file = fs::File::open(&args.index).map_err(|error| Failure::file(&args.index, error))?;
    let mut bytes = Vec::new();
    file.take(INDEX_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| Failure::file(&args.index, error))?;
    let (expected, found) = (args.index_sha256, Digest::of(&bytes));
    if found != expected {
        return Err(Failure::IndexDigest { expected, found });
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Failure::Index { line: 1, what: "not text" })?;
    Index::parse(text)
}

fn run(index: &Index, chunks: &Path, folder: &Path) -> Result<Catalog, Failure> {
    let bounds = Bounds { bytes: index.unpacked_bytes, files: index.files, window_bytes: index.window_bytes };
    let largest = index.chunks.iter().map(|chunk| chunk.bytes as usize).max().unwrap_or(1).max(1);
    let buffers = (BUFFERED_BYTES / largest).clamp(BUFFERS_MIN, BUFFERS_MAX);
    // One is read, one is used, all others may wait.
    let waiting = buffers - BUFFERS_MIN;
    let (to_hash, hashed) = sync_channel::<Bytes>(waiting);
    let (to_unpack, unpacked) = sync_channel::<Bytes>(waiting);
    thread::scope(|scope| {
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        let system = |source| Failure::System { what: "a thread cannot be started".to_owned(), source };
        let whole = spawn("whole").spawn_scoped(scope, move || whole(&hashed)).map_err(system)?;
        let unpacking = spawn("unpack")
            .spawn_scoped(scope, move || unpack(Source::new(unpacked), folder, bounds))
            .map_err(system)?;
        let fed = feed(&Chunks::new(index, chunks), buffers, to_hash, to_unpack);
        let found = whole.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let catalog = unpacking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // What is wrong with a chunk explains whatever else went wrong.
        fed?;
        let catalog = catalog?;
        let expected = index.payload_digest;
        if found == expected { Ok(catalog) } else { Err(Failure::Whole { expected, found }) }
    })
}

/// Reads chunk after chunk and hands each on. Ends early without an error when somebody takes no more: they say why.
#[expect(clippy::needless_pass_by_value, reason = "the takers end when nobody can hand them anything")]
fn feed(
    chunks: &Chunks<'_>,
    buffers: usize,
    to_hash: SyncSender<Bytes>,
    to_unpack: SyncSender<Bytes>,
) -> Result<(), Failure> {
    let mut buffers: Vec<Bytes> = (0..buffers).map(|_| Arc::default()).collect();
    let count = buffers.len();
    for place in 0..chunks.count() {
        let buffer = &mut buffers[place % count];
        // Whoever could take the chunk before this one has let go of the one that was here: no more than all others can wait.
        if let Some(bytes) = Arc::get_mut(buffer) {
            chunks.read(place, bytes)?;
        } else {
            let mut bytes = Vec::new();
            chunks.read(place, &mut bytes)?;
            *buffer = Arc::new(bytes);
        }
        // Hashing trusts nothing, so both digests are made at the same time.
        let hashing = to_hash.send(Arc::clone(buffer));
        chunks.verify(place, buffer)?;
        if hashing.is_err() || to_unpack.send(Arc::clone(buffer)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The digest of everything that comes.
fn whole(chunks: &Receiver<Bytes>) -> Digest {
    let mut hasher = Sha256::new();
    for chunk in chunks {
        hasher.update(&chunk[..]);
    }
    hasher.into()
}

/// The payload as one stream.
struct Source {
    chunks: Receiver<Bytes>,
    current: Bytes,
    at: usize,
}

impl Source {
    fn new(chunks: Receiver<Bytes>) -> Self {
        Self { chunks, current: Arc::default(), at: 0 }
    }
}

impl Read for Source {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            // Let go first, so that the buffer can be filled again.
            self.current = Arc::default();
            self.at = 0;
            match self.chunks.recv() {
                Ok(next) => self.current = next,
                Err(_) => return Ok(0),
            }
        }
        let most = target.len().min(self.current.len() - self.at);
        target[..most].copy_from_slice(&self.current[self.at..self.at + most]);
        self.at += most;
        Ok(most)
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers of the tests")]
mod tests;
