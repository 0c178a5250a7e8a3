//! Pieces of evidence by recipe, from a sigstore in memory. A forged piece differs from a valid one only in the
//! recipe's one change; everything else about it is signed correctly.

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

/// The form of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Signature,
    Attestation,
    Bundle,
    BundleAttestation,
}

/// All properties of one piece. `Recipe::new` gives a valid one.
#[derive(Clone)]
pub struct Recipe {
    pub form: Form,
    /// Whether a certificate comes with it, or a key alone signed it.
    pub is_keyless: bool,
    /// The image in the signed content.
    pub signed_image: Digest,
    pub signed_repository: String,
    /// `critical.type` of a payload, `_type` of a statement.
    pub claim_type: String,
    pub payload_type: String,
    pub annotations: Value,
    pub predicate: Value,
    pub predicate_type: String,
    /// Index of the signer: 0 is the trusted one.
    pub signer: usize,
    /// Signed bytes other than the shown ones.
    pub signed_instead: Option<Vec<u8>>,
    /// Applied to the signature's bytes before anything else uses them.
    pub signature_edit: fn(&mut Vec<u8>),
    pub certificate: CertificateRecipe,
    pub log: Option<LogRecipe>,
    pub stamp: Option<StampRecipe>,
    pub media_type: String,
    pub artifact_type: String,
    pub refers_to: Option<Digest>,
    /// Whether the log has the hash of the signed bytes, and not an envelope.
    pub is_logged_by_hash: bool,
    pub envelope_signatures: usize,
    /// Applied last to a bundle's JSON.
    pub bundle_edit: fn(&mut Value),
    /// Applied last to a legacy piece's companions.
    pub companions_edit: fn(&mut Companions),
    /// Applied last to the payload's or bundle's bytes.
    pub bytes_edit: fn(&mut Vec<u8>),
}

/// A sigstore, two trusted signers and an untrusted one.
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

/// A valid timestamp.
pub fn stamp() -> StampRecipe {
    StampRecipe::new(NOW)
}

/// The image of all pieces.
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

    /// The signed claim.
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

    /// Trust in the keys 0 and 1 as `key` and `second`, and in the certificate's holder as `keyless`.
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

    /// The same trust as the file `trusted_root.json`, after `edit`.
    pub fn trust_spec_of_file(&self, edit: impl Fn(&mut Value)) -> TrustSpec {
        let mut file = self.sigstore.trusted_root().unwrap();
        edit(&mut file);
        let mut spec = self.trust_spec();
        spec.authorities[0].text = AuthorityText::TrustedRoot { json: file.to_string() };
        spec
    }

    /// The compiled trust of the file after `edit`.
    pub fn trust_of_file(&self, edit: impl Fn(&mut Value)) -> Trust {
        self.try_trust_of_file(edit).unwrap()
    }

    /// Compiles the trust of the file after `edit`, which may be invalid.
    pub fn try_trust_of_file(&self, edit: impl Fn(&mut Value)) -> Result<Trust, TrustError> {
        Trust::compile(&self.trust_spec_of_file(edit))
    }

    /// A valid timestamp of a signature in base64, in the form of a bundle.
    pub fn stamp_of(&self, signature: &str) -> Value {
        let stamp = self.sigstore.stamp(&stamp(), &from_b64(signature)).unwrap();
        json!({"signedTimestamp": b64(stamp)})
    }

    /// The piece that `recipe` describes.
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
