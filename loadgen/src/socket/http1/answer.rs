//! Reads HTTP/1.1 answers from plaintext as it comes, within size limits. Pure: no I/O.
//!
//! The rules of framing are in RFC 9112, section 6.3. Where section 6.3 allows several behaviours, this reader does as
//! Go's client, because kube-apiserver is a Go program.

use std::mem::MaybeUninit;

use super::chunked::Chunked;
use crate::failure::{Failure, MOST_BODY_BYTES};
use crate::socket::{Coding, WholeAnswer};

/// Maximum number of bytes of an answer's head. Go's client accepts 10 MiB, but no webhook sends nearly as much, and
/// each of thousands of connections may hold one head.
const HEAD_MAX_BYTES: usize = 512 << 10;
/// Maximum number of header lines of an answer. Go limits only the bytes, but no webhook sends more lines.
const HEADERS_MAX: usize = 128;
/// The largest buffer that is kept after an answer; larger ones are freed.
const KEPT_BYTES: usize = 64 << 10;
const PROTOCOL: &[u8] = b"HTTP/1.";

/// Reads one answer after another.
#[derive(Debug)]
pub(super) struct Reader {
    state: State,
    /// The received beginning of a head whose end has not come.
    head: Vec<u8>,
    body: Vec<u8>,
    content_type: Vec<u8>,
    has_content_type: bool,
    coding: Coding,
    /// Number of bytes of interim answers before the expected answer.
    interim: usize,
    status: u16,
    keep: bool,
    begun: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Idle,
    Head,
    Length(usize),
    Chunks(Chunked),
    UntilClose,
    Done,
}

enum Framing {
    Nothing,
    Length(u64),
    Chunks,
    UntilClose,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            state: State::Idle,
            head: Vec::new(),
            body: Vec::new(),
            content_type: Vec::new(),
            has_content_type: false,
            coding: Coding::Identity,
            interim: 0,
            status: 0,
            keep: true,
            begun: false,
        }
    }

    /// From now on an answer is expected.
    pub(super) fn expect(&mut self) {
        self.state = State::Head;
        self.begun = false;
        self.interim = 0;
        for buffer in [&mut self.head, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
        }
    }

    /// From now on no answer is expected.
    pub(super) fn rest(&mut self) {
        self.state = State::Idle;
    }

    /// Whether the first byte of the expected answer has come.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether the status line and the headers have come, but not the whole body.
    pub(super) fn in_body(&self) -> bool {
        matches!(self.state, State::Length(_) | State::Chunks(_) | State::UntilClose)
    }

    pub(super) fn done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether another request may use the connection after this answer.
    pub(super) fn keep(&self) -> bool {
        self.keep
    }

    /// The answer, which is complete after [`Reader::done`].
    pub(super) fn seen(&self) -> WholeAnswer<'_> {
        let content_type = self.has_content_type.then_some(&self.content_type[..]);
        WholeAnswer { status: self.status, content_type, coding: self.coding, body: &self.body }
    }

    /// Reads the plaintext that has come.
    pub(super) fn feed(&mut self, mut input: &[u8]) -> Result<(), Failure> {
        while !input.is_empty() {
            match &mut self.state {
                // Unrequested data: the connection is not used again, as in Go.
                State::Idle | State::Done => {
                    self.keep = false;
                    return Ok(());
                }
                State::Head => {
                    self.begun = true;
                    input = self.feed_head(input)?;
                }
                State::Length(left) => {
                    let (now, rest) = input.split_at(input.len().min(*left));
                    *left -= now.len();
                    let over = *left == 0;
                    self.body.extend_from_slice(now);
                    input = rest;
                    if over {
                        self.state = State::Done;
                    }
                }
                State::Chunks(chunked) => {
                    let data = chunked.take(&mut input).map_err(broke_off)?;
                    let over = chunked.done();
                    append(&mut self.body, data)?;
                    if over {
                        self.state = State::Done;
                    }
                }
                State::UntilClose => {
                    append(&mut self.body, input)?;
                    input = &[];
                }
            }
        }
        Ok(())
    }

    /// Handles the end of the connection.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.keep = false;
        match self.state {
            State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            State::Idle | State::Done => Ok(()),
            State::Head if !self.begun => Err(before("the server closed it")),
            State::Head => Err(before("it was closed in the middle of the head")),
            State::Length(_) | State::Chunks(_) => Err(broke_off("the connection was closed before its end")),
        }
    }

    /// Reads a head, and returns the input after it.
    fn feed_head<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], Failure> {
        if self.head.is_empty()
            && let Some(length) = head_length(input, 0)
        {
            self.read_head(&input[..length])?;
            return Ok(&input[length..]);
        }
        let before_this = self.head.len();
        let room = HEAD_MAX_BYTES.saturating_sub(before_this).min(input.len());
        self.head.extend_from_slice(&input[..room]);
        // The end may straddle the pieces.
        if let Some(length) = head_length(&self.head, before_this.saturating_sub(3)) {
            let head = std::mem::take(&mut self.head);
            let read = self.read_head(&head[..length]);
            self.head = head;
            self.head.clear();
            read?;
            return Ok(&input[length - before_this..]);
        }
        if !self.head.iter().zip(PROTOCOL).all(|(a, b)| a == b) {
            return Err(before("what came is no HTTP/1 answer"));
        }
        if self.head.len() >= HEAD_MAX_BYTES {
            return Err(Failure::http(format!("the head of the answer is larger than {} KiB", HEAD_MAX_BYTES >> 10)));
        }
        Ok(&[])
    }

    fn read_head(&mut self, head: &[u8]) -> Result<(), Failure> {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, head, &mut headers)
            .map_err(|error| before(&format!("the head is no HTTP/1.1: {error}")))?;
        let status = response.code.filter(|_| parsed.is_complete()).ok_or_else(|| before("the head is no HTTP/1.1"))?;
        if status == 101 {
            return Err(before("the server switched to another protocol, which nobody asked for"));
        }
        // An interim answer: the real one follows (RFC 9110, section 15.2).
        if status < 200 {
            self.begun = false;
            self.interim += head.len();
            // At most as much as one head, as in Go.
            return if self.interim > HEAD_MAX_BYTES {
                Err(before("interim answers come without end"))
            } else {
                Ok(())
            };
        }
        let facts = Facts::of(response.headers, response.version == Some(1))?;
        self.status = status;
        self.keep = facts.keep;
        self.coding = facts.coding;
        self.has_content_type = facts.content_type.is_some();
        self.content_type.clear();
        self.content_type.extend_from_slice(facts.content_type.unwrap_or_default());
        let framing = if matches!(status, 204 | 304) { Framing::Nothing } else { facts.framing };
        self.state = match framing {
            Framing::Nothing | Framing::Length(0) => State::Done,
            Framing::Length(bytes) => match usize::try_from(bytes) {
                Ok(length) if length <= MOST_BODY_BYTES => State::Length(length),
                _ => return Err(Failure::body_too_large(Some(bytes))),
            },
            Framing::Chunks => State::Chunks(Chunked::new()),
            Framing::UntilClose => {
                self.keep = false;
                State::UntilClose
            }
        };
        Ok(())
    }
}

