//! Merkle proofs that a log contains an entry (RFC 9162, section 2.1), and the signed note with the log's root hash.

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::authority::Log;

/// Maximum number of hashes of a path, because a log's tree has fewer than 2^63 leaves.
pub(crate) const PATH_MAX: usize = 63;
/// Longest signed note, in bytes; usual notes have 300 bytes, and 200 more for each witness.
const NOTE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of signatures of one note that are checked.
const NOTE_SIGNATURES_MAX: usize = 16;
/// The prefix of each signature line in a note: an em dash and a space.
const SIGNATURE_MARK: &str = "\u{2014} ";
/// Length of the key hint in a note's signature.
const HINT_BYTES: usize = 4;

/// A path of hashes from an entry to the root of the log's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) index: u64,
    pub(crate) size: u64,
    pub(crate) root: [u8; 32],
    pub(crate) path: Vec<[u8; 32]>,
    /// The signed note with the tree's size and root hash.
    pub(crate) checkpoint: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Checkpoint {
    size: u64,
    root: [u8; 32],
}

impl Proof {
    pub(crate) fn check(&self, leaf: &[u8], log: &Log) -> Result<(), String> {
        let root = root_of(leaf, self.index, self.size, &self.path)
            .ok_or("the path of its inclusion proof does not fit the size of the log")?;
        if root != self.root {
            return Err("its inclusion proof does not lead to the root that it states".to_owned());
        }
        let stated = checkpoint(&self.checkpoint, log)?;
        if stated != (Checkpoint { size: self.size, root: self.root }) {
            return Err("the log's signed checkpoint states another root than the inclusion proof".to_owned());
        }
        Ok(())
    }
}

/// The root hash to which `path` leads from `leaf` (RFC 9162, section 2.1.3.2).
fn root_of(leaf: &[u8], index: u64, size: u64, path: &[[u8; 32]]) -> Option<[u8; 32]> {
    if index >= size {
        return None;
    }
    let (mut node, mut last) = (index, size - 1);
    let mut hash = hash_of(&[&[0], leaf]);
    for sibling in path {
        if last == 0 {
            return None;
        }
        if node & 1 == 1 || node == last {
            hash = hash_of(&[&[1], sibling, &hash]);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            hash = hash_of(&[&[1], &hash, sibling]);
        }
        node >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

fn hash_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// Parses a signed note (C2SP signed-note and tlog-checkpoint) with a signature of `log`. The hint of the signature is
/// the beginning of the log's id. The id is SHA-256 of the key for Rekor 1, and SHA-256 of name and key for Rekor 2.
fn checkpoint(note: &str, log: &Log) -> Result<Checkpoint, String> {
    let malformed = || "the log's checkpoint is not a signed note".to_owned();
    if note.len() > NOTE_BYTES_MAX {
        return Err(malformed());
    }
    let split = note.rfind("\n\n").ok_or_else(malformed)?;
    let (text, signatures) = (&note[..=split], &note[split + 2..]);
    let mut lines = text.lines();
    let (_origin, size, root) = (lines.next(), lines.next(), lines.next());
    let size = size.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let size = size.and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
    let root = root.and_then(|text| STANDARD.decode(text).ok()).ok_or_else(malformed)?;
    let root = root.try_into().map_err(|_| malformed())?;
    let signatures: Option<Vec<_>> = signatures.lines().map(signature).collect();
    let is_signed = signatures.ok_or_else(malformed)?.iter().take(NOTE_SIGNATURES_MAX).any(|bytes| {
        let (hint, bytes) = bytes.split_at(HINT_BYTES);
        log.id.starts_with(hint) && log.key.verifies(text.as_bytes(), bytes)
    });
    if is_signed {
        Ok(Checkpoint { size, root })
    } else {
        Err("the log's checkpoint is not signed by the log".to_owned())
    }
}

/// The key hint and the signature in a line of a note. Any other line makes the whole note invalid (C2SP signed-note),
/// whatever its signatures are.
fn signature(line: &str) -> Option<Vec<u8>> {
    let (_name, encoded) = line.strip_prefix(SIGNATURE_MARK)?.split_once(' ')?;
    STANDARD.decode(encoded).ok().filter(|bytes| bytes.len() > HINT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes a tree's root hash by its definition (RFC 9162, section 2.1.1), for comparison with the result of
    /// paths.
    fn tree(leaves: &[Vec<u8>]) -> [u8; 32] {
        match leaves {
            [one] => hash_of(&[&[0], one]),
            many => {
                let half = many.len().next_power_of_two() / 2;
                hash_of(&[&[1], &tree(&many[..half]), &tree(&many[half..])])
            }
        }
    }

    fn path(leaves: &[Vec<u8>], index: usize) -> Vec<[u8; 32]> {
        if leaves.len() == 1 {
            return Vec::new();
        }
        let half = leaves.len().next_power_of_two() / 2;
        let (mut below, beside) = if index < half {
            (path(&leaves[..half], index), tree(&leaves[half..]))
        } else {
            (path(&leaves[half..], index - half), tree(&leaves[..half]))
        };
        below.push(beside);
        below
    }

    #[test]
    fn every_leaf_of_every_small_tree_is_found_and_nothing_else_is() {
        for size in 1..20_usize {
            let leaves: Vec<Vec<u8>> = (0..size).map(|leaf| vec![u8::try_from(leaf).unwrap()]).collect();
            let root = tree(&leaves);
            for index in 0..size {
                let path = path(&leaves, index);
                let found = |leaf: &[u8], index: usize, size: usize, path: &[[u8; 32]]| {
                    root_of(leaf, index as u64, size as u64, path) == Some(root)
                };
                assert!(found(&leaves[index], index, size, &path), "{index} of {size}");
                assert!(!found(b"other", index, size, &path));
                assert!(!found(&leaves[index], index, size + 16, &path) || size > 16);
                // Indices beyond the end belong to no leaf.
                assert!((0..size + 40).filter(|other| *other != index).all(|other| !found(
                    &leaves[index],
                    other,
                    size,
                    &path
                )));
                let longer = [path.clone(), vec![[0; 32]]].concat();
                assert_eq!(root_of(&leaves[index], index as u64, size as u64, &longer), None);
                assert!(path.is_empty() || !found(&leaves[index], index, size, &path[1..]));
            }
        }
        assert_eq!(root_of(b"", 0, 0, &[]), None);
        assert_eq!(root_of(b"", u64::MAX - 1, u64::MAX, &[]), None);
    }
}
