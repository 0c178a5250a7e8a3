//! A minimal HTTP/1.1 client over TLS, cheap enough for ten thousand open watches on one machine.
//!
//! Owns one connection, one request at a time, and decoding bodies without keeping them. It must not know Kubernetes.
//! Every wait has a deadline; a body is handed on piece by piece, so nothing grows with its length.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The slowest answer, a list of 50,000 objects from a real server on a busy machine, takes seconds.
const DEADLINE: Duration = Duration::from_mins(2);
/// No server here sends longer response headers.
const HEAD_MAX_BYTES: usize = 16 * 1024;
/// One TLS record.
const READ_BYTES: usize = 16 * 1024;
/// How much of an error's body is shown.
const ERROR_MAX_BYTES: usize = 300;

/// Where to connect, and as whom.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub address: SocketAddr,
    pub tls: Arc<rustls::ClientConfig>,
    pub token: String,
}

/// One connection.
pub(crate) struct Wire {
    tls: TlsStream<TcpStream>,
    token: String,
    buffer: Vec<u8>,
}

/// What is left of a response body.
pub(crate) enum Body {
    Length(usize),
    Chunks(Chunks),
}

/// The decoder of `Transfer-Encoding: chunked` (RFC 9112, section 7.1), without trailers.
#[derive(Default)]
pub(crate) struct Chunks {
    state: State,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// Hexadecimal digits so far.
    Size(usize),
    /// A chunk extension, or the end of the size's line.
    SizeEnd(usize),
    Data(usize),
    /// The line end after the data.
    DataEnd,
    /// The empty line after the last chunk, which has no data.
    LastEnd,
    Done,
}

impl Wire {
    pub async fn connect(to: &Endpoint) -> Result<Self> {
        let connecting = async {
            let tcp = TcpStream::connect(to.address).await?;
            tcp.set_nodelay(true)?;
            let name = ServerName::IpAddress(to.address.ip().into());
            TlsConnector::from(to.tls.clone()).connect(name, tcp).await
        };
        let tls = tokio::time::timeout(DEADLINE, connecting).await?.context("failed to connect")?;
        Ok(Self { tls, token: to.token.clone(), buffer: Vec::new() })
    }

    /// Sends a request and reads the head of its answer; anything but 2xx is an error with the answer's text.
    pub async fn open(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Body> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nUser-Agent: longhaul-bench\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        let exchange = async {
            self.tls.write_all(&message).await?;
            self.tls.flush().await?;
            self.head().await
        };
        let (status, mut left) = tokio::time::timeout(DEADLINE, exchange).await.context("no answer in time")??;
        if (200..300).contains(&status) {
            return Ok(left);
        }
        let mut text = Vec::new();
        self.drain(&mut left, |data| text.extend(data.iter().take(ERROR_MAX_BYTES - text.len().min(ERROR_MAX_BYTES))))
            .await?;
        bail!("{method} {path}: {status} {}", String::from_utf8_lossy(&text));
    }

    /// A request whose answer is read to its end; the answer's size in bytes.
    pub async fn call(&mut self, method: &str, path: &str, body: &[u8]) -> Result<usize> {
        let mut left = self.open(method, path, body).await?;
        let mut size = 0;
        self.drain(&mut left, |data| size += data.len()).await?;
        Ok(size)
    }

    async fn drain(&mut self, body: &mut Body, mut sink: impl FnMut(&[u8])) -> Result<()> {
        while tokio::time::timeout(DEADLINE, self.more(body, &mut sink)).await.context("the answer stands still")?? {}
        Ok(())
    }

    /// Reads once and hands on what of the body came; false when the body is over.
    pub async fn more(&mut self, body: &mut Body, sink: &mut impl FnMut(&[u8])) -> Result<bool> {
        if body.is_over() {
            return Ok(false);
        }
        if self.buffer.is_empty() {
            self.read().await?;
        }
        match body {
            Body::Length(left) => {
                let taken = self.buffer.len().min(*left);
                sink(&self.buffer[..taken]);
                *left -= taken;
                self.buffer.drain(..taken);
            }
            Body::Chunks(chunks) => {
                let used = chunks.feed(&self.buffer, sink)?;
                self.buffer.drain(..used);
            }
        }
        Ok(!body.is_over())
    }

    async fn read(&mut self) -> Result<()> {
        self.buffer.reserve(READ_BYTES);
        if self.tls.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }

    async fn head(&mut self) -> Result<(u16, Body)> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end]).context("response headers are not text")?;
                let parsed = parse_head(head)?;
                self.buffer.drain(..end + 4);
                return Ok(parsed);
            }
            if self.buffer.len() > HEAD_MAX_BYTES {
                bail!("response headers are longer than {HEAD_MAX_BYTES} bytes");
            }
            self.read().await?;
        }
    }
}

impl Body {
    fn is_over(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunks(chunks) => chunks.state == State::Done,
        }
    }
}

impl Chunks {
    /// Decodes `bytes`, hands the data on, and says how many bytes were used: all, unless the body is over.
    fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> Result<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            self.state = match self.state {
                State::Done => break,
                State::Data(left) => {
                    let taken = left.min(bytes.len() - at);
                    sink(&bytes[at..at + taken]);
                    at += taken;
                    self.state = if taken == left { State::DataEnd } else { State::Data(left - taken) };
                    continue;
                }
                State::Start => State::Size(digit(byte)?),
                State::Size(size) if byte.is_ascii_hexdigit() => {
                    let shifted = size.checked_mul(16).context("a chunk of an impossible size")?;
                    State::Size(shifted + digit(byte)?)
                }
                State::Size(size) | State::SizeEnd(size) if byte != b'\n' => State::SizeEnd(size),
                State::Size(0) | State::SizeEnd(0) => State::LastEnd,
                State::Size(size) | State::SizeEnd(size) => State::Data(size),
                State::LastEnd if byte == b'\n' => State::Done,
                State::LastEnd if byte == b'\r' => State::LastEnd,
                State::LastEnd => bail!("a body with trailers"),
                State::DataEnd => {
                    if byte == b'\n' {
                        State::Start
                    } else {
                        State::DataEnd
                    }
                }
            };
            at += 1;
        }
        Ok(at)
    }
}

fn digit(byte: u8) -> Result<usize> {
    let digit = char::from(byte).to_digit(16).context("a chunk size that is not a number")?;
    Ok(digit as usize)
}

fn parse_head(head: &str) -> Result<(u16, Body)> {
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let mut body = Body::Length(0);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            body = Body::Length(value.trim().parse().context("a Content-Length that is not a number")?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            body = Body::Chunks(Chunks::default());
        }
    }
    Ok((status.context("an answer without a status")?, body))
}
