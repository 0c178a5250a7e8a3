//! `tag-moved`: a tag that was read once while the fault lasts points elsewhere at the next reading. A hit is one such
//! second reading, so a client that resolves a tag once and goes on by digest is never hit.

use std::collections::BTreeSet;

use http::Response;

use super::{Ask, Before, Behaviour, Fault};
use crate::registry::body::Body;
use crate::registry::route::{Kind, Reference, Route};

/// Tags remembered as read once; at the bound the memory starts afresh, which costs hits and never invents one.
const SEEN_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct TagMoved {
    seen: BTreeSet<String>,
}

impl Behaviour for TagMoved {
    fn concerns(&self, kind: Kind) -> bool {
        matches!(kind, Kind::ManifestGet | Kind::ManifestHead)
    }

    fn before(&mut self, ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        self.seen.remove(&key(ask)?).then_some(Before::MoveTag)
    }

    fn after(&mut self, ask: &Ask<'_>, response: &mut Response<Body>) -> bool {
        if let Some(key) = key(ask).filter(|_| response.status().is_success()) {
            if self.seen.len() == SEEN_MAX {
                self.seen.clear();
            }
            self.seen.insert(key);
        }
        false
    }
}

fn key(ask: &Ask<'_>) -> Option<String> {
    match ask.route {
        Route::Manifest(name, Reference::Tag(tag)) => Some(format!("{name}:{tag}")),
        _ => None,
    }
}
