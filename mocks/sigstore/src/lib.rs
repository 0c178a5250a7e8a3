//! A sigstore in memory: an authority that certifies signers for minutes (like Fulcio), its log of certificates, a log
//! of signatures (like Rekor), and a timestamp authority. Each has an untrusted counterpart of the same name.
//!
//! Owns their statements, each link by itself. A recipe describes one good link, or one with a single error, while all
//! other parts are signed correctly. It opens no socket, reads no clock and knows no verifier: the time is an argument.
//! Callers decide how the parts are stored in a registry.

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
/// The oldest form of the file, which every client reads.
const TRUSTED_ROOT_TYPE: &str = "application/vnd.dev.sigstore.trustedroot+json;version=0.1";
/// The beginning of trust in keys and certificates of the file; their own validity decides the rest.
const BELIEVED_FROM: &str = "2000-01-01T00:00:00Z";

/// A sigstore and its untrusted counterparts.
pub struct Sigstore {
    /// Reference time in seconds since 1970.
    now: i64,
    authority: Authority,
    strange_authority: Authority,
    log: Log,
    strange_log: Log,
    stamper: Stamper,
    strange_stamper: Stamper,
}

/// Why a part could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key, a certificate or a signature.
    #[error("failed to make a key, a certificate or a signature of a sigstore")]
    Issue(#[from] rcgen::Error),
    /// A structure that has no DER.
    #[error("failed to encode what a sigstore says: {0}")]
    Encode(#[from] x509_cert::der::Error),
    /// A recipe with a text or structure that is too long for its form.
    #[error("failed to encode what a sigstore says: too long for its form")]
    TooLong(#[from] std::num::TryFromIntError),
}

/// The signed content.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// The bytes themselves.
    Payload(&'a [u8]),
    /// An in-toto statement, in an envelope.
    Statement(&'a [u8]),
}

/// A signature by a key that was made for it and is thrown away, with its certificates and entry.
#[derive(Debug)]
pub struct Signed {
    /// ECDSA over SHA-256, as DER.
    pub signature: Vec<u8>,
    /// Certificates in DER, the signer's first.
    pub chain: Vec<Vec<u8>>,
    /// The log's entry.
    pub entry: Option<Entry>,
}

impl Sigstore {
    /// A sigstore with fresh keys, at `now` in seconds since 1970.
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

    /// Reference time in seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Intermediate and root of the authority, as PEM.
    pub fn authority_pem(&self) -> String {
        self.authority.pem()
    }

    /// The key of the log of certificates, as PEM.
    pub fn certificate_log_pem(&self) -> String {
        self.authority.ct_key.public_key_pem()
    }

    /// The key of the log of signatures, as PEM.
    pub fn log_pem(&self) -> String {
        self.log.key.public_key_pem()
    }

    /// The root of the timestamp authority, as PEM.
    pub fn stamper_pem(&self) -> String {
        self.stamper.root_pem()
    }

    /// The file `trusted_root.json` by which a client trusts this sigstore.
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

    /// Signs like `cosign sign` without a key: a fresh key, a certificate for it, an entry in the log.
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
    /// Prints no private key.
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

/// The signed bytes of an envelope (DSSE v1, "PAE").
pub fn envelope_message(kind: &str, payload: &[u8]) -> Vec<u8> {
    [format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(), payload].concat()
}

/// The id of a log: the SHA-256 of its key.
fn id_of(key: &KeyPair) -> Vec<u8> {
    sha256(&key.subject_public_key_info())
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn b64(bytes: impl AsRef<[u8]>) -> String {
    BASE64.encode(bytes)
}
