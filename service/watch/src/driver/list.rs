//! A list in pages, read from the first page to the last.
//!
//! This module owns the query of list requests, and the page size of the next attempt after a failure.

use std::sync::Arc;
use std::time::Duration;

use crate::diagnostics::Diagnostics;
use crate::machine::{ListPage, Listing, PageError, PageStep};
use crate::object::Kind;
use crate::source::{Form, Source, encode};
use crate::store::Store;
use service_core::kube::{self, Client, LIST_PAGE};
use service_core::wire;

/// Maximum number of pages of one list: enough for a million objects. A server that returns continue tokens for ever
/// must not block the watch.
const PAGES_MAX: u32 = 2000;

/// Smallest page size, used after larger pages were too slow. With [`PAGES_MAX`] pages of this size, a list may have a
/// hundred thousand objects.
const PAGE_LEAST: u32 = 50;

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error(transparent)]
    Page(#[from] PageError),
    /// The continue token expired between two pages. After an expired token, the whole list is requested at once, as
    /// client-go does.
    #[error("the continue token expired")]
    TokenExpired,
    #[error("more than {PAGES_MAX} pages")]
    Endless,
}

impl ListError {
    /// The time that the server tells the client to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the server says that it has not reached the requested resource version.
    pub fn is_ahead(&self) -> bool {
        matches!(self, Self::Request(error) if error.is_ahead())
    }

    /// Page size of the next attempt after this error; 0 requests all objects at once.
    pub fn next_page(&self, page: u32) -> u32 {
        match self {
            Self::TokenExpired => 0,
            Self::Request(kube::Error::Wire(wire::Error::Deadline { .. })) if page == 0 => LIST_PAGE,
            Self::Request(kube::Error::Wire(wire::Error::Deadline { .. })) => (page / 2).max(PAGE_LEAST),
            Self::Endless => LIST_PAGE,
            _ => page,
        }
    }
}

pub async fn collect<K: Kind>(
    source: Source,
    client: Arc<Client>,
    store: Store<K>,
    diagnostics: Arc<Diagnostics<K>>,
    at_least: Option<Box<str>>,
    page: u32,
) -> Result<Listing<K>, ListError> {
    let mut listing = Listing::default();
    let mut token: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let start = match (&token, &at_least) {
            // A token fixes the version by itself; the server refuses a version next to it.
            (Some(token), _) => format!("&continue={}", encode(token)),
            (None, Some(version)) => {
                format!("&resourceVersion={}&resourceVersionMatch=NotOlderThan", encode(version))
            }
            (None, None) => String::new(),
        };
        let path = source.path_with(&format!("limit={page}{start}"));
        let (mut page, mut wrong) = (ListPage::default(), None);
        let mut take = |piece: &[u8]| {
            wrong = page.piece(piece, &mut listing, &store).err();
            wrong.is_none()
        };
        let answer = client.page(&path, source.form == Form::Metadata, &mut take).await;
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        answer.map_err(|error| match error.status() {
            Some(http::StatusCode::GONE) if token.is_some() => ListError::TokenExpired,
            _ => error.into(),
        })?;
        diagnostics.progress();
        match page.end(&mut listing)? {
            PageStep::Complete => return Ok(listing),
            PageStep::More(next) => token = Some(next),
        }
    }
    Err(ListError::Endless)
}
