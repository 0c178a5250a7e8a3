//! `registry-tag-moved`: a tag that was read while the fault lasts points elsewhere as soon as it was, so that whoever remembers it
//! remembers the past. A hit is one reading that shows another image than the one before, so a client that resolves a tag once and
//! goes on by digest is never hit.

use std::collections::BTreeSet;

use http::Response;

use super::{After, Ask, Before, Behaviour, Fault};
use crate::body::Body;
use crate::route::{Kind, Reference, Route};

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
        self.seen.remove(&key(ask)?).then_some(Before::Pass)
    }

    fn after(&mut self, ask: &Ask<'_>, _fault: &Fault, response: &mut Response<Body>) -> Option<After> {
        if let Some(key) = key(ask).filter(|_| response.status().is_success()) {
            if self.seen.len() == SEEN_MAX {
                self.seen.clear();
            }
            self.seen.insert(key);
            return Some(After::MoveTag);
        }
        None
    }
}

fn key(ask: &Ask<'_>) -> Option<String> {
    match ask.route {
        Route::Manifest(name, Reference::Tag(tag)) => Some(format!("{name}:{tag}")),
        _ => None,
    }
}
