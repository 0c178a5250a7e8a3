//! A list as bytes, made piece by piece as it is read.
//!
//! Owns what stands round the items and between them. A list of a large store is hundreds of megabytes: a client that asks for it
//! and does not read it costs the versions' addresses and one piece, not the list.

use std::sync::Arc;

use bytes::Bytes;
use mock_store::Version;
use serde_json::{Value, json};

use super::{ListMeta, Renderer, Shape, TypeOfItem};
use crate::body::Body;

/// Made at a time. Lists up to this length are one piece, with their length in the head.
const PIECE_BYTES: usize = 256 << 10;

/// What is left of a list.
pub(crate) struct ListBody {
    renderer: Renderer,
    type_of_item: TypeOfItem,
    items: std::vec::IntoIter<Arc<Version>>,
    /// What the first piece begins with.
    head: Vec<u8>,
    /// An item was shown, so the next one stands behind a comma.
    comma: bool,
    end: Option<&'static [u8]>,
}

impl Renderer {
    /// A list of these items.
    pub fn list(self, items: Vec<Arc<Version>>, meta: &ListMeta) -> Body {
        let mut metadata = json!({"resourceVersion": meta.revision.to_string()});
        if self.resource.custom && self.shape == Shape::Object {
            // The real server's lists of custom resources always have one.
            metadata["continue"] = Value::from("");
        }
        if let Some(token) = &meta.continue_token {
            metadata["continue"] = Value::from(token.clone());
        }
        if let Some(remaining) = meta.remaining {
            metadata["remainingItemCount"] = Value::from(remaining);
        }
        let (api_version, kind) = match self.shape {
            Shape::Table => ("meta.k8s.io/v1", "Table"),
            Shape::Metadata => ("meta.k8s.io/v1", "PartialObjectMetadataList"),
            Shape::Object => (&*self.api_version, &*self.resource.list_kind),
        };
        let (head, end): (String, &'static [u8]) = match self.shape {
            // The rows come last: keys are serialised in the order of the alphabet.
            Shape::Table => (self.table(&[], &metadata).to_string(), b"]}"),
            // An empty list in Go that nobody made: the real server shows it so.
            Shape::Metadata if items.is_empty() => {
                let list = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": null});
                return Bytes::from(list.to_string()).into();
            }
            Shape::Metadata | Shape::Object => {
                let head = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata}).to_string();
                (format!("{},\"items\":[]}}", &head[..head.len() - 1]), b"]}\n")
            }
        };
        let head = head.strip_suffix("]}").unwrap_or(&head).as_bytes().to_vec();
        let size = items.iter().map(|version| version.frame_bytes()).sum::<usize>().saturating_add(head.len());
        let type_of_item = TypeOfItem::of(&self);
        let items = items.into_iter();
        let mut list = ListBody { renderer: self, type_of_item, items, head, comma: false, end: Some(end) };
        if size > PIECE_BYTES {
            return Body::List(Box::new(list));
        }
        let mut whole = Vec::with_capacity(size + end.len());
        while let Some(piece) = list.next() {
            whole.extend_from_slice(&piece);
        }
        Bytes::from(whole).into()
    }
}

impl ListBody {
    /// The next piece.
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
        Some(Bytes::from(out))
    }

    fn append(&self, version: &Version, out: &mut Vec<u8>) {
        let Self { renderer, type_of_item, .. } = self;
        if renderer.shape == Shape::Table {
            out.extend_from_slice(renderer.row(&version.value()).to_string().as_bytes());
        } else if renderer.is_plain() {
            version.with_object(|object| type_of_item.append_without(object, out));
        } else {
            type_of_item.append_without(&renderer.object(version), out);
        }
    }
}
