//! Tests of log entries: an entry of any kind is refused if its content, signature or key is replaced.

use serde_json::{Value, json};

use super::*;

const OURS: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhyQCx0E9wQWSFI9ULGwy3BuRklnt\nIqozONbbdbqz11hlRJy9c7SG+hdcFl9jE9uE/dwtuwU2MqU9T/cN0YkWww==\n-----END PUBLIC KEY-----\n";
const THEIRS: &str = "-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n";
const MESSAGE: &[u8] = b"message";
const PAYLOAD: &[u8] = b"payload";
const ENVELOPE: &[u8] = b"envelope";
const SIGNATURE: &[u8] = b"signature";

fn b64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn hex_of(bytes: &[u8]) -> Value {
    json!({"algorithm": "sha256", "value": hex::encode(digest(&SHA256, bytes))})
}

fn raw_of(bytes: &[u8]) -> Value {
    json!({"algorithm": "SHA2_256", "digest": b64(digest(&SHA256, bytes))})
}

/// A kind of log entries, its version, a valid entry, and pointers to the values in the entry that must not be
/// replaced.
type Kind = (&'static str, &'static str, Value, &'static [(&'static str, Other)]);

/// The kinds of replacements for a value in a log entry.
#[derive(Debug, Clone, Copy)]
enum Other {
    HexHash,
    RawHash,
    Signature,
    /// Base64 of base64, as in intoto 0.0.2.
    TwiceEncoded,
    Pem,
    RawKey,
    Type,
    /// The list of signatures with every item twice.
    Twice,
}

fn kinds(spki: &[u8]) -> Vec<Kind> {
    use Other::{HexHash, Pem, RawHash, RawKey, Signature, Twice, TwiceEncoded, Type};
    let (signature, pem, raw) = (b64(SIGNATURE), b64(OURS), json!({"publicKey": {"rawBytes": b64(spki)}}));
    vec![
        (
            "hashedrekord",
            "0.0.1",
            json!({"data": {"hash": hex_of(MESSAGE)}, "signature": {"content": signature, "publicKey": {"content": pem}}}),
            &[("/data/hash", HexHash), ("/signature/content", Signature), ("/signature/publicKey/content", Pem)],
        ),
        (
            "hashedrekord",
            "0.0.2",
            json!({"hashedRekordV002": {"data": raw_of(MESSAGE), "signature": {"content": signature, "verifier": raw}}}),
            &[
                ("/hashedRekordV002/data", RawHash),
                ("/hashedRekordV002/signature/content", Signature),
                ("/hashedRekordV002/signature/verifier", RawKey),
            ],
        ),
        (
            "dsse",
            "0.0.1",
            json!({"payloadHash": hex_of(PAYLOAD), "signatures": [{"signature": signature, "verifier": pem}]}),
            &[
                ("/payloadHash", HexHash),
                ("/signatures/0/signature", Signature),
                ("/signatures/0/verifier", Pem),
                ("/signatures", Twice),
            ],
        ),
        (
            "dsse",
            "0.0.2",
            json!({"dsseV002": {
                "payloadHash": raw_of(PAYLOAD), "signatures": [{"content": signature, "verifier": raw}],
            }}),
            &[
                ("/dsseV002/payloadHash", RawHash),
                ("/dsseV002/signatures/0/content", Signature),
                ("/dsseV002/signatures/0/verifier", RawKey),
                ("/dsseV002/signatures", Twice),
            ],
        ),
        (
            "intoto",
            "0.0.1",
            json!({"content": {"hash": hex_of(ENVELOPE), "payloadHash": hex_of(PAYLOAD)}, "publicKey": pem}),
            &[("/content/hash", HexHash), ("/content/payloadHash", HexHash), ("/publicKey", Pem)],
        ),
        (
            "intoto",
            "0.0.2",
            json!({"content": {
                "envelope": {
                    "payloadType": STATEMENT_PAYLOAD, "signatures": [{"sig": b64(&signature), "publicKey": pem}],
                },
                "payloadHash": hex_of(PAYLOAD),
            }}),
            &[
                ("/content/payloadHash", HexHash),
                ("/content/envelope/payloadType", Type),
                ("/content/envelope/signatures/0/sig", TwiceEncoded),
                ("/content/envelope/signatures/0/publicKey", Pem),
                ("/content/envelope/signatures", Twice),
            ],
        ),
    ]
}

/// The replacement for the value `found`, and the text that the cause of the refusal must contain.
fn other(kind: Other, found: &Value) -> (Value, &'static str) {
    match kind {
        Other::HexHash => (hex_of(b"other"), "other content"),
        Other::RawHash => (raw_of(b"other"), "other content"),
        Other::Signature => (b64(b"other").into(), "another signature"),
        Other::TwiceEncoded => (b64(b64(b"other")).into(), "another signature"),
        Other::Pem => (b64(THEIRS).into(), "another key"),
        Other::RawKey => (json!({"publicKey": {"rawBytes": b64(b"other")}}), "another key"),
        Other::Type => ("text/plain".into(), "another type"),
        Other::Twice => (json!([found[0], found[0]]), "2 signatures"),
    }
}

#[test]
fn an_entry_of_any_kind_is_about_this_content_signature_and_key() {
    let key = PublicKey::from_pem(OURS).unwrap();
    let logged = Logged {
        message: MESSAGE,
        envelope_payload: Some(PAYLOAD),
        envelope: Some(ENVELOPE),
        signature: SIGNATURE,
        verifier: Verifier::Key(&key),
    };
    for (kind, version, spec, places) in kinds(key.spki()) {
        let body = |spec: &Value| json!({"apiVersion": version, "kind": kind, "spec": spec}).to_string().into_bytes();
        assert_eq!(check(&body(&spec), None, logged), Ok(()), "{kind} {version}");
        for (place, change) in places {
            let mut forged = spec.clone();
            let at = forged.pointer_mut(place).unwrap();
            let (value, cause) = other(*change, at);
            *at = value;
            let refused = check(&body(&forged), None, logged).expect_err(place);
            assert!(refused.contains(cause), "{kind} {version} {place}: {refused}");
        }
    }
}

/// If a bundle's log entry has no signature, it is refused, because only the signature identifies the bundle's
/// envelope.
#[test]
fn an_entry_that_names_no_signature_is_none_of_a_bundle() {
    let key = PublicKey::from_pem(OURS).unwrap();
    let (_, _, spec, _) = kinds(key.spki()).remove(4);
    let body = json!({"apiVersion": "0.0.1", "kind": "intoto", "spec": spec}).to_string();
    let logged = Logged {
        message: MESSAGE,
        envelope_payload: Some(PAYLOAD),
        envelope: None,
        signature: SIGNATURE,
        verifier: Verifier::Key(&key),
    };
    assert!(check(body.as_bytes(), None, logged).unwrap_err().contains("does not bind a signature"));
}
