//! Parses the answer of a validator; each possible fault of an answer has a message.
//!
//! An answer that breaks the protocol says nothing about the image, so no verdict on the image is known.

use http::StatusCode;
use serde::Deserialize;
use service_core::judge::{About, CONTRACT, Ruling, VERIFIED};

/// The failure classes, a closed list.
pub const CLASSES: [&str; 11] = [
    "not-found",
    "auth",
    "unavailable",
    "misconfigured",
    "internal",
    "unsigned",
    "invalid",
    "mismatch",
    "denied",
    "too-much-evidence",
    "busy",
];
/// Maximum number of signers in an answer; an audit log shows eight signers.
const SIGNERS_MAX: usize = 64;
/// Maximum number of bytes of the other process' text in a message of this program.
const SHOWN_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    #[error("it answered {status}{}", quotation(text))]
    Status { status: StatusCode, text: String },
    #[error("its answer is {what} at line {line}, column {column}: the contract is in docs/contract.md")]
    Shape { what: &'static str, line: usize, column: usize },
    #[error(
        "it speaks version {theirs} of the contract, and this program version {CONTRACT}: bring both to one release"
    )]
    Version { theirs: u32 },
    #[error("its answer is about another image ({}), so it is ignored", shown(theirs))]
    OtherImage {
        /// The digest of the image that the answer is about.
        theirs: String,
    },
    #[error("it answers `{}`, which is no class of this program: verified, {}", shown(theirs), CLASSES.join(", "))]
    UnknownClass { theirs: String },
    #[error("it names more than {SIGNERS_MAX} signers")]
    Crowd,
    /// A fault in an answer of a provider for Gatekeeper.
    #[error("{0}")]
    Other(String),
    #[error("it answers `verified` without a signer: an approval needs one")]
    NoSigner,
    #[error("it answers `verified` and `unasked`: one of them is wrong")]
    Unasked,
    /// The answer has no generation (a text that changes with the trusted keys), so the time for which the answer may
    /// be used is unknown.
    #[error("it names no generation of its trust, so outdated answers cannot be recognised")]
    NoGeneration,
}

impl Breach {
    /// Whether the inquiry itself was refused, so that another attempt would not help.
    pub fn is_of_question(&self) -> bool {
        let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        matches!(self, Self::Status { status, .. } if status.is_client_error() && !again.contains(status))
    }
}

#[derive(Deserialize)]
struct Refused {
    error: String,
}

/// The ruling in `body`, which must be about the image with the digest `digest`.
pub fn ruling(status: StatusCode, body: &[u8], digest: &str) -> Result<Ruling, Breach> {
    success(status, body)?;
    let ruling: Ruling = read(body)?;
    version(ruling.contract)?;
    if ruling.digest != digest {
        return Err(Breach::OtherImage { theirs: ruling.digest });
    }
    if ruling.verdict != VERIFIED && !CLASSES.contains(&&*ruling.verdict) {
        return Err(Breach::UnknownClass { theirs: ruling.verdict });
    }
    if ruling.signers.len() > SIGNERS_MAX {
        return Err(Breach::Crowd);
    }
    if ruling.generation.is_empty() {
        return Err(Breach::NoGeneration);
    }
    consistent(&ruling)?;
    Ok(ruling)
}

/// Refuses a ruling that approves without a signer, or without having asked the registry.
pub fn consistent(ruling: &Ruling) -> Result<(), Breach> {
    if ruling.verdict != VERIFIED {
        Ok(())
    } else if ruling.unasked {
        Err(Breach::Unasked)
    } else if ruling.signers.is_empty() {
        Err(Breach::NoSigner)
    } else {
        Ok(())
    }
}

/// The validator's description of itself, parsed from `body`.
pub fn about(status: StatusCode, body: &[u8]) -> Result<About, Breach> {
    success(status, body)?;
    let about: About = read(body)?;
    version(about.contract)?;
    if about.generation.is_empty() { Err(Breach::NoGeneration) } else { Ok(about) }
}

pub fn success(status: StatusCode, body: &[u8]) -> Result<(), Breach> {
    if status == StatusCode::OK {
        return Ok(());
    }
    let text = serde_json::from_slice(body).map_or_else(|_| String::new(), |Refused { error }| error);
    Err(Breach::Status { status, text })
}

/// Parses the JSON in `body` as `T`. The JSON library's messages are not shown, because they may contain the received
/// text.
pub fn read<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Breach> {
    serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() { "not the fields of the contract" } else { "no JSON" };
        Breach::Shape { what, line: error.line(), column: error.column() }
    })
}

fn version(theirs: u32) -> Result<(), Breach> {
    if theirs == CONTRACT { Ok(()) } else { Err(Breach::Version { theirs }) }
}

