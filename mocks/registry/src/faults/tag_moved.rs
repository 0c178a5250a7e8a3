//! `registry-tag-moved`: right after a client reads a tag, the tag moves to another image, so that a digest from an
//! earlier read is out of date. A hit is one read that returns another image than the previous read of the tag. A
//! client that resolves a tag once and continues by digest therefore causes no hit.

use std::collections::BTreeSet;

use http::Response;

use super::{After, Ask, Before, Behaviour, Fault};
use crate::body::Body;
use crate::route::{Kind, Reference, Route};

/// Maximum number of tags that are remembered as read. At this limit all tags are removed from the memory, so that some
/// hits are missed, but no false hit is counted.
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
