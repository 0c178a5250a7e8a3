//! The generator's own HTTP/1.1 over TLS on nonblocking sockets: what one connection does, and when a thread wakes.
//!
//! A general client costs more than a webhook's answer: tasks, channels, several copies and a dozen allocations a call.
//! Here a request is copied once, into the record that is encrypted in place and written at once, and an answer is
//! decrypted in the buffer that it was read into. Handshakes, certificates and key schedules are rustls's; only the records
//! after the handshake are sealed and opened here, with the keys that rustls hands over for that purpose.
//!
//! Nothing here knows what is sent, which connection a call gets or how long it may wait.

mod alarm;
mod answer;
mod chunked;
mod connection;
mod handshake;
mod record;
mod session;

pub(crate) use alarm::Alarm;
pub(crate) use answer::{Coding, Seen};
pub(crate) use connection::{Connection, Opening, Peer, Received, Scratch};
