//! `too-many-requests`: 429 with `Retry-After` in whole seconds, at least one. A hit is one 429.

use http::header::RETRY_AFTER;

use super::{Ask, Before, Behaviour, Fault};
use crate::registry::refusal::{Code, Refusal};
use crate::registry::route::Kind;

pub(super) struct TooManyRequests;

impl Behaviour for TooManyRequests {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, fault: &Fault) -> Option<Before> {
        let seconds = fault.retry_after.map_or(1, |span| span.as_millis().div_ceil(1000).max(1));
        Some(Before::Refuse(Refusal::new(Code::TooManyRequests).header(RETRY_AFTER, &seconds.to_string())))
    }
}
