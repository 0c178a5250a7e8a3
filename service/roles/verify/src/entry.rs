//! Checks entries of a transparency log against the signature with which they were stored.

use aws_lc_rs::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::certificate::Certificate;
use crate::claim::{STATEMENT_PAYLOAD, shown};
use crate::json::{self, Few};
use crate::key::PublicKey;

/// Maximum number of signatures of a log entry; usual entries have one signature.
const SIGNATURES_MAX: usize = 16;
/// The signature and signed content that the log entry must match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logged<'a> {
    pub(crate) message: &'a [u8],
    /// The payload of the envelope, if an envelope was signed.
    pub(crate) envelope_payload: Option<&'a [u8]>,
    /// The bytes of the envelope, if they are known.
    pub(crate) envelope: Option<&'a [u8]>,
    pub(crate) signature: &'a [u8],
    pub(crate) verifier: Verifier<'a>,
}

/// The key or certificate by which the signature is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verifier<'a> {
    Key(&'a PublicKey),
    Certificate(&'a Certificate),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct KindVersion {
    pub(crate) kind: String,
    pub(crate) version: String,
}

impl KindVersion {
    /// Whether only Rekor 2 writes entries of this kind and version.
    pub(crate) fn is_rekor_two(&self) -> bool {
        matches!(self.kind.as_str(), "hashedrekord" | "dsse") && self.version == "0.0.2"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: String,
    #[serde(borrow)]
    spec: &'a RawValue,
}

#[derive(Deserialize)]
struct HexHash {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
struct HashedRekord {
    data: HashedData,
    signature: HashedSignature,
}

#[derive(Deserialize)]
struct HashedData {
    hash: HexHash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HashedSignature {
    content: String,
    public_key: Content,
}

#[derive(Deserialize)]
struct Content {
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dsse {
    payload_hash: HexHash,
    signatures: Few<DsseSignature, SIGNATURES_MAX>,
}

#[derive(Deserialize)]
struct DsseSignature {
    signature: String,
    verifier: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntotoOne {
    content: IntotoOneContent,
    public_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntotoOneContent {
    hash: HexHash,
    payload_hash: HexHash,
}

#[derive(Deserialize)]
struct Intoto {
    content: IntotoContent,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntotoContent {
    envelope: IntotoEnvelope,
    payload_hash: HexHash,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntotoEnvelope {
    payload_type: String,
    signatures: Few<IntotoSignature, SIGNATURES_MAX>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntotoSignature {
    sig: String,
    public_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HashedRekordTwo {
    hashed_rekord_v002: HashedTwo,
}

#[derive(Deserialize)]
struct HashedTwo {
    data: RawHash,
    signature: SignatureTwo,
}

#[derive(Deserialize)]
struct DsseTwo {
    #[serde(rename = "dsseV002")]
    dsse: DsseTwoBody,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DsseTwoBody {
    payload_hash: RawHash,
    signatures: Few<SignatureTwo, SIGNATURES_MAX>,
}

#[derive(Deserialize)]
struct RawHash {
    algorithm: String,
    digest: String,
}

#[derive(Deserialize)]
struct SignatureTwo {
    content: String,
    verifier: VerifierTwo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VerifierTwo {
    public_key: Option<RawBytes>,
    x509_certificate: Option<RawBytes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBytes {
    raw_bytes: String,
}

/// Checks that the entry with the canonical `body` contains the hash and the signature in `logged`, and the key or
/// certificate of the signature. `stated` is the entry kind that a bundle states.
pub(crate) fn check(body: &[u8], stated: Option<&KindVersion>, logged: Logged<'_>) -> Result<(), String> {
    let parsed: Body<'_> = json::read(body).map_err(|error| format!("the log entry's body cannot be read: {error}"))?;
    if stated.is_some_and(|stated| stated.kind != parsed.kind || stated.version != parsed.api_version) {
        return Err("the log entry is of another kind than the bundle says".to_owned());
    }
    match (parsed.kind.as_str(), parsed.api_version.as_str(), logged.envelope_payload) {
        ("hashedrekord", "0.0.1", _) => hashed(&spec(parsed.spec)?, logged),
        ("hashedrekord", "0.0.2", _) => hashed_two(&spec::<HashedRekordTwo>(parsed.spec)?.hashed_rekord_v002, logged),
        ("dsse", "0.0.1", Some(payload)) => dsse(&spec(parsed.spec)?, payload, logged),
        ("dsse", "0.0.2", Some(payload)) => dsse_two(&spec::<DsseTwo>(parsed.spec)?.dsse, payload, logged),
        ("intoto", "0.0.1", Some(payload)) => intoto_one(&spec(parsed.spec)?, payload, logged),
        ("intoto", "0.0.2", Some(payload)) => intoto(&spec::<Intoto>(parsed.spec)?.content, payload, logged),
        (kind, version, _) => Err(format!(
            "a log entry of kind {} {}, which says nothing about this kind of signature",
            shown(kind),
            shown(version)
        )),
    }
}

fn spec<T: DeserializeOwned>(raw: &RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("the log entry's body cannot be read: {error}"))
}

fn hashed(entry: &HashedRekord, logged: Logged<'_>) -> Result<(), String> {
    hex_hash(&entry.data.hash, logged.message)?;
    same_signature(&entry.signature.content, logged.signature)?;
    same_pem(&entry.signature.public_key.content, logged.verifier)
}

fn hashed_two(entry: &HashedTwo, logged: Logged<'_>) -> Result<(), String> {
    raw_hash(&entry.data, logged.message)?;
    same_signature(&entry.signature.content, logged.signature)?;
    same_raw(&entry.signature.verifier, logged.verifier)
}

fn dsse(entry: &Dsse, payload: &[u8], logged: Logged<'_>) -> Result<(), String> {
    hex_hash(&entry.payload_hash, payload)?;
    let signature = only(&entry.signatures)?;
    same_signature(&signature.signature, logged.signature)?;
    same_pem(&signature.verifier, logged.verifier)
}

fn dsse_two(entry: &DsseTwoBody, payload: &[u8], logged: Logged<'_>) -> Result<(), String> {
    raw_hash(&entry.payload_hash, payload)?;
    let signature = only(&entry.signatures)?;
    same_signature(&signature.content, logged.signature)?;
    same_raw(&signature.verifier, logged.verifier)
}

/// Checks an entry of intoto 0.0.1. An entry of intoto 0.0.1 contains no signature, so only the hash of the whole
/// envelope proves that the entry belongs to the envelope.
fn intoto_one(entry: &IntotoOne, payload: &[u8], logged: Logged<'_>) -> Result<(), String> {
    let envelope =
        logged.envelope.ok_or("a log entry of kind intoto 0.0.1, which does not bind a signature in a bundle")?;
    hex_hash(&entry.content.hash, envelope)?;
    hex_hash(&entry.content.payload_hash, payload)?;
    same_pem(&entry.public_key, logged.verifier)
}

fn intoto(entry: &IntotoContent, payload: &[u8], logged: Logged<'_>) -> Result<(), String> {
    if entry.envelope.payload_type != STATEMENT_PAYLOAD {
        return Err("the log entry is about an envelope of another type".to_owned());
    }
    hex_hash(&entry.payload_hash, payload)?;
    let signature = only(&entry.envelope.signatures)?;
    // The signature of an envelope is base64, and is encoded once more in this kind of entry.
    let once = decoded(&signature.sig)?;
    same_signature(&String::from_utf8_lossy(&once), logged.signature)?;
    same_pem(&signature.public_key, logged.verifier)
}

fn only<T>(all: &[T]) -> Result<&T, String> {
    match all {
        [one] => Ok(one),
        _ => Err(format!("the log entry has {} signatures, and one was made", all.len())),
    }
}

fn hex_hash(hash: &HexHash, bytes: &[u8]) -> Result<(), String> {
    let value = hex::decode(&hash.value).map_err(|_| "the log entry's hash is not in hex digits".to_owned())?;
    same_hash(&hash.algorithm, &value, bytes)
}

fn raw_hash(hash: &RawHash, bytes: &[u8]) -> Result<(), String> {
    same_hash(&hash.algorithm, &decoded(&hash.digest)?, bytes)
}

fn same_hash(algorithm: &str, value: &[u8], bytes: &[u8]) -> Result<(), String> {
    let algorithm: &'static Algorithm = match algorithm {
        "sha256" | "SHA2_256" => &SHA256,
        "sha384" | "SHA2_384" => &SHA384,
        "sha512" | "SHA2_512" => &SHA512,
        other => return Err(format!("the log entry's hash is made by {}, which is not known here", shown(other))),
    };
    if digest(algorithm, bytes).as_ref() == value {
        return Ok(());
    }
    Err("the log entry is about other content than was signed".to_owned())
}

fn same_signature(text: &str, signature: &[u8]) -> Result<(), String> {
    if decoded(text)? == signature {
        return Ok(());
    }
    Err("the log entry is about another signature".to_owned())
}

/// Checks that `text` is base64 of one PEM block with the certificate or public key of `verifier`.
fn same_pem(text: &str, verifier: Verifier<'_>) -> Result<(), String> {
    let pem = decoded(text)?;
    let mut blocks = <(SectionKind, Vec<u8>)>::pem_slice_iter(&pem);
    let (Some(Ok((kind, der))), None) = (blocks.next(), blocks.next()) else {
        return Err("the log entry holds no key or certificate".to_owned());
    };
    let is_ours = match (kind, verifier) {
        (SectionKind::PublicKey, Verifier::Key(key)) => der == key.spki(),
        (SectionKind::Certificate, Verifier::Certificate(certificate)) => der == certificate.der.as_ref(),
        _ => false,
    };
    ours(is_ours)
}

fn same_raw(stated: &VerifierTwo, verifier: Verifier<'_>) -> Result<(), String> {
    let is_ours = match (&stated.public_key, &stated.x509_certificate, verifier) {
        (Some(raw), None, Verifier::Key(key)) => decoded(&raw.raw_bytes)? == key.spki(),
        (None, Some(raw), Verifier::Certificate(certificate)) => decoded(&raw.raw_bytes)? == certificate.der.as_ref(),
        _ => false,
    };
    ours(is_ours)
}

fn ours(is_ours: bool) -> Result<(), String> {
    if is_ours { Ok(()) } else { Err("the log entry is about another key or certificate".to_owned()) }
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|_| "the log entry's body is not base64 where it must be".to_owned())
}

#[cfg(test)]
mod tests;
