//! Planted bugs of the injected program, compiled only with the feature `planted-bugs`.
//!
//! A planted bug changes the program's input so that the program behaves wrongly.

use std::fs;
use std::path::Path;

use crate::args::Args;
use crate::digest::Digest;
use crate::failure::Failure;
use crate::index::Index;

/// A bug: the digests of every second chunk and of the whole payload are not compared.
const SKIPS_A_CHECKSUM: &str = "skips-a-checksum";

/// The arguments that replace `args` so that the named bug occurs.
pub fn planted(name: &str, args: Args) -> Result<Args, Failure> {
    match name {
        SKIPS_A_CHECKSUM => believing(args),
        _ => Err(Failure::Usage(format!("no planted bug `{name}`: use one of {SKIPS_A_CHECKSUM}"))),
    }
}

/// Replaces the digests of every second chunk and of the whole payload in the index with the real digests. The digest
/// of the index itself is checked before this change.
fn believing(args: Args) -> Result<Args, Failure> {
    let text = read(&args.index)?;
    let (expected, found) = (args.index_sha256, Digest::of(&text));
    if found != expected {
        return Err(Failure::IndexDigest { expected, found });
    }
    let mut index = Index::parse(&String::from_utf8_lossy(&text))?;
    let mut payload = Vec::new();
    for place in 0..index.chunks.len() {
        let chunk = read(&args.chunks.join(index.folder(place)).join(index.chunks[place].name()))?;
        if index.chunks[place].number % 2 == 1 {
            index.chunks[place].digest = Digest::of(&chunk);
        }
        payload.extend(chunk);
    }
    index.payload_digest = Digest::of(&payload);
    let (text, path) = (index.to_text(), args.out.join("believed"));
    fs::write(&path, &text).map_err(|error| Failure::file(&path, error))?;
    Ok(Args { index: path, index_sha256: Digest::of(text.as_bytes()), ..args })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::file(path, error))
}
