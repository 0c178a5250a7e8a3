//! Makes signatures by recipe with a sigstore instance in memory. A forged signature differs from a valid signature
//! only in the one change that its recipe makes; everything else is signed correctly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mock_sigstore::{Entry, Identity, KeyPair, Made, Sigstore, envelope_message, new_key, pem};
use rcgen::{PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};
use service_verify::{
    Attestation, AuthoritySpec, AuthorityText, Bundle, Companions, Digest, Evidence, Listed, Pattern, RootKind,
    RootSpec, Signature, Subject, Trust, TrustError, TrustSpec, UnixTime,
};

pub use mock_sigstore::{CertificateRecipe, LogRecipe, Promise, Proof, ScTs, StampRecipe};

pub const NOW: i64 = 1_790_000_000;
pub const SUBJECT: &str = "release@example.com";
pub const ISSUER: &str = "https://issuer.example.com";
pub const REPOSITORY: &str = "registry.example.com/app";
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub const SIGN_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";
pub const BUILD_TYPE: &str = "https://example.com/build/v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Signature,
    Attestation,
    Bundle,
    BundleAttestation,
}

/// All properties of one signature to make. `Recipe::new` gives the recipe of a valid signature.
#[derive(Clone)]
pub struct Recipe {
    pub form: Form,
    /// Whether the signature has a certificate; if false, a key without certificate signed.
    pub is_keyless: bool,
    /// The image that the signed content names.
    pub signed_image: Digest,
    pub signed_repository: String,
    /// The field `critical.type` of a payload, or `_type` of a statement.
    pub claim_type: String,
    pub payload_type: String,
    pub annotations: Value,
    pub predicate: Value,
    pub predicate_type: String,
    /// Index of the signer's key; key 0 is trusted.
    pub signer: usize,
    /// Bytes that are signed instead of the bytes in the signature's payload.
    pub signed_instead: Option<Vec<u8>>,
    /// A change of the signature's bytes, made before the log entry and other fields use the bytes.
    pub signature_edit: fn(&mut Vec<u8>),
    pub certificate: CertificateRecipe,
    pub log: Option<LogRecipe>,
    pub stamp: Option<StampRecipe>,
    pub media_type: String,
    pub artifact_type: String,
    pub refers_to: Option<Digest>,
    /// Whether the log has the hash of the signed bytes instead of an envelope.
    pub is_logged_by_hash: bool,
    pub envelope_signatures: usize,
    /// A change of a bundle's JSON after the bundle was made.
    pub bundle_edit: fn(&mut Value),
    /// A change of a legacy signature's annotations after the signature was made.
    pub companions_edit: fn(&mut Companions),
    /// A change of the payload's or bundle's bytes after the signature was made.
    pub bytes_edit: fn(&mut Vec<u8>),
}

/// A sigstore instance in memory, with two trusted signers and an untrusted signer.
pub struct Forge {
    keys: Vec<KeyPair>,
    sigstore: Sigstore,
}

pub fn b64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

pub fn from_b64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

/// The recipe of a valid timestamp.
pub fn stamp() -> StampRecipe {
    StampRecipe::new(NOW)
}

pub fn image() -> Digest {
    Digest::of(b"image")
}

pub fn subject() -> Subject {
    Subject { digest: image(), repository: Some(REPOSITORY.to_owned()) }
}

pub fn now() -> UnixTime {
    UnixTime(NOW)
}

