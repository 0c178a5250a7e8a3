//! The TLS handshake, done by rustls; ends in a [`Session`].

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls_pki_types::ServerName;

use super::session::Session;
use crate::failure::chain;

/// Certificates of a whole chain fit several times. What comes to more before the handshake is over is noise.
const INCOMING_MAX_BYTES: usize = 256 << 10;

/// A handshake under way.
pub(super) struct Handshake {
    tls: UnbufferedClientConnection,
    /// Whether it must end in HTTP/2.
    http2: bool,
    incoming: Vec<u8>,
}

/// How far it came.
pub(super) enum Step {
    /// More must be read.
    More(Box<Handshake>),
    /// It is over; these bytes came behind it, sealed.
    Done(Box<Session>, Vec<u8>),
}

impl Handshake {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, String> {
        let http2 = config.alpn_protocols.first().is_some_and(|first| first == b"h2");
        let tls = UnbufferedClientConnection::new(config, name).map_err(|error| chain(&error))?;
        Ok(Self { tls, http2, incoming: Vec::new() })
    }

    /// Takes in what was read and appends to `out` what must be written, even when it fails: then it is the alert that
    /// tells the server why.
    pub(super) fn advance(
        mut self: Box<Self>,
        read: &[u8],
        resumption: bool,
        out: &mut Vec<u8>,
    ) -> Result<Step, String> {
        self.incoming.extend_from_slice(read);
        if self.incoming.len() > INCOMING_MAX_BYTES {
            return Err("the server sends too much for a handshake".to_owned());
        }
        loop {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.incoming);
            let over = match state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let at = out.len();
                    let bytes = match data.encode(&mut []) {
                        Ok(bytes) => bytes,
                        Err(EncodeError::InsufficientSize(size)) => {
                            out.resize(at + size.required_size, 0);
                            data.encode(&mut out[at..]).map_err(|error| error.to_string())?
                        }
                        Err(error) => return Err(error.to_string()),
                    };
                    out.truncate(at + bytes);
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::WriteTraffic(_)) => Some(true),
                Ok(ConnectionState::BlockedHandshake) => Some(false),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    return Err("the server closed the connection during the handshake".to_owned());
                }
                Ok(_) => return Err("the server sent data before it was asked for any".to_owned()),
                Err(error) => {
                    let text = chain(&error);
                    self.alert(out);
                    return Err(text);
                }
            };
            self.incoming.drain(..discard);
            match over {
                None => {}
                Some(false) => return Ok(Step::More(self)),
                Some(true) => break,
            }
        }
        let Self { tls, http2, incoming } = *self;
        // HTTP/1.1 is what a server without ALPN speaks; HTTP/2 needs the server's word.
        if http2 && tls.alpn_protocol() != Some(b"h2") {
            return Err("the server does not offer HTTP/2 (ALPN h2)".to_owned());
        }
        let (secrets, keys) = tls.dangerous_into_kernel_connection().map_err(|error| chain(&error))?;
        let session = Session::new(secrets, keys, resumption).map_err(|broken| broken.0.to_owned())?;
        Ok(Step::Done(Box::new(session), incoming))
    }

    fn alert(&mut self, out: &mut Vec<u8>) {
        let status = self.tls.process_tls_records(&mut []);
        if let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state
            && let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut [])
        {
            let at = out.len();
            out.resize(at + size.required_size, 0);
            let bytes = data.encode(&mut out[at..]).unwrap_or(0);
            out.truncate(at + bytes);
        }
    }
}
