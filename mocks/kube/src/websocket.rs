//! Watches over a WebSocket, for clients that try a WebSocket first, such as fabric8 and the Java Operator SDK.
//!
//! Owns the handshake and the frames, which are as in `golang.org/x/net/websocket`, the library of kube-apiserver. Each
//! event of the watch becomes one text frame; this module must not know the content of events. WebSocket connections
//! exist only on HTTP/1.1.

mod handshake;
mod pump;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;

use super::answer::Answer;
use super::body::Body;
use super::connection::{Connection, Opened};

use handshake::{Accepted, Refused, shake};
pub(crate) use pump::serve;

/// A request to switch to a WebSocket. The request has an effect only if the answer is a stream of events.
pub(crate) struct Wish {
    upgrade: OnUpgrade,
    handshake: Result<Accepted, Refused>,
}

impl Wish {
    /// Recognises a request for a WebSocket by the headers that kube-apiserver checks; the handshake is checked later.
    pub fn of<B>(request: &mut Request<B>) -> Option<Box<Self>> {
        let headers = request.headers();
        let asks = request.method() == Method::GET
            && request.version() == Version::HTTP_11
            && text(headers.get(header::UPGRADE)).eq_ignore_ascii_case("websocket")
            && headers.get_all(header::CONNECTION).iter().any(|value| says_upgrade(text(Some(value))));
        if !asks {
            return None;
        }
        let handshake = shake(headers);
        Some(Box::new(Self { upgrade: hyper::upgrade::on(request), handshake }))
    }

    /// The status of the answer if the handshake failed.
    pub fn refused(&self) -> Option<StatusCode> {
        self.handshake.as_ref().err().map(|refused| refused.status)
    }

    /// The answer that switches protocols or refuses the handshake. [`serve`] gets the stream of the answer and the
    /// connection.
    pub fn respond(self, answer: Answer, connection: &Connection) -> Response<Body> {
        let mut response = Response::new(Body::Full(None));
        let body = match self.handshake {
            Ok(accepted) => {
                accepted.put(&mut response);
                // Only a fault sets one.
                if let Some(Ok(media)) = answer.other_content_type.map(|media| HeaderValue::from_str(&media)) {
                    response.headers_mut().insert(header::CONTENT_TYPE, media);
                }
                Some(answer.body.boxed_unsync())
            }
            Err(refused) => {
                refused.put(&mut response);
                None
            }
        };
        *connection.websocket.lock() = Some(Opened { upgrade: self.upgrade, body });
        response
    }
}

fn says_upgrade(value: &str) -> bool {
    value.to_ascii_lowercase().contains("upgrade")
}

fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn first(headers: &HeaderMap, name: header::HeaderName) -> &str {
    text(headers.get(name))
}