impl Recipe {
    pub fn new(form: Form, is_keyless: bool) -> Self {
        let is_legacy = matches!(form, Form::Signature | Form::Attestation);
        let is_attestation = matches!(form, Form::Attestation | Form::BundleAttestation);
        let media_type = match form {
            Form::Signature => "application/vnd.dev.cosign.simplesigning.v1+json",
            Form::Attestation => "application/vnd.dsse.envelope.v1+json",
            Form::Bundle | Form::BundleAttestation => BUNDLE_TYPE,
        };
        let claim_type = match form {
            Form::Signature => "cosign container image signature",
            _ => "https://in-toto.io/Statement/v1",
        };
        Self {
            form,
            is_keyless,
            signed_image: image(),
            signed_repository: REPOSITORY.to_owned(),
            claim_type: claim_type.to_owned(),
            payload_type: "application/vnd.in-toto+json".to_owned(),
            annotations: json!({"env": "prod"}),
            predicate: json!({"builder": {"id": "ours"}, "level": 3, "tags": ["a"]}),
            predicate_type: if is_attestation { BUILD_TYPE } else { SIGN_TYPE }.to_owned(),
            signer: 0,
            signed_instead: None,
            signature_edit: |_| {},
            certificate: CertificateRecipe::new(Identity { issuer: ISSUER, subject: SUBJECT }, NOW).unwrap(),
            log: Some(LogRecipe::new(NOW, is_legacy)),
            stamp: None,
            media_type: media_type.to_owned(),
            artifact_type: BUNDLE_TYPE.to_owned(),
            refers_to: Some(image()),
            is_logged_by_hash: form == Form::Signature,
            envelope_signatures: 1,
            bundle_edit: |_| {},
            companions_edit: |_| {},
            bytes_edit: |_| {},
        }
    }

    fn claim(&self) -> Vec<u8> {
        let claim = match self.form {
            Form::Signature => json!({
                "critical": {
                    "identity": {"docker-reference": self.signed_repository},
                    "image": {"docker-manifest-digest": self.signed_image.to_string()},
                    "type": self.claim_type,
                },
                "optional": self.annotations,
            }),
            _ => json!({
                "_type": self.claim_type,
                "subject": [{"digest": {"sha256": self.signed_image.hex()}, "annotations": self.annotations}],
                "predicateType": self.predicate_type,
                "predicate": self.predicate,
            }),
        };
        claim.to_string().into_bytes()
    }
}

impl Forge {
    pub fn new() -> Self {
        Self { keys: (0..3).map(|_| new_key().unwrap()).collect(), sigstore: Sigstore::new(NOW).unwrap() }
    }

    /// Trust in key 0 as `key`, in key 1 as `second`, and in the certificate identity as `keyless`.
    pub fn trust(&self) -> Trust {
        Trust::compile(&self.trust_spec()).unwrap()
    }

    pub fn trust_spec(&self) -> TrustSpec {
        let root = |name: &str, kind: RootKind| RootSpec {
            name: name.to_owned(),
            kind,
            authorities: vec!["sigstore".to_owned()],
        };
        let keyless =
            RootKind::Keyless { issuer: Pattern::exact(ISSUER).unwrap(), subject: Pattern::exact(SUBJECT).unwrap() };
        let listed = Listed {
            certificate_authorities: vec![self.sigstore.authority_pem()],
            log_keys: vec![self.sigstore.log_pem()],
            ct_log_keys: vec![self.sigstore.certificate_log_pem()],
            timestamp_authorities: vec![self.sigstore.stamper_pem()],
        };
        TrustSpec {
            roots: vec![
                root("key", RootKind::Key { pem: self.keys[0].public_key_pem() }),
                root("second", RootKind::Key { pem: self.keys[1].public_key_pem() }),
                root("keyless", keyless),
            ],
            authorities: vec![AuthoritySpec { name: "sigstore".to_owned(), text: AuthorityText::Listed(listed) }],
        }
    }

    /// The trust of [`Self::trust`] as a `trusted_root.json` that `edit` has changed.
    pub fn trust_spec_of_file(&self, edit: impl Fn(&mut Value)) -> TrustSpec {
        let mut file = self.sigstore.trusted_root().unwrap();
        edit(&mut file);
        let mut spec = self.trust_spec();
        spec.authorities[0].text = AuthorityText::TrustedRoot { json: file.to_string() };
        spec
    }

    /// Compiled trust from a `trusted_root.json` that `edit` has changed.
    pub fn trust_of_file(&self, edit: impl Fn(&mut Value)) -> Trust {
        self.try_trust_of_file(edit).unwrap()
    }

    /// Compiles trust from a `trusted_root.json` that `edit` has changed; an error if the changed file is invalid.
    pub fn try_trust_of_file(&self, edit: impl Fn(&mut Value)) -> Result<Trust, TrustError> {
        Trust::compile(&self.trust_spec_of_file(edit))
    }

