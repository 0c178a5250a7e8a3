//! An established TLS session: seals sent data, opens received data, and answers TLS messages that come after the
//! handshake.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::{ExtractedSecrets, ProtocolVersion};

use super::record::{ALERT, APPLICATION_DATA, Broken, HANDSHAKE, Half};

/// Maximum length of a handshake message in bytes. Handshake messages after the handshake are tickets and key updates,
/// for which rustls has the same limit.
const MESSAGE_MAX_BYTES: usize = 64 << 10;
/// Types of handshake messages (RFC 8446, section 4).
const HELLO_REQUEST: u8 = 0;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
const CLOSE_NOTIFY: u8 = 0;
/// Maximum number of records without data, one after another. A server sends a few tickets after the handshake, each in
/// at most one record.
const EMPTY_MAX: u32 = 100;
/// Maximum number of key updates that the server may request. Each update is answered, and answers would pile up if the
/// server does not read. The keys of TLS 1.3 last for hours at full load.
const UPDATES_MAX: u32 = 1_000;

/// An established TLS session, which owns the keys and does not know the socket.
pub(super) struct Session {
    sending: Half,
    receiving: Half,
    keys: KernelConnection<ClientConnectionData>,
    resumption: bool,
    /// The beginning of a handshake message whose end has not come; nearly always empty.
    message: Vec<u8>,
    /// Number of records without data since the last record with data.
    empty: u32,
    updates: u32,
}

/// The content of one record.
pub(super) enum Opened<'a> {
    Data(&'a [u8]),
    /// The record was a TLS message without data. A reply to the message may be in `reply`.
    Nothing,
    /// The server has ended its data.
    End,
}

impl Session {
    pub(super) fn new(
        secrets: ExtractedSecrets,
        keys: KernelConnection<ClientConnectionData>,
        resumption: bool,
    ) -> Result<Self, Broken> {
        let version = keys.protocol_version();
        Ok(Self {
            sending: Half::new(secrets.tx, version)?,
            receiving: Half::new(secrets.rx, version)?,
            keys,
            resumption,
            message: Vec::new(),
            empty: 0,
            updates: 0,
        })
    }

    /// Whether no further request should use this session.
    pub(super) fn exhausted(&self) -> bool {
        self.sending.exhausted()
    }

    /// Appends the bytes of `parts`, sealed, to `out`.
    pub(super) fn seal(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Broken> {
        self.sending.seal(APPLICATION_DATA, parts, out)
    }

    /// Appends the closing alert, sealed, to `out`.
    pub(super) fn seal_end(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        const WARNING: u8 = 1;
        self.sending.seal(ALERT, &[&[WARNING, CLOSE_NOTIFY]], out)
    }

    /// Opens one whole record of received data. Replies of TLS itself are appended, sealed, to `reply`.
    pub(super) fn open<'a>(&mut self, record: &'a mut [u8], reply: &mut Vec<u8>) -> Result<Opened<'a>, Broken> {
        let (content_type, text) = self.receiving.open(record)?;
        self.empty = if content_type == APPLICATION_DATA && !text.is_empty() { 0 } else { self.empty + 1 };
        if self.empty > EMPTY_MAX {
            return Err(Broken("record after record came without data"));
        }
        match content_type {
            APPLICATION_DATA => Ok(Opened::Data(text)),
            ALERT if text.get(1) == Some(&CLOSE_NOTIFY) => Ok(Opened::End),
            ALERT => Err(Broken(alert(text.get(1).copied()))),
            HANDSHAKE => {
                self.message.extend_from_slice(text);
                self.messages(reply)?;
                Ok(Opened::Nothing)
            }
            _ => Err(Broken("a record of an unknown kind came")),
        }
    }

    fn messages(&mut self, reply: &mut Vec<u8>) -> Result<(), Broken> {
        while let [kind, a, b, c, rest @ ..] = &self.message[..] {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > MESSAGE_MAX_BYTES {
                return Err(Broken("a TLS message is longer than any that makes sense"));
            }
            let Some(body) = rest.get(..length) else { break };
            let tls13 = self.keys.protocol_version() == ProtocolVersion::TLSv1_3;
            match *kind {
                NEW_SESSION_TICKET if tls13 && self.resumption => self
                    .keys
                    .handle_new_session_ticket(body)
                    .map_err(|_| Broken("a session ticket could not be read"))?,
                NEW_SESSION_TICKET if tls13 => {}
                KEY_UPDATE if tls13 && body.len() == 1 => {
                    let requested = body[0] == 1;
                    self.update(requested, reply)?;
                }
                // A request to renegotiate, which a client may ignore (RFC 5246, section 7.4.1.1).
                HELLO_REQUEST if !tls13 => {}
                _ => return Err(Broken("an unexpected TLS message came after the handshake")),
            }
            self.message.drain(..4 + length);
        }
        Ok(())
    }

    /// Handles a key update. The reply to a key update is sent under the old key (RFC 8446, section 4.6.3).
    fn update(&mut self, requested: bool, reply: &mut Vec<u8>) -> Result<(), Broken> {
        self.updates += 1;
        if self.updates > UPDATES_MAX {
            return Err(Broken("the server asks for new keys without end"));
        }
        let failed = |_| Broken("a key update failed");
        let version = self.keys.protocol_version();
        self.receiving = Half::new(self.keys.update_rx_secret().map_err(failed)?, version)?;
        if requested {
            self.sending.seal(HANDSHAKE, &[&[KEY_UPDATE, 0, 0, 1, 0]], reply)?;
            self.sending = Half::new(self.keys.update_tx_secret().map_err(failed)?, version)?;
        }
        Ok(())
    }
}

/// The probable meaning of a server's alert after the handshake (RFC 8446, section 6.2).
fn alert(description: Option<u8>) -> &'static str {
    match description {
        Some(42..=46) => "the server refuses the client's certificate (TLS alert)",
        Some(48) => "the server does not know the CA of the client's certificate (TLS alert unknown_ca)",
        Some(116) => "the server wants a client certificate, and none was given (TLS alert certificate_required)",
        _ => "the server ended the session with a TLS alert",
    }
}
