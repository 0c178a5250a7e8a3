//! `registry-cut`: a body ends after half of its `Content-Length`, and the connection is closed (or the stream reset).
//! An answer without a body, such as that to a HEAD, is not sent at all. A hit is one cut answer.

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
