//! The generator's own HTTP over TLS on nonblocking sockets: the work of one connection, and the wake-up of a thread.
//!
//! A general client costs more than a webhook's answer: tasks, channels, several copies and a dozen allocations a call.
//! Here a request is copied once or twice, into the record that is encrypted in place and written at once, and an
//! answer is decrypted in the buffer that it was read into. Handshakes, certificates and key schedules are rustls's;
//! only the records after the handshake are sealed and opened here, with the keys that rustls exports for that purpose.
//!
//! `channel.rs` is a connection with TLS; [`http1`] and [`http2`] are the protocols on it. This module knows neither
//! the contents of requests, nor the choice of a call's connection, nor its deadline.

mod alarm;
mod channel;
mod handshake;
pub(crate) mod http1;
pub(crate) mod http2;
mod record;
mod session;

pub(crate) use alarm::Alarm;
pub(crate) use channel::{Channel, Opening, Peer, Scratch};

/// A complete answer, borrowed from its reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub status: u16,
    pub content_type: Option<&'a [u8]>,
    pub coding: Coding,
    pub body: &'a [u8],
}

/// The coding of a body, as far as requests allow one (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// No coding; also an unrequested one, which Go does not decode.
    #[default]
    Identity,
    Gzip,
}

impl Coding {
    /// The coding named by a `Content-Encoding`.
    fn of(value: &[u8]) -> Self {
        if value.trim_ascii().eq_ignore_ascii_case(b"gzip") { Self::Gzip } else { Self::Identity }
    }
}