    /// A valid timestamp of a signature in base64, as a bundle has it.
    pub fn stamp_of(&self, signature: &str) -> Value {
        let stamp = self.sigstore.stamp(&stamp(), &from_b64(signature)).unwrap();
        json!({"signedTimestamp": b64(stamp)})
    }

    pub fn make(&self, recipe: &Recipe) -> Evidence {
        let claim = recipe.claim();
        let message = match recipe.form {
            Form::Signature => claim.clone(),
            _ => envelope_message(&recipe.payload_type, &claim),
        };
        let key = &self.keys[recipe.signer];
        let mut signature = key.sign(recipe.signed_instead.as_ref().unwrap_or(&message)).unwrap();
        (recipe.signature_edit)(&mut signature);
        let chain = recipe.is_keyless.then(|| self.sigstore.certify(key, &recipe.certificate).unwrap());
        let verifier = match &chain {
            Some(chain) => pem("CERTIFICATE", &chain[0]),
            None => key.public_key_pem(),
        };
        let envelope = json!({
            "payloadType": recipe.payload_type,
            "payload": b64(&claim),
            "signatures": vec![json!({"sig": b64(&signature)}); recipe.envelope_signatures],
        });
        let envelope_bytes = envelope.to_string().into_bytes();
        let logged = recipe.log.as_ref().map(|log| {
            let made = Made {
                is_envelope: !recipe.is_logged_by_hash,
                message: &message,
                claim: &claim,
                signature: &signature,
                verifier: &verifier,
            };
            self.sigstore.log_entry(log, &made).unwrap()
        });
        let stamped = if recipe.form == Form::Attestation { &envelope_bytes } else { &signature };
        let stamp = recipe.stamp.as_ref().map(|stamp| self.sigstore.stamp(stamp, stamped).unwrap());
        let companions = || {
            let mut companions = Companions {
                certificate: chain.as_ref().map(|chain| pem("CERTIFICATE", &chain[0])),
                chain: chain.as_ref().map(|chain| chain[1..].iter().map(|der| pem("CERTIFICATE", der)).collect()),
                log_entry: logged.as_ref().map(Entry::annotation),
                timestamp: stamp.as_ref().map(|stamp| json!({"SignedRFC3161Timestamp": b64(stamp)}).to_string()),
            };
            (recipe.companions_edit)(&mut companions);
            companions
        };
        let (source, media_type) = ("piece".to_owned(), recipe.media_type.clone());
        match recipe.form {
            Form::Signature => {
                let mut payload = claim;
                (recipe.bytes_edit)(&mut payload);
                let signature = b64(&signature);
                Evidence::Signature(Signature { source, media_type, payload, signature, companions: companions() })
            }
            Form::Attestation => {
                let mut envelope = envelope_bytes;
                (recipe.bytes_edit)(&mut envelope);
                Evidence::Attestation(Attestation { source, media_type, envelope, companions: companions() })
            }
            Form::Bundle | Form::BundleAttestation => {
                let mut material = match &chain {
                    Some(chain) => json!({"certificate": {"rawBytes": b64(&chain[0])}}),
                    None => json!({"publicKey": {"hint": b64(Digest::of(&key.subject_public_key_info()).as_bytes())}}),
                };
                material["tlogEntries"] = logged.iter().map(Entry::json).collect();
                if let Some(stamp) = &stamp {
                    material["timestampVerificationData"] =
                        json!({"rfc3161Timestamps": [{"signedTimestamp": b64(stamp)}]});
                }
                let mut bundle = json!({
                    "mediaType": BUNDLE_TYPE,
                    "verificationMaterial": material,
                    "dsseEnvelope": envelope,
                });
                (recipe.bundle_edit)(&mut bundle);
                let mut json = bundle.to_string().into_bytes();
                (recipe.bytes_edit)(&mut json);
                let artifact_type = recipe.artifact_type.clone();
                Evidence::Bundle(Bundle { source, artifact_type, media_type, subject: recipe.refers_to, json })
            }
        }
    }
}
