//! Frames of HTTP/2 (RFC 9113, sections 4 and 6): finding them in plaintext, checking, and writing. Pure: no I/O.

use std::fmt;

/// The bytes of a frame's header: length, type, flags, stream.
pub(super) const HEADER_BYTES: usize = 9;
/// Maximum number of bytes of a frame's payload, unless the peer allows more (RFC 9113, section 4.2). Larger frames
/// would only delay the other streams.
pub(crate) const PAYLOAD_MAX_BYTES: usize = 16 << 10;
/// The bytes that a client sends first on a connection (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// The code in a frame that ends a stream or a connection (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub u32);

impl Code {
    pub(crate) const NO_ERROR: Self = Self(0);
    pub(super) const PROTOCOL_ERROR: Self = Self(1);
    pub(super) const FLOW_CONTROL_ERROR: Self = Self(3);
    pub(super) const FRAME_SIZE_ERROR: Self = Self(6);
    pub(crate) const REFUSED_STREAM: Self = Self(7);
    pub(super) const CANCEL: Self = Self(8);
    pub(super) const COMPRESSION_ERROR: Self = Self(9);
    pub(super) const ENHANCE_YOUR_CALM: Self = Self(11);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}

/// A violation of HTTP/2 by the server, which ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: Code,
    pub text: &'static str,
}

impl Fault {
    pub(super) fn protocol(text: &'static str) -> Self {
        Self { code: Code::PROTOCOL_ERROR, text }
    }

    pub(super) fn flow_control(text: &'static str) -> Self {
        Self { code: Code::FLOW_CONTROL_ERROR, text }
    }
}

/// A received frame with the fields that a client needs. The stream's number is 0 only in frames that allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// DATA; `counted` is the size for flow control, which includes the padding.
    Data {
        stream: u32,
        data: &'a [u8],
        counted: u32,
        end: bool,
    },
    Headers {
        stream: u32,
        block: &'a [u8],
        whole: bool,
        end: bool,
    },
    Continuation {
        stream: u32,
        block: &'a [u8],
        whole: bool,
    },
    Reset {
        stream: u32,
        code: Code,
    },
    Settings(&'a [u8]),
    SettingsAcknowledged,
    Ping([u8; 8]),
    Pong,
    GoAway {
        last: u32,
        code: Code,
        text: &'a [u8],
    },
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    /// PRIORITY, or an unknown type (RFC 9113, section 5.5).
    Ignored,
}

impl<'a> Frame<'a> {
    fn read(kind: u8, flags: u8, stream: u32, payload: &'a [u8]) -> Result<Self, Fault> {
        let size = |text| Fault { code: Code::FRAME_SIZE_ERROR, text };
        let on_a_stream = || if stream == 0 { Err(Fault::protocol("a frame of a stream names none")) } else { Ok(()) };
        let on_none =
            || if stream == 0 { Ok(()) } else { Err(Fault::protocol("a frame of the connection names a stream")) };
        Ok(match kind {
            DATA => {
                on_a_stream()?;
                let counted = u32::try_from(payload.len()).map_err(|_| size("a frame is too long"))?;
                Self::Data { stream, data: unpadded(flags, payload)?, counted, end: flags & END_STREAM != 0 }
            }
            HEADERS => {
                on_a_stream()?;
                let mut block = unpadded(flags, payload)?;
                if flags & PRIORITY != 0 {
                    block = block.get(5..).ok_or(size("HEADERS is too short for the priority that it announces"))?;
                }
                Self::Headers { stream, block, whole: flags & END_HEADERS != 0, end: flags & END_STREAM != 0 }
            }
            CONTINUATION => {
                on_a_stream()?;
                Self::Continuation { stream, block: payload, whole: flags & END_HEADERS != 0 }
            }
            RST_STREAM => {
                on_a_stream()?;
                let code = payload.try_into().map_err(|_| size("RST_STREAM is not 4 bytes long"))?;
                Self::Reset { stream, code: Code(u32::from_be_bytes(code)) }
            }
            SETTINGS => {
                on_none()?;
                match (flags & ACK != 0, payload.len()) {
                    (true, 0) => Self::SettingsAcknowledged,
                    (false, length) if length % 6 == 0 => Self::Settings(payload),
                    _ => return Err(size("SETTINGS has a length that it cannot have")),
                }
            }
            PUSH_PROMISE => return Err(Fault::protocol("it pushes, which it was told not to do")),
            PING => {
                on_none()?;
                let opaque = payload.try_into().map_err(|_| size("PING is not 8 bytes long"))?;
                if flags & ACK == 0 { Self::Ping(opaque) } else { Self::Pong }
            }
            GOAWAY => {
                on_none()?;
                let short = size("GOAWAY is too short");
                let (last, rest) = payload.split_first_chunk().ok_or(short)?;
                let (code, text) = rest.split_first_chunk().ok_or(short)?;
                let last = u32::from_be_bytes(*last) & 0x7fff_ffff;
                Self::GoAway { last, code: Code(u32::from_be_bytes(*code)), text }
            }
            WINDOW_UPDATE => {
                let increment = payload.try_into().map_err(|_| size("WINDOW_UPDATE is not 4 bytes long"))?;
                Self::WindowUpdate { stream, increment: u32::from_be_bytes(increment) & 0x7fff_ffff }
            }
            _ => Self::Ignored,
        })
    }
}

