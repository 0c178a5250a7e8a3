//! `registry-referrers-404`: the referrers API is missing, so that a client must fall back to the tag `sha256-…` (OCI
//! distribution specification, "Unavailable Referrers API"). A hit is one 404.

use http::StatusCode;

use super::{Ask, Before, Behaviour, Fault};
use crate::refusal::{Code, Refusal};
use crate::route::Kind;

pub(super) struct Referrers404;

impl Behaviour for Referrers404 {
    fn concerns(&self, kind: Kind) -> bool {
        kind == Kind::Referrers
    }

    fn before(&mut self, _ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        Some(Before::Refuse(Refusal::new(Code::Unsupported).status(StatusCode::NOT_FOUND)))
    }
}
