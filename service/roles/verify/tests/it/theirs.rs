//! Sigstore's own Rust client (`sigstore-verify`), to which the verifier is compared.
//!
//! This module calls the client with the root, the `trusted_root.json` and the demands that the verifier gets. The
//! client knows no manifests, annotations, predicate types or name patterns. So [`asked_alike`] removes demands that do
//! not concern the bundle, and [`Theirs`] compares the names in the client's result with the rule's patterns. The
//! client and the verifier share only these patterns and common libraries: webpki, aws-lc-rs, x509-cert.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use service_verify::{
    AttestationRule, AuthorityText, Bundle, Digest, Evidence, Pattern, Requirement, RootKind, Subject, Timestamps,
    TrustSpec,
};
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::{self, DerPublicKey, Sha256Hash};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationPolicy, Verifier};

/// The predicate type by which cosign states that an image is signed.
const SIGN_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The client, set up for one trust root and one requirement.
pub struct Theirs {
    verifier: Verifier,
    asked: Query,
    needs_stamp: bool,
}

enum Query {
    Key(PublicKeyVerificationPolicy),
    Keyless { policy: VerificationPolicy, issuer: Pattern, subject: Pattern },
}

impl Theirs {
    /// The client for `root` of `trust`, under `requirement`. The root's authority must be a `trusted_root.json`.
    pub fn new(trust: &TrustSpec, root: &str, requirement: &Requirement) -> Result<Self, String> {
        let text = trust.authorities.iter().find_map(|authority| match &authority.text {
            AuthorityText::TrustedRoot { json } => Some(json),
            AuthorityText::Listed(_) => None,
        });
        let file = TrustedRoot::from_json(text.expect("a trusted_root.json")).map_err(|error| error.to_string())?;
        let verifier = Verifier::new(&file).map_err(|error| error.to_string())?;
        let root = trust.roots.iter().find(|known| known.name == root).expect("a root that is configured");
        let asked = match &root.kind {
            RootKind::Key { pem } => {
                let key = DerPublicKey::from_pem(pem).map_err(|error| error.to_string())?;
                let policy = PublicKeyVerificationPolicy::new(key);
                Query::Key(if requirement.transparency_log { policy } else { policy.skip_tlog_unsafe() })
            }
            RootKind::Keyless { issuer, subject } => {
                let mut policy = VerificationPolicy::any_identity();
                if !requirement.transparency_log {
                    policy = policy.skip_tlog_unsafe();
                }
                if !requirement.certificate_timestamp {
                    policy = policy.skip_sct();
                }
                Query::Keyless { policy, issuer: issuer.clone(), subject: subject.clone() }
            }
        };
        Ok(Self { verifier, asked, needs_stamp: requirement.timestamps == Timestamps::Required })
    }

    /// Whether the client accepts `json` for `image`; the error is the reason for a refusal.
    pub fn judge(&self, json: &[u8], image: Digest) -> Result<(), String> {
        let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
        let bundle = types::Bundle::from_json(text).map_err(|error| error.to_string())?;
        // They check every present timestamp, and have no option to demand one.
        let stamps = &bundle.verification_material.timestamp_verification_data.rfc3161_timestamps;
        if self.needs_stamp && stamps.is_empty() {
            return Err("no timestamp".to_owned());
        }
        let image = Sha256Hash::new(*image.as_bytes());
        match &self.asked {
            Query::Key(policy) => {
                self.verifier.verify(image, &bundle, policy).map_err(|error| error.to_string())?;
            }
            Query::Keyless { policy, issuer, subject } => {
                let said = self.verifier.verify(image, &bundle, policy).map_err(|error| error.to_string())?;
                if !said.issuer().is_some_and(|text| issuer.accepts(text)) {
                    return Err(format!("issuer {:?}", said.issuer()));
                }
                if !said.identity().is_some_and(|name| subject.accepts(name.as_str())) {
                    return Err(format!("identity {:?}", said.identity()));
                }
            }
        }
        Ok(())
    }
}

/// The bundle in `piece`, with a correct manifest, and `requirement` without demands that do not concern the bundle:
/// annotations and predicate types. The result is `None` for legacy signatures.
pub fn asked_alike(piece: &Evidence, subject: &Subject, requirement: &Requirement) -> Option<(Bundle, Requirement)> {
    let Evidence::Bundle(bundle) = piece else { return None };
    let media_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let bundle = Bundle {
        subject: Some(subject.digest),
        media_type: media_type.to_owned(),
        artifact_type: media_type.to_owned(),
        ..bundle.clone()
    };
    let predicate_type = predicate_type(&bundle.json).filter(|text| text != SIGN_TYPE);
    let requirement = Requirement {
        annotations: [].into(),
        image_signature: predicate_type.is_none(),
        attestations: predicate_type
            .map(|predicate_type| AttestationRule { predicate_type, fields: Vec::new() })
            .into_iter()
            .collect(),
        ..requirement.clone()
    };
    Some((bundle, requirement))
}

/// The predicate type of the statement in a bundle; `None` if it cannot be read.
fn predicate_type(json: &[u8]) -> Option<String> {
    let bundle: Value = serde_json::from_slice(json).ok()?;
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str()?).ok()?;
    let statement: Value = serde_json::from_slice(&payload).ok()?;
    Some(statement["predicateType"].as_str()?.to_owned())
}