fn unpadded(flags: u8, payload: &[u8]) -> Result<&[u8], Fault> {
    if flags & PADDED == 0 {
        return Ok(payload);
    }
    let too_much = Fault::protocol("a frame has more padding than content");
    let (&padding, rest) = payload.split_first().ok_or(too_much)?;
    let length = rest.len().checked_sub(usize::from(padding)).ok_or(too_much)?;
    Ok(&rest[..length])
}

/// Finds the frames in plaintext, however the plaintext is cut.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    /// The beginning of a frame whose end has not come.
    partial: Vec<u8>,
}

impl Cutter {
    /// A cutter with memory for a whole frame, so that later calls need not allocate.
    pub(crate) fn new() -> Self {
        Self { partial: Vec::with_capacity(HEADER_BYTES + PAYLOAD_MAX_BYTES) }
    }

    /// Reads plaintext and passes every complete frame on.
    pub(crate) fn feed(
        &mut self,
        mut input: &[u8],
        mut take: impl FnMut(Frame<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        while !self.partial.is_empty() {
            let wanted = length(&self.partial)?.unwrap_or(HEADER_BYTES);
            let (now, later) = input.split_at(input.len().min(wanted - self.partial.len()));
            self.partial.extend_from_slice(now);
            input = later;
            if self.partial.len() < wanted {
                return Ok(());
            }
            // A newly completed header gives the length that is still missing.
            if length(&self.partial)? == Some(self.partial.len()) {
                take(whole(&self.partial)?)?;
                self.partial.clear();
            }
        }
        while let Some(length) = length(input)?
            && let Some((frame, later)) = input.split_at_checked(length)
        {
            take(whole(frame)?)?;
            input = later;
        }
        self.partial.extend_from_slice(input);
        Ok(())
    }
}

/// The length of the first frame with its header; `None` if the header is not complete.
fn length(buffer: &[u8]) -> Result<Option<usize>, Fault> {
    let [a, b, c, _, _, _, _, _, _, ..] = buffer else { return Ok(None) };
    let payload = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    if payload > PAYLOAD_MAX_BYTES {
        return Err(Fault { code: Code::FRAME_SIZE_ERROR, text: "a frame is longer than 16 KiB" });
    }
    Ok(Some(HEADER_BYTES + payload))
}

fn whole(frame: &[u8]) -> Result<Frame<'_>, Fault> {
    let [_, _, _, kind, flags, a, b, c, d, payload @ ..] = frame else { return Ok(Frame::Ignored) };
    Frame::read(*kind, *flags, u32::from_be_bytes([a & 0x7f, *b, *c, *d]), payload)
}

/// Writes a frame header. `length` is at most [`PAYLOAD_MAX_BYTES`].
fn header(length: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    debug_assert!(length <= PAYLOAD_MAX_BYTES);
    #[expect(clippy::cast_possible_truncation, reason = "at most 16 KiB")]
    let [_, length @ ..] = (length as u32).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Writes the header of a DATA frame; the caller writes the data.
pub(crate) fn data(length: usize, stream: u32, end: bool, out: &mut Vec<u8>) {
    header(length, DATA, if end { END_STREAM } else { 0 }, stream, out);
}

/// Writes the bytes of a header block in as many frames as needed.
pub(crate) fn headers(parts: &[&[u8]], stream: u32, end: bool, out: &mut Vec<u8>) {
    let mut left: usize = parts.iter().map(|part| part.len()).sum();
    let mut parts = parts.iter().copied();
    let mut part = parts.next().unwrap_or_default();
    let (mut kind, mut flags) = (HEADERS, if end { END_STREAM } else { 0 });
    loop {
        let mut missing = left.min(PAYLOAD_MAX_BYTES);
        left -= missing;
        header(missing, kind, if left == 0 { flags | END_HEADERS } else { flags }, stream, out);
        while missing > 0 {
            let (now, later) = part.split_at(part.len().min(missing));
            out.extend_from_slice(now);
            missing -= now.len();
            part = if later.is_empty() { parts.next().unwrap_or_default() } else { later };
        }
        if left == 0 {
            return;
        }
        (kind, flags) = (CONTINUATION, 0);
    }
}

pub(crate) fn settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    header(settings.len() * 6, SETTINGS, 0, 0, out);
    for (identifier, value) in settings {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn settings_acknowledged(out: &mut Vec<u8>) {
    header(0, SETTINGS, ACK, 0, out);
}

pub(super) fn ping(out: &mut Vec<u8>) {
    header(8, PING, 0, 0, out);
    out.extend_from_slice(b"longhaul");
}

pub(crate) fn pong(opaque: [u8; 8], out: &mut Vec<u8>) {
    header(8, PING, ACK, 0, out);
    out.extend_from_slice(&opaque);
}

pub(super) fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    header(4, WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(super) fn reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    header(4, RST_STREAM, 0, stream, out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Writes GOAWAY with stream 0, because the client has accepted no pushed stream.
pub(super) fn go_away(code: Code, out: &mut Vec<u8>) {
    header(8, GOAWAY, 0, 0, out);
    out.extend_from_slice(&0u32.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}
