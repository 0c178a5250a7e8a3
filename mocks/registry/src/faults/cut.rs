//! `registry-cut`: a body ends after half of what its `Content-Length` promised, and the connection is closed (or the stream
//! reset). What has no body, as the answer to a HEAD, is not sent at all. A hit is one answer cut.

use http::Response;

use super::{After, Ask, Behaviour, Fault};
use crate::body::Body;
use crate::route::Kind;

pub(super) struct Cut;

impl Behaviour for Cut {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn after(&mut self, ask: &Ask<'_>, _fault: &Fault, response: &mut Response<Body>) -> Option<After> {
        if ask.kind.is_head() || response.body().promised() == 0 {
            return Some(After::Unsent);
        }
        let whole = std::mem::replace(response.body_mut(), Body::empty());
        *response.body_mut() = whole.cut_in_half();
        Some(After::Changed)
    }
}
