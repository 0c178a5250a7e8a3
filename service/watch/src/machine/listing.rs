//! A list under way: pages in, one snapshot out.
//!
//! Pure. All pages of a list carry the version of the same snapshot; a page of another version means that the server
//! mixed two, and the list is worthless.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::object::{Key, Kind, Object, Package, RawObject};
use crate::store::Store;

/// A snapshot, complete once [`PageStep::Complete`] was answered.
#[derive(Debug)]
pub struct Listing<K = Package> {
    /// Everything in it.
    pub items: BTreeMap<Key, Arc<Object<K>>>,
    /// `metadata.resourceVersion` of the list.
    pub version: Box<str>,
}

/// The step after a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStep {
    /// Ask for the next page with this token.
    More(String),
    /// The page was the last one.
    Complete,
}

/// Why a page cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Not a list.
    #[error("not a list: {0}")]
    Json(#[from] serde_json::Error),
    /// An item or the list lacks what identifies it.
    #[error("a list or item without uid, name or resourceVersion")]
    Identity,
    /// Pages of different snapshots.
    #[error("one list, two versions: {first} and {second}")]
    Mixed {
        /// Version of the first page.
        first: Box<str>,
        /// Version of this page.
        second: Box<str>,
    },
}

#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(borrow)]
    metadata: RawListMeta<'a>,
    #[serde(borrow, default)]
    items: Option<Vec<RawObject<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListMeta<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(rename = "continue", default)]
    token: Option<String>,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), version: Box::default() }
    }
}

impl<K: Kind> Listing<K> {
    /// Adds a page. What `store` already has is shared instead of kept twice.
    pub fn page(&mut self, body: &[u8], store: &Store<K>) -> Result<PageStep, PageError> {
        let page: RawPage<'_> = serde_json::from_slice(body)?;
        let version = page.metadata.resource_version;
        if version.is_empty() {
            return Err(PageError::Identity);
        }
        if self.version.is_empty() {
            self.version = (*version).into();
        } else if *self.version != *version {
            return Err(PageError::Mixed { first: self.version.clone(), second: (*version).into() });
        }
        for raw in page.items.unwrap_or_default() {
            if !raw.is_identified() {
                return Err(PageError::Identity);
            }
            let object = raw.into_object();
            // Not by its version alone: a server that was restored hands versions out again.
            let known = store.object(&object.key).filter(|known| **known == object);
            let object = known.unwrap_or_else(|| Arc::new(object));
            self.items.insert(object.key.clone(), object);
        }
        Ok(page.metadata.token.filter(|token| !token.is_empty()).map_or(PageStep::Complete, PageStep::More))
    }
}
