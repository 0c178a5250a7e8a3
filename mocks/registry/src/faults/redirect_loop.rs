//! `registry-redirect-loop`: a request for a manifest or blob is answered by a 307 to the same URL, as by a registry in
//! front of broken storage. A hit is one redirect.

use http::header::{HeaderValue, LOCATION};
use http::{Response, StatusCode};

use super::{Ask, Before, Behaviour, Fault};
use crate::body::Body;
use crate::route::Kind;

pub(super) struct RedirectLoop;

impl Behaviour for RedirectLoop {
    fn concerns(&self, kind: Kind) -> bool {
        matches!(kind, Kind::ManifestGet | Kind::ManifestHead | Kind::BlobGet | Kind::BlobHead)
    }

    fn before(&mut self, ask: &Ask<'_>, _fault: &Fault) -> Option<Before> {
        let location = HeaderValue::from_str(ask.path).ok()?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().insert(LOCATION, location);
        Some(Before::Answer(response))
    }
}
