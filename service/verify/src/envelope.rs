//! DSSE: an envelope with a payload, and what its signature is over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::claim::STATEMENT_PAYLOAD;

/// An envelope as JSON, inside a bundle or alone.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawEnvelope {
    payload: String,
    payload_type: String,
    signatures: Vec<RawSignature>,
}

#[derive(Debug, Deserialize)]
struct RawSignature {
    sig: String,
}

/// An envelope of an in-toto statement with its one signature.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) payload: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

impl RawEnvelope {
    pub(crate) fn open(&self) -> Result<Envelope, String> {
        if self.payload_type != STATEMENT_PAYLOAD {
            return Err(format!("its envelope's payload is not `{STATEMENT_PAYLOAD}`"));
        }
        let [signature] = self.signatures.as_slice() else {
            return Err(format!("its envelope has {} signatures, one is expected", self.signatures.len()));
        };
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| "its envelope is not base64".to_owned());
        Ok(Envelope { payload: decode(&self.payload)?, signature: decode(&signature.sig)? })
    }
}

impl Envelope {
    /// What the signature is over (DSSE 1.0, pre-authentication encoding).
    pub(crate) fn signed(&self) -> Vec<u8> {
        let (kind, payload) = (STATEMENT_PAYLOAD, &self.payload);
        let mut out = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        out.extend_from_slice(payload);
        out
    }
}
