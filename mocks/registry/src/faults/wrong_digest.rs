//! `registry-wrong-digest`: the bytes of a blob or a manifest do not have the digest that `Docker-Content-Digest`
//! names. A blob has its last byte flipped; a manifest gets a trailing newline, so that it stays the same JSON and only
//! a client that checks the digest notices. A hit is one changed answer.

use http::Response;
use http::header::CONTENT_LENGTH;

use super::{After, Ask, Behaviour, Fault};
use crate::body::Body;
use crate::route::Kind;

pub(super) struct WrongDigest;

impl Behaviour for WrongDigest {
    fn concerns(&self, kind: Kind) -> bool {
        matches!(kind, Kind::BlobGet | Kind::ManifestGet)
    }

    fn after(&mut self, ask: &Ask<'_>, _fault: &Fault, response: &mut Response<Body>) -> Option<After> {
        if !response.status().is_success() || response.body().promised() == 0 {
            return None;
        }
        let mut bytes = std::mem::replace(response.body_mut(), Body::empty()).into_bytes().to_vec();
        if ask.kind == Kind::ManifestGet {
            bytes.push(b'\n');
            response.headers_mut().insert(CONTENT_LENGTH, bytes.len().into());
        } else if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        *response.body_mut() = Body::full(bytes);
        Some(After::Changed)
    }
}
