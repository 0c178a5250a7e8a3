//! The TLS handshake, which rustls does. The result of a handshake is a [`Session`].

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls_pki_types::ServerName;

use super::session::Session;
use crate::failure::chain;

/// Maximum number of received bytes before the handshake ends, several times a whole certificate chain. If the server
/// sends more bytes, the handshake fails.
const INCOMING_MAX_BYTES: usize = 256 << 10;

pub(super) struct Handshake {
    tls: UnbufferedClientConnection,
    /// Whether the handshake must negotiate HTTP/2.
    http2: bool,
    incoming: Vec<u8>,
}

/// The state of a handshake after some input.
pub(super) enum Step {
    More(Box<Handshake>),
    /// The handshake is complete; the bytes are sealed records that came after it.
    Done(Box<Session>, Vec<u8>),
}

impl Handshake {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, String> {
        let http2 = config.alpn_protocols.first().is_some_and(|first| first == b"h2");
        let tls = UnbufferedClientConnection::new(config, name).map_err(|error| chain(&error))?;
        Ok(Self { tls, http2, incoming: Vec::new() })
    }

    /// Reads input and appends output to `out`. After a failure the output is an alert that tells the server the
    /// reason.
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
        // A server without ALPN speaks HTTP/1.1; HTTP/2 must be negotiated.
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
