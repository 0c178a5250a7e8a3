//! `registry-hang`: the request is read and never answered. When the fault ends the connection is closed without an
//! answer. A hit is one unanswered request.

use super::{Ask, Before, Behaviour, Fault};
use crate::route::Kind;

pub(super) struct Hang;

impl Behaviour for Hang {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        Some(Before::Hang)
    }
}
