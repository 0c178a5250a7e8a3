//! Compression of object versions that have not been written for a while.
//!
//! Owns the compressed format, an LZ4 block with a dictionary, and the choice of the dictionary: a few objects of the
//! same resource. Objects of one resource share most of their content: keys, owners of fields, namespaces. Unpacking a
//! version costs less than copying it over a socket. This module must not decide when to pack a version.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use lz4_flex::block;

/// Smallest dictionary in bytes: room for the common content of a few sorts of objects. A dictionary is small because
/// packing a version searches all of it.
const DICTIONARY_MIN_BYTES: usize = 6 * 1024;
/// Largest dictionary in bytes, even if its first objects are larger.
const DICTIONARY_MAX_BYTES: usize = 32 * 1024;
/// If packing saves too little for this many versions in a row, a new dictionary is made, because the objects have
/// changed.
const POOR_MAX: u32 = 64;

/// Limit of the scratch memory that a thread keeps after it packed a large object.
const SCRATCH_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// A block is made in this buffer and copied once, to its exact size. If a block were made in its own allocation
    /// and then shrunk, memory would be fragmented.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Content that the packed versions of one resource share.
pub struct Dictionary(Box<[u8]>);

/// The packed watch line of one version.
pub(super) struct Packed {
    block: Box<[u8]>,
    dictionary: Arc<Dictionary>,
}

/// The dictionary of one resource, either being gathered from objects or complete.
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
    /// The dictionary for packing a version. While the dictionary is being gathered, returns `None` and adds the
    /// version's watch line to it through `append`.
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

    /// Counts versions for which packing did not save enough memory; after [`POOR_MAX`] in a row, a new dictionary
    /// begins.
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

    /// Unpacks the watch line, which has `frame_bytes` bytes, and appends it to `out`.
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
