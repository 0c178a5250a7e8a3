//! The signed claim: the image that it is about, and its statements about this image. The statements of a claim count
//! only after its signature was found valid.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::digest::Subject;
use crate::json::{self, Few};
use crate::requirement::{ReferenceCheck, Requirement};
use crate::verdict::Class;

/// Predicate type by which cosign 3 states that an image is signed.
pub(crate) const SIGN_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";
/// Payload type of an in-toto statement in a DSSE envelope.
pub(crate) const STATEMENT_PAYLOAD: &str = "application/vnd.in-toto+json";
/// The `type` in a legacy payload (containers/image's simple signing, as cosign writes it).
const PAYLOAD_TYPE: &str = "cosign container image signature";
const STATEMENT_TYPES: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// Maximum number of subjects of one statement; a release with many images has some hundreds.
const SUBJECTS_MAX: usize = 8192;
/// Maximum number of bytes of a claim's text in a message.
const SHOWN_BYTES_MAX: usize = 128;

/// The annotations that a signature states about an image.
type Annotations<'a> = Option<Cow<'a, BTreeMap<String, Value>>>;

#[derive(Debug)]
pub(crate) enum Claim {
    Payload(Payload),
    Statement(Statement),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Payload {
    critical: Critical,
    #[serde(default)]
    optional: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    r#type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Identity {
    docker_reference: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Few<StatementSubject, SUBJECTS_MAX>,
    pub(crate) predicate_type: String,
}

/// The predicate of a statement. The predicate is the largest field of an attestation, so it is parsed only if a rule
/// needs it.
#[derive(Deserialize)]
struct Predicate {
    #[serde(default)]
    predicate: Value,
}

#[derive(Debug, Deserialize)]
struct StatementSubject {
    #[serde(default)]
    digest: SubjectDigest,
    #[serde(default)]
    annotations: Option<Box<RawValue>>,
}

/// The SHA-256 digest of a subject. Other digests of the subject are skipped, because this crate identifies images only
/// by SHA-256.
#[derive(Debug, Default, Deserialize)]
struct SubjectDigest {
    sha256: Option<String>,
}

impl Claim {
    pub(crate) fn payload(bytes: &[u8]) -> Result<Self, String> {
        let payload: Payload =
            json::read(bytes).map_err(|error| format!("the payload is not one of a signature: {error}"))?;
        if payload.critical.r#type != PAYLOAD_TYPE {
            return Err(format!("the payload is a `{}`, not a `{PAYLOAD_TYPE}`", shown(&payload.critical.r#type)));
        }
        Ok(Self::Payload(payload))
    }

    pub(crate) fn statement(bytes: &[u8]) -> Result<Self, String> {
        let statement: Statement =
            json::read(bytes).map_err(|error| format!("the envelope holds no in-toto statement: {error}"))?;
        if !STATEMENT_TYPES.contains(&statement.kind.as_str()) {
            return Err(format!("the statement is a `{}`, not one of in-toto", shown(&statement.kind)));
        }
        Ok(Self::Statement(statement))
    }

    /// Predicate type of an attestation; `None` if the claim is a signature.
    pub(crate) fn predicate_type(&self) -> Option<&str> {
        match self {
            Self::Payload(_) => None,
            Self::Statement(statement) => Some(&statement.predicate_type),
        }
    }

    /// Checks that the claim is about `subject`, and states what `requirement` demands.
    pub(crate) fn check(&self, subject: &Subject, requirement: &Requirement) -> Result<(), (Class, String)> {
        let annotations = self.annotations_of(subject)?;
        let annotations = annotations.as_deref();
        if requirement.reference == ReferenceCheck::Repository {
            self.check_repository(subject)?;
        }
        for (key, wanted) in &requirement.annotations {
            let cause = match annotations.and_then(|all| all.get(key)) {
                Some(Value::String(found)) if found == wanted => continue,
                Some(Value::String(found)) => format!("its annotation `{key}` is `{}`, not `{wanted}`", shown(found)),
                Some(_) => format!("its annotation `{key}` is no text, so not `{wanted}`"),
                None => format!("it has no annotation `{key}`, which must be `{wanted}`"),
            };
            return Err((Class::Invalid, cause));
        }
        Ok(())
    }

    /// The annotations of the signed image, if the claim is about `subject`.
    fn annotations_of(&self, subject: &Subject) -> Result<Annotations<'_>, (Class, String)> {
        let wanted = subject.digest.to_string();
        match self {
            Self::Payload(payload) => {
                let signed = &payload.critical.image.docker_manifest_digest;
                if *signed == wanted {
                    return Ok(payload.optional.as_ref().map(Cow::Borrowed));
                }
                Err((Class::Mismatch, format!("it signs the image {}, not {wanted}", shown(signed))))
            }
            Self::Statement(statement) => {
                let hex = subject.digest.hex();
                let is_ours = |one: &&StatementSubject| one.digest.sha256.as_ref() == Some(&hex);
                if let Some(ours) = statement.subject.iter().find(is_ours) {
                    let Some(raw) = &ours.annotations else { return Ok(None) };
                    let unreadable = |error| (Class::Invalid, format!("its annotations cannot be read: {error}"));
                    return serde_json::from_str(raw.get())
                        .map(|all: Option<_>| all.map(Cow::Owned))
                        .map_err(unreadable);
                }
                let signed = statement.subject.iter().find_map(|one| one.digest.sha256.as_ref());
                let signed =
                    signed.map_or("nothing with a SHA-256 digest".to_owned(), |hex| format!("sha256:{}", shown(hex)));
                Err((Class::Mismatch, format!("its statement is about {signed}, not {wanted}")))
            }
        }
    }

    fn check_repository(&self, subject: &Subject) -> Result<(), (Class, String)> {
        let Self::Payload(payload) = self else {
            let cause = "a statement names no repository, and the rule wants the one that was signed";
            return Err((Class::Mismatch, cause.to_owned()));
        };
        let signed = repository_of(&payload.critical.identity.docker_reference);
        match &subject.repository {
            Some(wanted) if signed == *wanted => Ok(()),
            Some(wanted) => Err((Class::Mismatch, format!("it was signed as {}, not as {wanted}", shown(&signed)))),
            None => {
                Err((Class::Misconfigured, "the repository of the image is to be checked and is not known".to_owned()))
            }
        }
    }
}

impl Statement {
    /// The predicate of the statement in `payload`; null if the statement has no predicate.
    pub(crate) fn predicate(payload: &[u8]) -> Result<Value, String> {
        let read: Result<Predicate, _> = json::read(payload);
        read.map(|read| read.predicate).map_err(|error| format!("its predicate cannot be read: {error}"))
    }
}

/// Makes text from a claim safe for a message.
pub(crate) fn shown(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= SHOWN_BYTES_MAX).unwrap_or(text.len());
    text[..end].chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// The repository in `reference`, without tag and digest. A missing host is added as Go tools do.
fn repository_of(reference: &str) -> String {
    let name = reference.split('@').next().unwrap_or_default();
    let after_slash = name.rfind('/').map_or(0, |at| at + 1);
    let name = match name[after_slash..].find(':') {
        // `localhost:5000` alone has no repository, so the part after the colon is a tag.
        Some(at) => &name[..after_slash + at],
        None => name,
    };
    let has_host = name.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost");
    match (has_host, name.contains('/')) {
        (true, _) => match name.strip_prefix("docker.io/") {
            Some(rest) if rest.contains('/') => format!("index.docker.io/{rest}"),
            Some(rest) => format!("index.docker.io/library/{rest}"),
            None => name.to_owned(),
        },
        (false, true) => format!("index.docker.io/{name}"),
        (false, false) => format!("index.docker.io/library/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_found_in_every_spelling() {
        for (reference, repository) in [
            ("nginx", "index.docker.io/library/nginx"),
            ("nginx:1", "index.docker.io/library/nginx"),
            ("docker.io/nginx", "index.docker.io/library/nginx"),
            ("team/app", "index.docker.io/team/app"),
            ("index.docker.io/team/app:v1", "index.docker.io/team/app"),
            ("127.0.0.1:5000/app", "127.0.0.1:5000/app"),
            ("127.0.0.1:5000/a/b:v1@sha256:00", "127.0.0.1:5000/a/b"),
            ("localhost/a", "localhost/a"),
        ] {
            assert_eq!(repository_of(reference), repository, "{reference}");
        }
    }

    #[test]
    fn foreign_texts_are_short_and_plain_in_messages() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\u{fffd}b\u{fffd}[31m");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), 64);
    }
}
