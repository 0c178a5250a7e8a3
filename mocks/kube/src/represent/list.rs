//! A list as bytes, encoded piece by piece while the client reads it.
//!
//! Owns the bytes around and between the items. A list of a large store has hundreds of megabytes. If a client requests
//! such a list and does not read the answer, memory contains only pointers to the versions and one encoded piece.

use std::sync::Arc;

use bytes::Bytes;
use mock_store::Version;
use mock_store::ordered::Ordered;
use serde_json::{Value, json};

use super::{ListMeta, Renderer, Shape, TypeOfItem};
use crate::audit::UserAudit;
use crate::pretty::Indenter;

/// Number of bytes that are encoded at a time. A list up to this length is one piece, and the answer then has a
/// `Content-Length`.
const PIECE_BYTES: usize = 256 << 10;

/// A list in an answer: encoded at once if it is short, else piece by piece.
pub(crate) enum List {
    Whole(Bytes),
    Pieces(Box<ListBody>),
}

/// The part of a list that is not encoded yet.
pub(crate) struct ListBody {
    renderer: Renderer,
    type_of_item: TypeOfItem,
    items: std::vec::IntoIter<Arc<Version>>,
    /// The bytes of the list before its first item.
    head: Vec<u8>,
    /// Whether the next item needs a comma before it.
    comma: bool,
    end: Option<&'static [u8]>,
    indenter: Option<Indenter>,
    /// The audit that counts the bytes of this list for its user; none if the bytes are not counted.
    counter: Option<Arc<UserAudit>>,
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&Ordered(value).to_bytes()).into_owned()
}

impl Renderer {
    pub fn list(self, items: Vec<Arc<Version>>, meta: &ListMeta) -> List {
        let mut metadata = json!({"resourceVersion": meta.revision.to_string()});
        if self.resource.custom && self.shape == Shape::Object {
            // The real server's lists of custom resources always have `continue`.
            metadata["continue"] = Value::from("");
        }
        if let Some(token) = &meta.continue_token {
            metadata["continue"] = Value::from(token.clone());
        }
        if let Some(remaining) = meta.remaining {
            metadata["remainingItemCount"] = Value::from(remaining);
        }
        let (api_version, kind) = match self.shape {
            Shape::Table(version) => (version, "Table"),
            Shape::Metadata(version) => (version, "PartialObjectMetadataList"),
            Shape::Object => (&*self.api_version, &*self.resource.list_kind),
        };
        let (head, end): (String, &'static [u8]) = match self.shape {
            // The rows come last in the order of keys.
            Shape::Table(_) => (text(&self.table(&[], &metadata)), b"]}"),
            // Go shows a nil list as `null`, and the real server does not initialize this one.
            Shape::Metadata(_) if items.is_empty() => {
                let list = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": null});
                return List::Whole(Bytes::from(text(&list)));
            }
            Shape::Metadata(_) | Shape::Object => {
                let head = text(&json!({"kind": kind, "apiVersion": api_version, "metadata": metadata}));
                (format!("{},\"items\":[]}}", &head[..head.len() - 1]), b"]}\n")
            }
        };
        let head = head.strip_suffix("]}").unwrap_or(&head).as_bytes().to_vec();
        let size = items.iter().map(|version| version.frame_bytes()).sum::<usize>().saturating_add(head.len());
        let type_of_item = TypeOfItem::of(&self);
        let items = items.into_iter();
        let (comma, end) = (false, Some(end));
        let mut list =
            ListBody { renderer: self, type_of_item, items, head, comma, end, indenter: None, counter: None };
        if size > PIECE_BYTES {
            return List::Pieces(Box::new(list));
        }
        let mut whole = Vec::with_capacity(size + 3);
        while let Some(piece) = list.next() {
            whole.extend_from_slice(&piece);
        }
        List::Whole(Bytes::from(whole))
    }
}

impl List {
    /// Counts the bytes of this list for a user, now or while the list is encoded.
    pub fn counted(mut self, audit: &Arc<UserAudit>) -> Self {
        match &mut self {
            Self::Whole(bytes) => audit.list_encoded(bytes.len()),
            Self::Pieces(list) => list.counter = Some(audit.clone()),
        }
        self
    }
}

impl ListBody {
    pub fn indent(&mut self) {
        self.indenter = Some(Indenter::default());
    }

    pub fn next(&mut self) -> Option<Bytes> {
        let end = self.end?;
        let mut out = std::mem::take(&mut self.head);
        while out.len() < PIECE_BYTES {
            let Some(version) = self.items.next() else {
                out.extend_from_slice(end);
                self.end = None;
                break;
            };
            if std::mem::replace(&mut self.comma, true) {
                out.push(b',');
            }
            self.append(&version, &mut out);
        }
        if let Some(audit) = &self.counter {
            audit.list_encoded(out.len());
        }
        let indented = self.indenter.as_mut().map(|indenter| indenter.push(&out));
        Some(Bytes::from(indented.unwrap_or(out)))
    }

    fn append(&self, version: &Version, out: &mut Vec<u8>) {
        let Self { renderer, type_of_item, .. } = self;
        if matches!(renderer.shape, Shape::Table(_)) {
            out.extend_from_slice(renderer.row(&version.value()).to_string().as_bytes());
        } else if renderer.is_plain() {
            version.with_object(|object| type_of_item.append_without(object, out));
        } else {
            type_of_item.append_without(&renderer.object(version), out);
        }
    }
}
