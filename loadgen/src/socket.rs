//! The generator's own HTTP over TLS on nonblocking sockets: what one connection does, and when a thread wakes.
//!
//! A general client costs more than a webhook's answer: tasks, channels, several copies and a dozen allocations a call.
//! Here a request is copied once or twice, into the record that is encrypted in place and written at once, and an answer is
//! decrypted in the buffer that it was read into. Handshakes, certificates and key schedules are rustls's; only the records
//! after the handshake are sealed and opened here, with the keys that rustls hands over for that purpose.
//!
//! `channel.rs` is a connection with TLS on it; [`http1`] and [`http2`] are what is spoken over it. Nothing here knows what is
//! sent, which connection a call gets or how long it may wait.

mod alarm;
mod channel;
mod handshake;
pub(crate) mod http1;
pub(crate) mod http2;
mod record;
mod session;

pub(crate) use alarm::Alarm;
pub(crate) use channel::{Channel, Opening, Peer, Scratch};

/// A complete answer, as it lies in its reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub status: u16,
    pub content_type: Option<&'a [u8]>,
    pub coding: Coding,
    pub body: &'a [u8],
}

/// How a body is packed, as far as requests allow it (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it is; also what nobody asked for and Go leaves as it is.
    #[default]
    Identity,
    Gzip,
}

impl Coding {
    /// What a `Content-Encoding` says.
    fn of(value: &[u8]) -> Self {
        if value.trim_ascii().eq_ignore_ascii_case(b"gzip") { Self::Gzip } else { Self::Identity }
    }
}
