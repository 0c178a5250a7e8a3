//! One version of one object: its identity, its JSON as shared bytes, and the few values that selectors need.
//!
//! Owns the layout of a watch line, `{"type":"ADDED","object":` + object + `}\n`, and how the line is stored: unpacked
//! as on the wire, or packed ([`super::cold`]). Callers read packed and unpacked lines in the same way. This module
//! must not know resources, nor when a version is packed.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use facts::{Change, Progress};
use parking_lot::RwLock;
use serde_json::Value;

use super::cold::{Dictionary, Packed};
use super::ordered::Ordered;
use super::{ObjectKey, ResourceId};

const TAIL: usize = 2; // `}` and the newline
/// A version is packed only if packing saves at least one byte in eight.
const PACKED_GAIN_MIN: usize = 8;
/// Limit of the scratch memory that a thread keeps after it serialised a large object.
const SCRATCH_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// A watch line is made in this buffer and copied once, to its exact size. If lines grew and shrank in their own
    /// allocations, memory would be fragmented, which costs more than the copy.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The facts of an object that has no labels, no selectable fields and no other facts; most objects share this value.
static NO_FACTS: LazyLock<Facts> = LazyLock::new(Facts::default);

/// Values that all versions of an object share.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    pub resource: ResourceId,
    /// The full name of the resource: `packages.longhaul.dev` or `pods`.
    pub resource_name: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

/// Values that are read from an object when it is written, so that sending its event parses no JSON.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the resource's selectable fields, in the order in which the resource lists them.
    pub fields: Box<[Box<str>]>,
    pub owners: Box<[Arc<str>]>,
    /// Whether the object is being deleted.
    pub finalizing: bool,
    /// The progress of the object's controller.
    pub progress: Progress,
}

/// One version of an object, serialised once.
#[derive(Debug)]
pub struct Version {
    pub identity: Arc<Identity>,
    /// `metadata.resourceVersion` of the object.
    pub revision: u64,
    facts: Option<Box<Facts>>,
    frame: RwLock<Frame>,
    frame_bytes: u32,
    head: u8,
}

/// The stored watch line of a version. The type is small because every object has a `Frame`. Unpacked lines are boxed,
/// because most lines are soon packed.
#[derive(Debug)]
enum Frame {
    Wire(Box<Bytes>),
    Packed(Packed),
}

/// The bytes of a watch line before the object.
#[inline]
pub fn head(change: Change) -> &'static [u8] {
    match change {
        Change::Added => br#"{"type":"ADDED","object":"#,
        Change::Modified => br#"{"type":"MODIFIED","object":"#,
        Change::Deleted => br#"{"type":"DELETED","object":"#,
    }
}

impl Identity {
    pub fn place(&self) -> ObjectKey {
        ObjectKey { resource: self.resource, namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl Version {
    /// Writes `revision` into `metadata.resourceVersion` and serialises the object inside its watch line.
    pub fn stamp(identity: Arc<Identity>, revision: u64, change: Change, value: &mut Value, facts: Facts) -> Self {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        }
        let head = head(change);
        let frame = SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            scratch.extend_from_slice(head);
            serde_json::to_writer(&mut *scratch, &Ordered(value))
                .expect("a JSON value with text keys always serialises into memory");
            scratch.extend_from_slice(b"}\n");
            let frame = Bytes::copy_from_slice(scratch);
            scratch.shrink_to(SCRATCH_KEPT_BYTES);
            frame
        });
        let frame_bytes = u32::try_from(frame.len()).expect("no object has 4 GiB");
        let head = u8::try_from(head.len()).expect("the longest head has 28 bytes");
        let facts = Some(facts).filter(|facts| *facts != *NO_FACTS).map(Box::new);
        Self { identity, revision, facts, frame: RwLock::new(Frame::Wire(Box::new(frame))), frame_bytes, head }
    }

    /// The values that were read from the object when it was written.
    #[inline]
    pub fn facts(&self) -> &Facts {
        self.facts.as_deref().unwrap_or_else(|| &NO_FACTS)
    }

    /// The object's JSON.
    pub fn object(&self) -> Bytes {
        self.frame().slice(self.object_range())
    }

    /// The whole watch line of the event that made this version.
    pub fn frame(&self) -> Bytes {
        match &*self.frame.read() {
            Frame::Wire(bytes) => Bytes::clone(bytes),
            Frame::Packed(packed) => Bytes::from(packed.unpack(self.frame_bytes())),
        }
    }

    /// Appends the whole watch line to `out`, for callers that join many lines.
    pub fn append_frame(&self, out: &mut Vec<u8>) {
        match &*self.frame.read() {
            Frame::Wire(bytes) => out.extend_from_slice(bytes),
            Frame::Packed(packed) => packed.append(self.frame_bytes(), out),
        }
    }

    /// Passes the object's JSON to `look`; an unpacked version is not copied.
    pub fn with_object<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        match &*self.frame.read() {
            Frame::Wire(bytes) => look(&bytes[self.object_range()]),
            Frame::Packed(packed) => SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                packed.append(self.frame_bytes(), scratch);
                let seen = look(&scratch[self.object_range()]);
                scratch.shrink_to(SCRATCH_KEPT_BYTES);
                seen
            }),
        }
    }

    /// The length of the unpacked watch line in bytes.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes as usize
    }

    /// Packs the watch line with `dictionary` and returns `true` if packing saves enough memory; else the line stays
    /// unpacked.
    pub fn pack(&self, dictionary: &Arc<Dictionary>) -> bool {
        let packed = match &*self.frame.read() {
            Frame::Wire(bytes) => Packed::new(bytes, dictionary),
            Frame::Packed(_) => return true,
        };
        let worth = packed.len() < self.frame_bytes() - self.frame_bytes() / PACKED_GAIN_MIN;
        if worth {
            *self.frame.write() = Frame::Packed(packed);
        }
        worth
    }

    #[cfg(test)]
    pub(crate) fn is_packed(&self) -> bool {
        matches!(&*self.frame.read(), Frame::Packed(_))
    }

    /// Parses the object's JSON; used only for writes and for rarely requested representations.
    pub fn value(&self) -> Value {
        self.with_object(|json| serde_json::from_slice(json).expect("the store serialised these bytes itself"))
    }

    fn object_range(&self) -> std::ops::Range<usize> {
        usize::from(self.head)..self.frame_bytes() - TAIL
    }

    #[inline]
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.facts().labels;
        labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|index| &*labels[index].1)
    }
}