/// The statements of the headers about body and connection.
struct Facts<'a> {
    content_type: Option<&'a [u8]>,
    coding: Coding,
    framing: Framing,
    keep: bool,
}

impl<'a> Facts<'a> {
    fn of(headers: &[httparse::Header<'a>], keep_by_default: bool) -> Result<Self, Failure> {
        let mut facts =
            Self { content_type: None, coding: Coding::Identity, framing: Framing::UntilClose, keep: keep_by_default };
        let mut length = None;
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let text = std::str::from_utf8(header.value).unwrap_or_default().trim();
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let value = text.parse::<u64>().ok().filter(|_| digits);
                let value = value.ok_or_else(|| before(&format!("`{text}` is no Content-Length")))?;
                if length.is_some_and(|known| known != value) {
                    return Err(before("it has two different Content-Length headers"));
                }
                length = Some(value);
            } else if is("transfer-encoding") {
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(before("its Transfer-Encoding is not `chunked`"));
                }
                facts.framing = Framing::Chunks;
            } else if is("content-type") && facts.content_type.is_none() {
                facts.content_type = Some(header.value.trim_ascii());
            } else if is("content-encoding") {
                facts.coding = Coding::of(header.value);
            } else if is("connection") {
                for token in header.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    if token.eq_ignore_ascii_case(b"close") {
                        facts.keep = false;
                    } else if token.eq_ignore_ascii_case(b"keep-alive") && !keep_by_default {
                        facts.keep = true;
                    }
                }
            }
        }
        // Chunks win over a length (RFC 9112, section 6.3).
        if let (Framing::UntilClose, Some(length)) = (&facts.framing, length) {
            facts.framing = Framing::Length(length);
        }
        Ok(facts)
    }
}

fn append(body: &mut Vec<u8>, data: &[u8]) -> Result<(), Failure> {
    if body.len() + data.len() > MOST_BODY_BYTES {
        return Err(Failure::body_too_large(None));
    }
    body.extend_from_slice(data);
    Ok(())
}

/// The length of the head with its empty line, if the end of the head is in the buffer after `from`.
fn head_length(buffer: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = buffer[at..].iter().position(|&byte| byte == b'\n') {
        let end = at + found + 1;
        match &buffer[end..] {
            [b'\n', ..] => return Some(end + 1),
            [b'\r', b'\n', ..] => return Some(end + 2),
            _ => at = end,
        }
    }
    None
}

fn before(why: &str) -> Failure {
    Failure::http(format!("the connection broke before an answer: {why}"))
}

fn broke_off(why: &str) -> Failure {
    Failure::http(format!("the body broke off: {why}"))
}

#[cfg(test)]
mod tests;
