//! The second opinion: sigstore's own Rust client (`sigstore-verify`), asked about a bundle as the verifier is asked.
//!
//! Owns how a question is put to it: the same root, the same file `trusted_root.json`, the same demands. It knows no manifests, no
//! annotations, no types of predicates and no patterns of names, so [`asked_alike`] takes from a question what is not about the
//! bundle, and [`Theirs`] holds the names that *they* read against the rule's patterns. It shares no code with the verifier but
//! those patterns, and what both stand on: webpki, aws-lc-rs, x509-cert.

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

/// Predicate type by which cosign says that an image is signed.
const SIGN_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";

/// Their verifier with one question.
pub struct Theirs {
    verifier: Verifier,
    asked: Asked,
    needs_stamp: bool,
}

enum Asked {
    Key(PublicKeyVerificationPolicy),
    Keyless { policy: VerificationPolicy, issuer: Pattern, subject: Pattern },
}

impl Theirs {
    /// Whether `root` of `trust`, whose authority is a `trusted_root.json`, accepts what `requirement` demands.
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
                Asked::Key(if requirement.transparency_log { policy } else { policy.skip_tlog_unsafe() })
            }
            RootKind::Keyless { issuer, subject } => {
                let mut policy = VerificationPolicy::any_identity();
                if !requirement.transparency_log {
                    policy = policy.skip_tlog_unsafe();
                }
                if !requirement.certificate_timestamp {
                    policy = policy.skip_sct();
                }
                Asked::Keyless { policy, issuer: issuer.clone(), subject: subject.clone() }
            }
        };
        Ok(Self { verifier, asked, needs_stamp: requirement.timestamps == Timestamps::Required })
    }

    /// Whether they accept `json` for `image`, or why not.
    pub fn judge(&self, json: &[u8], image: Digest) -> Result<(), String> {
        let text = std::str::from_utf8(json).map_err(|error| error.to_string())?;
        let bundle = types::Bundle::from_json(text).map_err(|error| error.to_string())?;
        // They check every timestamp that is there, and cannot be told that one must be.
        let stamps = &bundle.verification_material.timestamp_verification_data.rfc3161_timestamps;
        if self.needs_stamp && stamps.is_empty() {
            return Err("no timestamp".to_owned());
        }
        let image = Sha256Hash::new(*image.as_bytes());
        match &self.asked {
            Asked::Key(policy) => {
                self.verifier.verify(image, &bundle, policy).map_err(|error| error.to_string())?;
            }
            Asked::Keyless { policy, issuer, subject } => {
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

/// The bundle among `piece`, with the manifest around it put right, and `requirement` without what is not about the bundle: which
/// annotations a statement has, and of which type it is. `None` for legacy pieces, which are no bundles.
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

/// Of the statement in a bundle, if there is one to be read.
fn predicate_type(json: &[u8]) -> Option<String> {
    let bundle: Value = serde_json::from_slice(json).ok()?;
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str()?).ok()?;
    let statement: Value = serde_json::from_slice(&payload).ok()?;
    Some(statement["predicateType"].as_str()?.to_owned())
}
