//! Collects the pages of a list into one snapshot.
//!
//! All pages of a list must have the same version. If a page has another version, the server has mixed two snapshots,
//! and the list is discarded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::frame::Frame;
use crate::items::{Items, ItemsError};
use crate::object::{Key, Kind, Object, Package, RawObject};
use crate::store::Store;

/// A snapshot of all objects. [`PageStep::Complete`] means that the snapshot is complete.
#[derive(Debug)]
pub struct Listing<K = Package> {
    pub items: BTreeMap<Key, Arc<Object<K>>>,
    /// `metadata.resourceVersion` of the list.
    pub version: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStep {
    More(String),
    /// The page was the last page of the list.
    Complete,
}

/// The effect of a line on a streamed list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streamed {
    More,
    Complete,
    /// The server has not reached the requested resource version.
    Ahead,
    /// The list must be discarded; the text is the reason.
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("not a list: {0}")]
    Json(#[from] serde_json::Error),
    #[error("not a list: {0}")]
    Items(#[from] ItemsError),
    /// An item or the list lacks its identifying fields.
    #[error("a list or item without uid, name or resourceVersion")]
    Identity,
    #[error("one list, two versions: {first} and {second}")]
    Mixed { first: Box<str>, second: Box<str> },
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(borrow)]
    metadata: RawListMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListMeta<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(rename = "continue", default)]
    token: Option<String>,
}

/// A page of a list that is being read. The page's items are added as they arrive; if the page ends early, the list is
/// discarded.
#[derive(Debug, Default)]
pub struct ListPage {
    items: Items,
}

impl ListPage {
    /// Adds the items in a piece of the page to `listing`. Objects that `store` already has are shared instead of
    /// copied.
    pub fn piece<K: Kind>(
        &mut self,
        piece: &[u8],
        listing: &mut Listing<K>,
        store: &Store<K>,
    ) -> Result<(), PageError> {
        self.items.push(piece, |item| {
            let raw: RawObject<'_> = serde_json::from_slice(item)?;
            if !raw.is_identified() {
                return Err(PageError::Identity);
            }
            listing.add(store.read(raw), store);
            Ok(())
        })
    }

    pub fn end<K: Kind>(self, listing: &mut Listing<K>) -> Result<PageStep, PageError> {
        listing.ended(self)
    }
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), version: Box::default() }
    }
}

impl<K: Kind> Listing<K> {
    /// Ends a page whose items were added to the list.
    fn ended(&mut self, page: ListPage) -> Result<PageStep, PageError> {
        let envelope = page.items.finish()?;
        let RawPage { metadata } = serde_json::from_slice(&envelope)?;
        let version = metadata.resource_version;
        if version.is_empty() {
            return Err(PageError::Identity);
        }
        if self.version.is_empty() {
            self.version = (*version).into();
        } else if *self.version != *version {
            return Err(PageError::Mixed { first: self.version.clone(), second: (*version).into() });
        }
        Ok(metadata.token.filter(|token| !token.is_empty()).map_or(PageStep::Complete, PageStep::More))
    }

    /// Adds a page that is completely in memory to the list.
    #[cfg(test)]
    pub fn page(&mut self, body: &[u8], store: &Store<K>) -> Result<PageStep, PageError> {
        let mut page = ListPage::default();
        page.piece(body, self, store)?;
        page.end(self)
    }

    /// Handles a line of a streamed list. Changes that arrive before the end of the list are applied to the list.
    pub fn line(&mut self, line: &[u8], store: &Store<K>) -> Streamed {
        match Frame::parse(line, store) {
            Ok(Frame::Applied(object)) => self.add(object, store),
            Ok(Frame::Deleted(object)) => drop(self.items.remove(&object.key)),
            Ok(Frame::Bookmark { version, initial_end: true }) => {
                self.version = version;
                return Streamed::Complete;
            }
            Ok(Frame::Bookmark { .. }) => {}
            Ok(Frame::Ahead) => return Streamed::Ahead,
            Ok(Frame::Expired) => return Streamed::Failed("its version is out of history".into()),
            Ok(Frame::Error { code, message, .. }) => return Streamed::Failed(format!("{code} {message}")),
            Err(error) => return Streamed::Failed(error.to_string()),
        }
        Streamed::More
    }

    fn add(&mut self, object: Object<K>, store: &Store<K>) {
        // The version alone is not enough: a restored server assigns the same versions again.
        let known = store.object(&object.key).filter(|known| **known == object);
        let object = known.unwrap_or_else(|| Arc::new(object));
        self.items.insert(object.key.clone(), object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_list_ends_with_its_bookmark_and_has_what_changed_meanwhile() {
        let object = |kind: &str, name: &str, version: u32| {
            format!(
                r#"{{"type":"{kind}","object":{{"kind":"PartialObjectMetadata","metadata":{{"namespace":"n","name":"{name}","uid":"u-{name}","resourceVersion":"{version}"}}}}}}"#
            )
        };
        let bookmark = |version: u32, annotations: &str| {
            format!(
                r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}}}"#
            )
        };
        let (mut listing, store) = (Listing::<Package>::default(), Store::default());
        let lines = [
            object("ADDED", "a", 5),
            object("ADDED", "b", 6),
            bookmark(6, "null"),
            object("MODIFIED", "a", 7),
            object("DELETED", "b", 8),
        ];
        for line in lines {
            assert_eq!(listing.line(line.as_bytes(), &store), Streamed::More, "{line}");
        }
        let end = bookmark(9, r#"{"k8s.io/initial-events-end":"true"}"#);
        assert_eq!(listing.line(end.as_bytes(), &store), Streamed::Complete);
        let versions: Vec<_> = listing.items.values().map(|object| (&*object.key.name, &*object.version)).collect();
        assert_eq!((versions, &*listing.version), (vec![("a", "7")], "9"));
        let error = r#"{"type":"ERROR","object":{"code":500,"message":"etcd"}}"#;
        assert_eq!(listing.line(error.as_bytes(), &store), Streamed::Failed("500 etcd".into()));
    }
}