fn quotation(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {}", shown(text)) }
}

/// A text from another process, on one line and shortened.
fn shown(text: &str) -> String {
    let mut end = text.len().min(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(change: impl FnOnce(&mut serde_json::Value)) -> Result<Ruling, String> {
        let mut value = serde_json::json!({"contract": 1, "generation": "g", "digest": "sha256:a", "verdict": "unsigned", "cause": "c"});
        change(&mut value);
        ruling(StatusCode::OK, value.to_string().as_bytes(), "sha256:a").map_err(|breach| breach.to_string())
    }

    /// Every fault of an answer has its own message, and no faulty answer counts as a ruling.
    #[test]
    fn each_breach_is_a_sentence() {
        assert_eq!(answer(|_| {}).unwrap().verdict, "unsigned");
        let wrong = |change: fn(&mut serde_json::Value)| answer(change).unwrap_err();
        let said = [
            wrong(|value| value["digest"] = "sha256:b".into()),
            wrong(|value| value["verdict"] = "perhaps".into()),
            wrong(|value| value["contract"] = 2.into()),
            wrong(|value| value["generation"] = "".into()),
            wrong(|value| value["signers"] = vec![serde_json::json!({"name": "n", "evidence": "e"}); 65].into()),
            wrong(|value| value["verdict"] = VERIFIED.into()),
            wrong(|value| {
                value["verdict"] = VERIFIED.into();
                value["signers"] = serde_json::json!([{"name": "n", "evidence": "e"}]);
                value["unasked"] = true.into();
            }),
            wrong(|value| drop(value.as_object_mut().unwrap().remove("verdict"))),
            ruling(StatusCode::OK, b"<html>", "sha256:a").unwrap_err().to_string(),
            ruling(StatusCode::BAD_GATEWAY, br#"{"error": "no\nupstream"}"#, "sha256:a").unwrap_err().to_string(),
        ];
        assert_eq!(
            said,
            [
                "its answer is about another image (sha256:b), so it is ignored",
                "it answers `perhaps`, which is no class of this program: verified, not-found, auth, unavailable, misconfigured, \
                 internal, unsigned, invalid, mismatch, denied, too-much-evidence, busy",
                "it speaks version 2 of the contract, and this program version 1: bring both to one release",
                "it names no generation of its trust, so outdated answers cannot be recognised",
                "it names more than 64 signers",
                "it answers `verified` without a signer: an approval needs one",
                "it answers `verified` and `unasked`: one of them is wrong",
                "its answer is not the fields of the contract at line 1, column 63: the contract is in docs/contract.md",
                "its answer is no JSON at line 1, column 1: the contract is in docs/contract.md",
                "it answered 502 Bad Gateway: no?upstream",
            ]
        );
    }

    /// The published schema has the same fields and classes as this module.
    #[test]
    fn the_schema_has_these_fields_and_classes() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../../docs/contract.schema.json")).unwrap();
        let ruling = &schema["$defs"]["ruling"]["properties"];
        let mut verdicts = vec![VERIFIED];
        verdicts.extend(CLASSES);
        assert_eq!(ruling["verdict"]["enum"], serde_json::json!(verdicts));
        assert_eq!(ruling["signers"]["maxItems"], SIGNERS_MAX);
        let signed = service_core::judge::Signed { name: "n".into(), evidence: "e".into() };
        let full = Ruling {
            contract: CONTRACT,
            generation: "g".into(),
            digest: "d".into(),
            verdict: "denied".into(),
            signers: vec![signed],
            cause: "c".into(),
            unasked: true,
        };
        let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(ruling), keys(&serde_json::to_value(full).unwrap()));
    }

    proptest::proptest! {
        /// Any answer gives either an error message without control characters or a ruling about the requested image.
        #[test]
        fn any_answer_is_a_sentence_or_about_the_image(status in 100_u16..600, text in "\\PC*|[{}\":,a-z0-9\\[\\]]{0,200}", bytes: Vec<u8>) {
            let status = StatusCode::from_u16(status).unwrap();
            for body in [text.as_bytes(), &bytes] {
                match ruling(status, body, "sha256:a") {
                    Ok(ruling) => proptest::prop_assert_eq!(ruling.digest, "sha256:a"),
                    Err(breach) => proptest::prop_assert!(!breach.to_string().contains(char::is_control)),
                }
            }
        }
    }

    #[test]
    fn a_refused_question_is_told_from_an_instance_that_is_busy() {
        let breach = |code: u16| ruling(StatusCode::from_u16(code).unwrap(), b"", "d").unwrap_err().is_of_question();
        assert!(breach(400) && breach(404) && breach(413));
        assert!(!breach(429) && !breach(408) && !breach(503));
    }
}
