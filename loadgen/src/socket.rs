//! The load generator's own HTTP over TLS on nonblocking sockets: connections, and waking a thread in time.
//!
//! A general HTTP client costs more CPU time than a webhook's answer: tasks, channels, several copies and a dozen
//! allocations for each call. This module copies a request once or twice into a record, which is encrypted in place and
//! written at once. An answer is decrypted in the buffer into which it was read. rustls does handshakes, certificates
//! and key schedules. This module seals and opens only records after the handshake, with keys that rustls exports for
//! that purpose.
//!
//! `channel.rs` is a connection with TLS; [`http1`] and [`http2`] are the protocols on it. This module knows neither
//! the contents of requests, nor which connection a call uses, nor its deadline.

mod alarm;
mod channel;
mod handshake;
pub(crate) mod http1;
pub(crate) mod http2;
mod record;
mod session;

pub(crate) use alarm::Alarm;
pub(crate) use channel::{Channel, Opening, Peer, Scratch};

/// A complete answer in the buffers of its reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WholeAnswer<'a> {
    pub status: u16,
    pub content_type: Option<&'a [u8]>,
    pub coding: Coding,
    pub body: &'a [u8],
}

/// The compression of a body, if requests allow it (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// No compression, or one that was not requested, which Go does not decode.
    #[default]
    Identity,
    Gzip,
}

impl Coding {
    /// The compression that a `Content-Encoding` names.
    fn of(value: &[u8]) -> Self {
        if value.trim_ascii().eq_ignore_ascii_case(b"gzip") { Self::Gzip } else { Self::Identity }
    }
}
