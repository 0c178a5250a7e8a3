//! `truncated-blob`: the body of a blob ends after half of what `Content-Length` promised, and the connection is closed
//! (or the stream reset). A hit is one blob cut.

use http::Response;

use super::{Ask, Behaviour};
use crate::registry::body::Body;
use crate::registry::route::Kind;

pub(super) struct TruncatedBlob;

impl Behaviour for TruncatedBlob {
    fn concerns(&self, kind: Kind) -> bool {
        kind == Kind::BlobGet
    }

    fn after(&mut self, _ask: &Ask<'_>, response: &mut Response<Body>) -> bool {
        if !response.status().is_success() || response.body().promised() == 0 {
            return false;
        }
        let whole = std::mem::replace(response.body_mut(), Body::empty());
        *response.body_mut() = whole.cut_in_half();
        true
    }
}
