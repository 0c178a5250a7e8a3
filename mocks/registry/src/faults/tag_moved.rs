//! `registry-tag-moved`: a tag that is read while the fault lasts moves right after the read, so that a remembered
//! digest is out of date. A hit is one read that returns another image than the read before. A client that resolves a
//! tag once and continues by digest therefore causes no hit.

use std::collections::BTreeSet;

use http::Response;

use super::{After, Ask, Before, Behaviour, Fault};
use crate::body::Body;
use crate::route::{Kind, Reference, Route};

/// Tags that are remembered as read once; at the bound the memory starts afresh, which costs hits and never invents
/// one.
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
