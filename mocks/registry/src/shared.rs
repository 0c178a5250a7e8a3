//! The state that all requests share, a request whose headers have been read, and the reading of request bodies.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::auth::Authenticator;
use super::body::Body;
use super::digest::Digest;
use super::faults::Faults;
use super::limit::Bucket;
use super::population;
use super::refusal::{Code, Refusal};
use super::requests::Log;
use super::store::{Full, Store};
use super::uploads::Uploads;

/// A request body that makes no progress for this long is refused.
const BODY_IDLE: Duration = Duration::from_secs(30);

/// The callback for tags that move; it gets the reference and its new digest.
pub(super) type OnMove = Box<dyn Fn(&str, &str) + Send + Sync>;

pub(super) struct Shared {
    pub(super) epoch: Instant,
    /// Whether clients connect to this registry over TLS.
    pub(super) secure: bool,
    pub(super) deletes: bool,
    pub(super) state: Mutex<State>,
    pub(super) authenticator: Authenticator,
    pub(super) bucket: Mutex<Bucket>,
    pub(super) faults: Faults,
    pub(super) log: Mutex<Log>,
    /// The `host:port` of this registry in references.
    pub(super) host: String,
    pub(super) on_move: OnceLock<OnMove>,
}

/// The stored content and the unfinished uploads.
pub(super) struct State {
    pub(super) store: Store,
    pub(super) uploads: Uploads,
    /// Bytes of bodies that are being read, or that are read but not stored yet.
    pub(super) bodies: u64,
}

/// A body that has been read. Until the body is dropped, its bytes count against the limit of stored bytes.
pub(super) struct Collected<'s> {
    pub(super) bytes: Bytes,
    _held: CountedBytes<'s>,
}

/// Bytes of a body that count against the limit of stored bytes.
struct CountedBytes<'s> {
    shared: &'s Shared,
    bytes: u64,
}

impl Drop for CountedBytes<'_> {
    fn drop(&mut self) {
        self.shared.state.lock().bodies -= self.bytes;
    }
}

impl State {
    /// Refuses a body if the stored bytes, the bodies being read and this body together exceed the limit.
    pub(super) fn fits(&self, wanted_bytes: u64) -> Result<(), Refusal> {
        self.store.fits(wanted_bytes, self.uploads.bytes() + self.bodies).map_err(full)
    }
}

/// The refusal for a body that exceeds the limit of stored bytes.
pub(super) fn full(full: Full) -> Refusal {
    Refusal::new(Code::Denied).message(full.to_string())
}

/// A request whose headers have been read and whose body has not.
pub(super) struct RequestHead {
    pub(super) parts: Parts,
    pub(super) query: Vec<(String, String)>,
}

impl Shared {
    pub(super) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Points a tag at a rebuilt image, and calls the callback before clients can read the change.
    pub(super) fn move_tag(&self, repository: &str, tag: &str) -> Result<Digest, population::Error> {
        let mut state = self.state.lock();
        let digest = population::move_tag(&mut state.store, repository, tag)?;
        if let Some(told) = self.on_move.get() {
            told(&format!("{}/{repository}:{tag}", self.host), digest.as_str());
        }
        Ok(digest)
    }
}

impl RequestHead {
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// The next piece of a request body; `None` at the end of the body.
pub(super) async fn next_piece(shared: &Shared, body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
    loop {
        let broken = |reason: &'static str| {
            Refusal::new(Code::BlobUploadInvalid).status(http::StatusCode::BAD_REQUEST).message(reason)
        };
        let frame = match tokio::time::timeout(BODY_IDLE, body.frame()).await {
            Err(_elapsed) => return Err(broken("the body stopped arriving").status(http::StatusCode::REQUEST_TIMEOUT)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(broken("the body ended early")),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(bytes) = frame.into_data() {
            shared.log.lock().received(bytes.len());
            return Ok(Some(bytes));
        }
    }
}

/// Reads a whole small request body.
pub(super) async fn collect(shared: &Shared, mut body: Incoming, bytes_max: usize) -> Result<Collected<'_>, Refusal> {
    let (mut all, mut held) = (Vec::new(), CountedBytes { shared, bytes: 0 });
    while let Some(piece) = next_piece(shared, &mut body).await? {
        if all.len() + piece.len() > bytes_max {
            return Err(Refusal::new(Code::SizeInvalid)
                .status(http::StatusCode::PAYLOAD_TOO_LARGE)
                .message(format!("the body is larger than {bytes_max} bytes")));
        }
        // The buffer takes up to twice its bytes while it grows.
        let wanted = 2 * piece.len() as u64;
        let mut state = shared.state.lock();
        state.fits(wanted)?;
        state.bodies += wanted;
        held.bytes += wanted;
        drop(state);
        all.extend_from_slice(&piece);
    }
    Ok(Collected { bytes: all.into(), _held: held })
}

pub(super) fn json(text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    let value = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, value);
    response
}
