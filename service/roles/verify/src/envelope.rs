//! DSSE: an envelope with a payload, and the bytes that its signature covers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::claim::STATEMENT_PAYLOAD;
use crate::json::Few;

/// Most signatures; one is expected.
const SIGNATURES_MAX: usize = 16;

/// An envelope as JSON, inside a bundle or alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEnvelope<'a> {
    /// Borrowed if nothing is escaped, which base64 never needs: it is nearly all of a bundle.
    #[serde(borrow)]
    payload: Cow<'a, str>,
    payload_type: String,
    signatures: Few<RawSignature, SIGNATURES_MAX>,
}

#[derive(Debug, Deserialize)]
struct RawSignature {
    sig: String,
}

/// An envelope of an in-toto statement with its one signature.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The signed bytes (DSSE 1.0, pre-authentication encoding).
    pub(crate) signed: Vec<u8>,
    /// Where the payload begins in it: it is its end.
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

/// The length of the content of padded base64.
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
