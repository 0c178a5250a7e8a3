//! `registry-auth-failing`: every request is refused with 401 and the usual challenge, and `/token` is refused too, so
//! that clients cannot authenticate. A hit is one 401.

use super::{Ask, Before, Behaviour, Fault};
use crate::route::Kind;

pub(super) struct AuthFailing;

impl Behaviour for AuthFailing {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        Some(Before::Challenge)
    }
}
