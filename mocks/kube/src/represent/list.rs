//! A list as bytes, encoded piece by piece as it is read.
//!
//! Owns the bytes around and between the items. A list of a large store is hundreds of megabytes. For a client that
//! requests it and does not read it, memory holds the addresses of the versions and one piece, not the whole list.

use std::sync::Arc;

use bytes::Bytes;
use mock_store::Version;
use mock_store::ordered::Ordered;
use serde_json::{Value, json};

use super::{ListMeta, Renderer, Shape, TypeOfItem};
use crate::pretty::Indenter;

/// Bytes encoded at a time. Lists up to this length are one piece, with their length in the head.
const PIECE_BYTES: usize = 256 << 10;

/// A list; a short one is already whole.
pub(crate) enum List {
    Whole(Bytes),
    Pieces(Box<ListBody>),
}

/// The rest of a list.
pub(crate) struct ListBody {
    renderer: Renderer,
    type_of_item: TypeOfItem,
    items: std::vec::IntoIter<Arc<Version>>,
    /// The beginning of the first piece.
    head: Vec<u8>,
    /// Whether an item was written, so that the next one needs a comma.
    comma: bool,
    end: Option<&'static [u8]>,
    indenter: Option<Indenter>,
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
        let (comma, end, indenter) = (false, Some(end), None);
        let mut list = ListBody { renderer: self, type_of_item, items, head, comma, end, indenter };
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

impl ListBody {
    /// Indents the list for people.
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
