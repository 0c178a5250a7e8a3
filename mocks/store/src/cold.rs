//! Packed versions of objects that have not been written for a while.
//!
//! Owns the format (an LZ4 block against a dictionary) and the choice of the dictionary: a few objects of the same
//! resource, because the common content of a resource's objects (keys, owners of fields, namespaces) is most of their
//! content. Unpacking costs less than copying the result over a socket. It must not decide when to pack.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use lz4_flex::block;

/// Enough for the common content of a few kinds of objects of one resource; each packing searches all of it.
const DICTIONARY_MIN_BYTES: usize = 6 * 1024;
/// Largest dictionary, however large its objects are.
const DICTIONARY_MAX_BYTES: usize = 32 * 1024;
/// Consecutive versions that were not worth packing before the dictionary is made anew: the objects have changed.
const POOR_MAX: u32 = 64;

/// Most scratch memory that is kept after a large object.
const SCRATCH_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// Blocks are made here and copied once, to their exact size: shrinking a block in its own allocation leaves a gap
    /// behind it.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The common content of the packed versions of one resource.
pub struct Dictionary(Box<[u8]>);

/// One packed watch line.
pub(super) struct Packed {
    block: Box<[u8]>,
    dictionary: Arc<Dictionary>,
}

/// The dictionary of one resource, either being gathered or complete.
#[derive(Debug)]
pub(super) enum Vocabulary {
    Gathering(Vec<u8>),
    Made { dictionary: Arc<Dictionary>, poor: u32 },
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::Gathering(Vec::new())
    }
}

impl Vocabulary {
    /// The dictionary for a version. `None` while it is still being gathered; the frame that `append` adds then becomes
    /// a part of it.
    pub(crate) fn dictionary(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> Option<Arc<Dictionary>> {
        match self {
            Self::Made { dictionary, .. } => Some(dictionary.clone()),
            Self::Gathering(text) => {
                append(text);
                if text.len() >= DICTIONARY_MIN_BYTES {
                    text.truncate(DICTIONARY_MAX_BYTES);
                    let dictionary = Arc::new(Dictionary(std::mem::take(text).into()));
                    *self = Self::Made { dictionary, poor: 0 };
                }
                None
            }
        }
    }

    /// Notes whether a version was worth packing.
    pub(crate) fn judge(&mut self, worth: bool) {
        let Self::Made { poor, .. } = self else { return };
        *poor = if worth { 0 } else { *poor + 1 };
        if *poor > POOR_MAX {
            *self = Self::default();
        }
    }
}

impl Packed {
    pub(crate) fn new(frame: &[u8], dictionary: &Arc<Dictionary>) -> Self {
        let block = SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(block::get_maximum_output_size(frame.len()), 0);
            let packed = block::compress_into_with_dict(frame, scratch, &dictionary.0);
            let length = packed.expect("the scratch has room for what cannot be packed at all");
            let block = Box::from(&scratch[..length]);
            scratch.truncate(SCRATCH_KEPT_BYTES);
            scratch.shrink_to(SCRATCH_KEPT_BYTES);
            block
        });
        Self { block, dictionary: dictionary.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.block.len()
    }

    pub(crate) fn unpack(&self, frame_bytes: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(frame_bytes);
        self.append(frame_bytes, &mut frame);
        frame
    }

    /// Appends the frame, whose length is `frame_bytes`.
    pub(crate) fn append(&self, frame_bytes: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + frame_bytes, 0);
        let unpacked = block::decompress_into_with_dict(&self.block, &mut out[start..], &self.dictionary.0);
        assert_eq!(unpacked.ok(), Some(frame_bytes), "these bytes were packed here and never left the process");
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({} bytes)", self.0.len())
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} bytes)", self.block.len())
    }
}

#[cfg(test)]
mod tests;
