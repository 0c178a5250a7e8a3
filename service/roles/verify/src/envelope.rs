//! DSSE envelopes: parses an envelope with its payload, and computes the signed bytes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::claim::STATEMENT_PAYLOAD;
use crate::json::Few;

/// Maximum number of signatures of an envelope; exactly one is expected.
const SIGNATURES_MAX: usize = 16;

/// An envelope as JSON, from a bundle or from a layer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEnvelope<'a> {
    /// The payload in base64, which makes up nearly all bytes of a bundle. The payload is borrowed from the input,
    /// because base64 needs no escapes.
    #[serde(borrow)]
    payload: Cow<'a, str>,
    payload_type: String,
    signatures: Few<RawSignature, SIGNATURES_MAX>,
}

#[derive(Debug, Deserialize)]
struct RawSignature {
    sig: String,
}

/// An envelope with an in-toto statement and one signature.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The signed bytes (DSSE 1.0, pre-authentication encoding).
    pub(crate) signed: Vec<u8>,
    /// The position of the payload in `signed`; the payload is the last field.
    pub(crate) payload_at: usize,
    pub(crate) signature: Vec<u8>,
}

impl RawEnvelope<'_> {
    pub(crate) fn open(&self) -> Result<Envelope, String> {
        if self.payload_type != STATEMENT_PAYLOAD {
            return Err(format!("its envelope's payload is not `{STATEMENT_PAYLOAD}`"));
        }
        let [signature] = self.signatures.as_slice() else {
            return Err(format!("its envelope has {} signatures, one is expected", self.signatures.len()));
        };
        let malformed = |_| "its envelope is not base64".to_owned();
        let signature = STANDARD.decode(&signature.sig).map_err(malformed)?;
        // The length is needed before the bytes, and it follows from the base64 without decoding.
        let bytes = payload_bytes(&self.payload);
        let mut signed = format!("DSSEv1 {} {STATEMENT_PAYLOAD} {bytes} ", STATEMENT_PAYLOAD.len()).into_bytes();
        let payload_at = signed.len();
        signed.reserve_exact(bytes + 3);
        STANDARD.decode_vec(&*self.payload, &mut signed).map_err(malformed)?;
        if signed.len() - payload_at != bytes {
            return Err("its envelope is not base64".to_owned());
        }
        Ok(Envelope { signed, payload_at, signature })
    }
}

/// The number of bytes that the padded base64 text `text` encodes.
fn payload_bytes(text: &str) -> usize {
    let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_the_payload_with_its_length() {
        for payload in ["", "a", "ab", "abc", "{\"a\": 1}"] {
            let raw = RawEnvelope {
                payload: STANDARD.encode(payload).into(),
                payload_type: STATEMENT_PAYLOAD.to_owned(),
                signatures: serde_json::from_str(r#"[{"sig": "AA=="}]"#).unwrap(),
            };
            let opened = raw.open().unwrap();
            assert_eq!(&opened.signed[opened.payload_at..], payload.as_bytes());
            let expected = format!("DSSEv1 28 application/vnd.in-toto+json {} {payload}", payload.len());
            assert_eq!(opened.signed, expected.as_bytes());
        }
    }
}
