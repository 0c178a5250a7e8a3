//! A server for HTTP/2 tests that sends exactly the frames of a test, over TLS.

use loadgen::admission::{Interval, Target};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::server::{self, Identity};
use crate::webhook::{self, plan, run};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// The header block with only `:status: 200`, in HPACK.
pub const OK: &[u8] = &[0x88];
const PREFACE_BYTES: usize = 24;
/// Load of only deletions, which a webhook may allow without a patch.
pub const DELETIONS: &str = r#""client": "http2", "mix": {"deletePod": 1}"#;

/// A connection on which the test reads and writes HTTP/2 frames.
pub struct Wire {
    pub stream: TlsStream<TcpStream>,
    seen: Vec<u8>,
    pub number: usize,
}

impl Wire {
    pub async fn preface(&mut self) -> Option<()> {
        while self.seen.len() < PREFACE_BYTES {
            self.read().await?;
        }
        self.seen.drain(..PREFACE_BYTES);
        Some(())
    }

    /// Reads the client's preface and sends the settings.
    pub async fn welcome(&mut self) -> Option<()> {
        self.preface().await?;
        self.send(SETTINGS, 0, 0, &[]).await?;
        // Room for every request of a test.
        self.send(WINDOW_UPDATE, 0, 0, &[1, 0, 0, 0]).await
    }

    async fn read(&mut self) -> Option<()> {
        let mut buffer = vec![0; 64 << 10];
        let read = self.stream.read(&mut buffer).await.ok().filter(|&read| read > 0)?;
        self.seen.extend_from_slice(&buffer[..read]);
        Some(())
    }

    /// Reads the next frame: type, flags, stream and payload.
    pub async fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.seen.split_first_chunk::<9>()
                && let Some(payload) = rest.get(..u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize)
            {
                let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                let frame = (head[3], head[4], stream, payload.to_vec());
                self.seen.drain(..9 + frame.3.len());
                return Some(frame);
            }
            self.read().await?;
        }
    }

    /// Reads the next complete request: its stream and its uid.
    pub async fn request(&mut self) -> Option<(u32, String)> {
        let mut bodies = std::collections::BTreeMap::<u32, Vec<u8>>::new();
        loop {
            let (kind, flags, stream, payload) = self.frame().await?;
            if kind == DATA {
                let body = bodies.entry(stream).or_default();
                body.extend_from_slice(&payload);
                if flags & END_STREAM != 0 {
                    let text = String::from_utf8_lossy(body).into_owned();
                    return Some((stream, text.split_once(r#""uid":""#)?.1[..36].to_owned()));
                }
            }
        }
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<()> {
        self.send_bytes(&frame(kind, flags, stream, payload)).await
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()?;
        self.stream.flush().await.ok()
    }

    pub async fn allow(&mut self, stream: u32, uid: &str) -> Option<()> {
        self.send_bytes(&answer(stream, uid)).await
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn answer(stream: u32, uid: &str) -> Vec<u8> {
    let body = webhook::answer(&json!({"request": {"uid": uid}}), json!({"allowed": true})).to_string();
    [frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
}

/// A server that passes its connections to a handler after the TLS handshake.
pub struct Raw(server::Raw);

impl Raw {
    pub async fn start<H, F>(handler: H) -> Self
    where
        H: Fn(Wire) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let identity = Identity::new();
        let handler = move |stream, number| handler(Wire { stream, seen: Vec::new(), number });
        Self(server::Raw::start(identity.config(&[b"h2"]), identity.pem, handler).await)
    }

    pub fn target(&self) -> &Target {
        &self.0.target
    }

    pub async fn meets(&self, calls: u64, timeout_s: u64) -> Interval {
        run(plan(calls, &format!(r#"{DELETIONS}, "timeout": "{timeout_s}s""#)), self.target()).await
    }

    pub fn accepted(&self) -> usize {
        self.0.accepted()
    }
}

pub fn assert_example(interval: &Interval, expected: &str) {
    let examples = &interval.examples;
    assert!(examples.iter().any(|text| text.contains(expected)), "`{expected}` is not in {examples:#?}");
}
