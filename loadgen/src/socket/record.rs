//! TLS records after the handshake, which are sealed and opened in place, without a copy or an allocation. Pure: no
//! I/O.
//!
//! Supports TLS 1.3 (RFC 8446, section 5) and the AEAD suites of TLS 1.2 (RFC 5288, RFC 7905), because rustls
//! negotiates nothing else.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

/// The bytes of a record's header: content type, version, length.
pub(super) const HEADER_BYTES: usize = 5;
/// Maximum number of bytes of plaintext in a record (RFC 8446, section 5.1).
const PLAINTEXT_MAX_BYTES: usize = 16 << 10;
/// Maximum length of a record in bytes: TLS 1.2 lets ciphers add 2048 bytes (RFC 5246, section 6.2.3), TLS 1.3 only
/// 256.
pub(super) const RECORD_MAX_BYTES: usize = HEADER_BYTES + PLAINTEXT_MAX_BYTES + 2048;
const TAG_BYTES: usize = 16;
/// The bytes of an AES-GCM nonce that TLS 1.2 sends with each record.
const EXPLICIT_NONCE_BYTES: usize = 8;
/// Maximum number of records that one key seals. AES-GCM keys should seal no more than 2^24.5 full records (RFC 8446,
/// section 5.5).
const SEALED_MAX: u64 = 1 << 24;

pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

/// The error for an invalid record, or one with a wrong seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken(pub &'static str);

/// One direction of a TLS connection: its key and the number of its records.
pub(super) struct Half {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tls13,
    /// A cipher that sends some bytes of the nonce with each record.
    Tls12Gcm,
    Tls12ChaCha,
}

impl Half {
    /// Makes one direction from the secrets that rustls exports.
    pub(super) fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        version: ProtocolVersion,
    ) -> Result<Self, Broken> {
        let unknown = Broken("the cipher suite is none that records can be sealed with here");
        let (algorithm, key, iv, chacha) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv, false),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv, false),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv, true),
            _ => return Err(unknown),
        };
        let form = match (version, chacha) {
            (ProtocolVersion::TLSv1_3, _) => Form::Tls13,
            (ProtocolVersion::TLSv1_2, false) => Form::Tls12Gcm,
            (ProtocolVersion::TLSv1_2, true) => Form::Tls12ChaCha,
            _ => return Err(unknown),
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unknown)?;
        let iv = iv.as_ref().try_into().map_err(|_| unknown)?;
        Ok(Self { key: LessSafeKey::new(key), iv, sequence, form })
    }

    /// Whether the key must not seal further records.
    pub(super) fn exhausted(&self) -> bool {
        self.sequence >= SEALED_MAX
    }

    /// Appends records that contain the bytes of `parts`, one after another, to `out`.
    pub(super) fn seal(&mut self, content_type: u8, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Broken> {
        let mut left: usize = parts.iter().map(|part| part.len()).sum();
        let mut parts = parts.iter().copied();
        let mut part = parts.next().unwrap_or_default();
        while left > 0 {
            let length = left.min(PLAINTEXT_MAX_BYTES);
            left -= length;
            let begin = out.len();
            let explicit = if self.form == Form::Tls12Gcm { EXPLICIT_NONCE_BYTES } else { 0 };
            let inner = usize::from(self.form == Form::Tls13);
            let payload = explicit + length + inner + TAG_BYTES;
            out.reserve(HEADER_BYTES + payload);
            let outer = if self.form == Form::Tls13 { APPLICATION_DATA } else { content_type };
            out.extend_from_slice(&[outer, 3, 3]);
            out.extend_from_slice(&u16_of(payload)?.to_be_bytes());
            let nonce = self.nonce();
            out.extend_from_slice(&nonce[12 - explicit..]);
            let mut missing = length;
            while missing > 0 {
                let (now, later) = part.split_at(part.len().min(missing));
                out.extend_from_slice(now);
                missing -= now.len();
                part = if later.is_empty() { parts.next().unwrap_or_default() } else { later };
            }
            let tag = if self.form == Form::Tls13 {
                out.push(content_type);
                let (header, text) = out[begin..].split_at_mut(HEADER_BYTES);
                self.key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(&*header), text)
            } else {
                let aad = self.aad12(content_type, length)?;
                let text = &mut out[begin + HEADER_BYTES + explicit..];
                self.key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), text)
            };
            out.extend_from_slice(tag.map_err(|_| Broken("a record could not be sealed"))?.as_ref());
            self.sequence += 1;
        }
        Ok(())
    }

    /// Opens one whole record, and returns its content type and contents.
    pub(super) fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<(u8, &'a mut [u8]), Broken> {
        let broken = Broken("a record's seal is broken");
        let nonce = self.nonce();
        let outer = record[0];
        let opened = match self.form {
            Form::Tls13 => {
                if outer != APPLICATION_DATA {
                    return Err(Broken("a record came unsealed"));
                }
                let (header, payload) = record.split_at_mut(HEADER_BYTES);
                let nonce = Nonce::assume_unique_for_key(nonce);
                let text = self.key.open_in_place(nonce, Aad::from(&*header), payload).map_err(|_| broken)?;
                // The content type follows the text, before zeros that only hide its length.
                let at = text.iter().rposition(|&byte| byte != 0).ok_or(Broken("a record has no content type"))?;
                (text[at], &mut text[..at])
            }
            Form::Tls12Gcm | Form::Tls12ChaCha => {
                let mut nonce = nonce;
                let explicit = if self.form == Form::Tls12Gcm { EXPLICIT_NONCE_BYTES } else { 0 };
                let length = record.len().checked_sub(HEADER_BYTES + explicit + TAG_BYTES).ok_or(broken)?;
                let payload = &mut record[HEADER_BYTES..];
                if self.form == Form::Tls12Gcm {
                    nonce[..4].copy_from_slice(&self.iv[..4]);
                    nonce[4..].copy_from_slice(&payload[..explicit]);
                }
                let aad = self.aad12(outer, length)?;
                let nonce = Nonce::assume_unique_for_key(nonce);
                let text =
                    self.key.open_in_place(nonce, Aad::from(aad), &mut payload[explicit..]).map_err(|_| broken)?;
                (outer, text)
            }
        };
        self.sequence += 1;
        Ok(opened)
    }

    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= sequence;
        }
        nonce
    }

    /// The additional data that TLS 1.2 authenticates (RFC 5246, section 6.2.3.3).
    fn aad12(&self, content_type: u8, length: usize) -> Result<[u8; 13], Broken> {
        let mut aad = [0; 13];
        aad[..8].copy_from_slice(&self.sequence.to_be_bytes());
        aad[8..11].copy_from_slice(&[content_type, 3, 3]);
        aad[11..].copy_from_slice(&u16_of(length)?.to_be_bytes());
        Ok(aad)
    }
}

/// The length of the first record in the buffer, with its header; `None` if the header is not complete.
pub(super) fn length(buffer: &[u8]) -> Result<Option<usize>, Broken> {
    let [_, _, _, high, low, ..] = buffer else { return Ok(None) };
    let length = HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
    if length > RECORD_MAX_BYTES {
        return Err(Broken("a record is longer than TLS allows"));
    }
    Ok(Some(length))
}

fn u16_of(length: usize) -> Result<u16, Broken> {
    u16::try_from(length).map_err(|_| Broken("a record is longer than TLS allows"))
}

#[cfg(test)]
mod tests;
