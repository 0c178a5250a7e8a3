//! A sigstore in memory: a certificate authority like Fulcio with its certificate log, a signature log like Rekor, and
//! a timestamp authority. Each of them has an untrusted counterpart of the same name.
//!
//! Owns certificates, log entries and timestamps. A recipe describes a valid certificate, entry or timestamp, or one
//! with exactly one error. This crate opens no socket, reads no clock and knows no verifier: the time is an argument.
//! Callers decide how a registry stores the results.

mod authority;
mod log;
mod stamp;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};

use authority::Authority;
pub use authority::{CertificateRecipe, Identity, ScTs};
use log::Log;
pub use log::{Entry, LogRecipe, Made, Promise, Proof};
pub use rcgen::KeyPair;
pub use stamp::StampRecipe;
use stamp::Stamper;

/// The payload type of an in-toto statement in an envelope.
pub const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";
/// The oldest media type of `trusted_root.json`; every client accepts it.
const TRUSTED_ROOT_TYPE: &str = "application/vnd.dev.sigstore.trustedroot+json;version=0.1";
/// The time from which `trusted_root.json` trusts keys and certificates. The validity of each certificate is checked in
/// addition.
const BELIEVED_FROM: &str = "2000-01-01T00:00:00Z";

/// A sigstore and its untrusted counterparts.
pub struct Sigstore {
    /// The reference time in seconds since 1970.
    now: i64,
    authority: Authority,
    strange_authority: Authority,
    log: Log,
    strange_log: Log,
    stamper: Stamper,
    strange_stamper: Stamper,
}

/// Why a certificate, log entry or timestamp could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to make a key, a certificate or a signature of a sigstore")]
    Issue(#[from] rcgen::Error),
    /// A structure could not be encoded as DER.
    #[error("failed to encode what a sigstore says: {0}")]
    Encode(#[from] x509_cert::der::Error),
    /// A text or structure in a recipe is too long for its format.
    #[error("failed to encode what a sigstore says: too long for its form")]
    TooLong(#[from] std::num::TryFromIntError),
}

#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// Plain bytes.
    Payload(&'a [u8]),
    /// An in-toto statement, which is signed within an envelope.
    Statement(&'a [u8]),
}

/// A signature, the certificates of its one-time key, and its log entry.
#[derive(Debug)]
pub struct Signed {
    /// The ECDSA signature over SHA-256, as DER.
    pub signature: Vec<u8>,
    /// The certificates as DER, the signer's first.
    pub chain: Vec<Vec<u8>>,
    pub entry: Option<Entry>,
}

impl Sigstore {
    /// A sigstore with new keys; `now` is the reference time in seconds since 1970.
    pub fn new(now: i64) -> Result<Self, Error> {
        Ok(Self {
            now,
            authority: Authority::new("ours", now)?,
            strange_authority: Authority::new("ours", now)?,
            log: Log::new()?,
            strange_log: Log::new()?,
            stamper: Stamper::new(now)?,
            strange_stamper: Stamper::new(now)?,
        })
    }

    /// The reference time in seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The certificates of the authority's intermediate and root, as PEM.
    pub fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// The public key of the certificate log, as PEM.
    pub fn certificate_log_pem(&self) -> String {
        self.authority.ct_key.public_key_pem()
    }

    /// The public key of the signature log, as PEM.
    pub fn log_pem(&self) -> String {
        self.log.key.public_key_pem()
    }

    /// The root certificate of the timestamp authority, as PEM.
    pub fn stamper_pem(&self) -> String {
        self.stamper.root_pem()
    }

    /// The file `trusted_root.json`, with which a client trusts this sigstore.
    pub fn trusted_root(&self) -> Result<Value, Error> {
        let period = json!({"start": BELIEVED_FROM});
        let log = |name: &str, key: &KeyPair| {
            json!({
                "baseUrl": format!("https://{name}.example.com"), "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": b64(key.subject_public_key_info()), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": period,
                },
                "logId": {"keyId": b64(id_of(key))},
            })
        };
        let authority = |name: &str, chain: &[&[u8]]| {
            let certificates: Vec<_> = chain.iter().map(|der| json!({"rawBytes": b64(der)})).collect();
            json!({
                "subject": {"organization": "example.com", "commonName": name},
                "uri": format!("https://{name}.example.com"),
                "certChain": {"certificates": certificates}, "validFor": period,
            })
        };
        Ok(json!({
            "mediaType": TRUSTED_ROOT_TYPE,
            "tlogs": [log("rekor", &self.log.key)],
            "certificateAuthorities": [authority("fulcio", &self.authority.chain())],
            "ctlogs": [log("ctlog", &self.authority.ct_key)],
            "timestampAuthorities": [authority("tsa", &[&self.stamper.leaf()?, self.stamper.root()])],
        }))
    }

    /// Signs like `cosign sign` without a key file: makes a new key, a certificate for the key, and a log entry.
    pub fn sign(
        &self,
        content: Content<'_>,
        certificate: &CertificateRecipe,
        log: Option<&LogRecipe>,
    ) -> Result<Signed, Error> {
        let key = new_key()?;
        let (message, claim) = match content {
            Content::Payload(bytes) => (bytes.to_vec(), bytes),
            Content::Statement(bytes) => (envelope_message(STATEMENT_TYPE, bytes), bytes),
        };
        let signature = key.sign(&message)?;
        let chain = self.certify(&key, certificate)?;
        let verifier = chain.first().map(|leaf| pem("CERTIFICATE", leaf)).unwrap_or_default();
        let is_envelope = matches!(content, Content::Statement(_));
        let made = Made { is_envelope, message: &message, claim, signature: &signature, verifier: &verifier };
        let entry = log.map(|recipe| self.log_entry(recipe, &made)).transpose()?;
        Ok(Signed { signature, chain, entry })
    }
}

impl std::fmt::Debug for Sigstore {
    /// Leaves the private keys out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sigstore").field("now", &self.now).finish_non_exhaustive()
    }
}

/// A fresh P-256 key.
pub fn new_key() -> Result<KeyPair, Error> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// `der` as a PEM block.
pub fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", b64(der))
}

/// The bytes of an envelope that are signed (DSSE v1, "PAE").
pub fn envelope_message(kind: &str, payload: &[u8]) -> Vec<u8> {
    [format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(), payload].concat()
}

/// The id of a log: the SHA-256 of its public key.
fn id_of(key: &KeyPair) -> Vec<u8> {
    sha256(&key.subject_public_key_info())
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn b64(bytes: impl AsRef<[u8]>) -> String {
    BASE64.encode(bytes)
}
