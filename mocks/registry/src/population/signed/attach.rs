//! Stores signatures as layers at the signature tag of an image, and as bundles that refer to the image.
//!
//! The stored data are as from cosign. Callers choose the signers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use mock_pki::Signer;
use mock_sigstore::{CertificateRecipe, Content, LogRecipe, STATEMENT_TYPE, Signed, Sigstore, envelope_message, pem};
use serde_json::{Value, json};

use super::super::{Error, put_manifest};
use super::Target;
use crate::digest::Digest;
use crate::manifest::OCI_MANIFEST;
use crate::store::Store;

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// The media type of legacy payloads (cosign, `SIGNATURE_SPEC.md`).
const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PREDICATE_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";

pub(super) enum By<'a> {
    Key(&'a Signer),
    /// A signer with a certificate.
    Holder(Holder<'a>),
}

/// A signer with a certificate that a sigstore issued for one signature.
pub(super) struct Holder<'a> {
    pub(super) sigstore: &'a Sigstore,
    pub(super) certificate: CertificateRecipe,
    pub(super) is_logged: bool,
}

impl Holder<'_> {
    fn sign(&self, content: Content<'_>, is_legacy: bool) -> Result<Signed, mock_sigstore::Error> {
        let log = self.is_logged.then(|| LogRecipe::new(self.sigstore.now(), is_legacy));
        self.sigstore.sign(content, &self.certificate, log.as_ref())
    }
}

/// Stores signatures of the image `about` at the tag for the image's signatures, one layer for each of `signers`.
pub(super) fn at_tag(store: &mut Store, target: &Target<'_>, about: &Digest, signers: &[By<'_>]) -> Result<(), Error> {
    let mut layers = Vec::with_capacity(signers.len());
    for (n, by) in signers.iter().enumerate() {
        // Each signature has its own payload, as after two runs of `cosign sign -a`.
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": target.reference},
                "image": {"docker-manifest-digest": about.as_str()},
                "type": "cosign container image signature",
            },
            "optional": {"signature": n.to_string()},
        });
        let payload = payload.to_string();
        let annotations = annotations(by, payload.as_bytes())?;
        let mut layer = put_blob(store, target.name, PAYLOAD_TYPE, payload.into())?;
        layer["annotations"] = annotations;
        layers.push(layer);
    }
    let config = put_blob(store, target.name, CONFIG_TYPE, Bytes::from_static(b"{}"))?;
    let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers});
    let tag = format!("{}.sig", target.digest.as_str().replace(':', "-"));
    put_manifest(store, target.name, Some(&tag), OCI_MANIFEST, &manifest).map(drop)
}

/// The annotations of the layer that contains a payload.
fn annotations(by: &By<'_>, payload: &[u8]) -> Result<Value, Error> {
    Ok(match by {
        By::Key(key) => json!({SIGNATURE_ANNOTATION: BASE64.encode(key.sign(payload)?)}),
        By::Holder(holder) => {
            let signed = holder.sign(Content::Payload(payload), true)?;
            let pem = |chain: &[Vec<u8>]| chain.iter().map(|der| pem("CERTIFICATE", der)).collect::<String>();
            let (leaf, further) = signed.chain.split_at(1);
            let mut annotations = json!({
                SIGNATURE_ANNOTATION: BASE64.encode(&signed.signature),
                "dev.sigstore.cosign/certificate": pem(leaf),
                "dev.sigstore.cosign/chain": pem(further),
            });
            if let Some(entry) = &signed.entry {
                annotations["dev.sigstore.cosign/bundle"] = entry.annotation().into();
            }
            annotations
        }
    })
}

/// Attaches a bundle, which signs the image `about`, to the image of `target`.
pub(super) fn in_bundle(store: &mut Store, target: &Target<'_>, about: &Digest, by: &By<'_>) -> Result<(), Error> {
    let hex = about.as_str().trim_start_matches("sha256:");
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": hex}}],
        "predicateType": PREDICATE_TYPE, "predicate": {},
    });
    let statement = statement.to_string();
    let (signature, material) = match by {
        By::Key(key) => {
            let signature = key.sign(&envelope_message(STATEMENT_TYPE, statement.as_bytes()))?;
            (signature, json!({"publicKey": {"hint": ""}, "tlogEntries": []}))
        }
        By::Holder(holder) => {
            let signed = holder.sign(Content::Statement(statement.as_bytes()), false)?;
            let leaf = signed.chain.first().map(|der| BASE64.encode(der));
            let entries: Vec<Value> = signed.entry.iter().map(mock_sigstore::Entry::json).collect();
            (signed.signature, json!({"certificate": {"rawBytes": leaf}, "tlogEntries": entries}))
        }
    };
    let bundle = json!({
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": material,
        "dsseEnvelope": {
            "payload": BASE64.encode(&statement), "payloadType": STATEMENT_TYPE,
            "signatures": [{"sig": BASE64.encode(signature)}],
        },
    });
    let layer = put_blob(store, target.name, BUNDLE_TYPE, bundle.to_string().into())?;
    let config = put_blob(store, target.name, EMPTY_TYPE, Bytes::from_static(b"{}"))?;
    let reference = crate::route::Reference::Digest(target.digest.clone());
    let image = store.manifest(target.name, &reference);
    let (media_type, size) = image.map_or((OCI_MANIFEST, 0), |image| (&image.media_type, image.bytes.len()));
    let subject = json!({"mediaType": media_type, "digest": target.digest.as_str(), "size": size});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": BUNDLE_TYPE, "config": config, "layers": [layer],
        "subject": subject, "annotations": {"dev.sigstore.bundle.predicateType": PREDICATE_TYPE},
    });
    put_manifest(store, target.name, None, OCI_MANIFEST, &manifest).map(drop)
}

fn put_blob(store: &mut Store, name: &str, media_type: &str, bytes: Bytes) -> Result<Value, Error> {
    let (digest, size) = (Digest::sha256(&bytes), bytes.len());
    store.put_blob(name, &digest, bytes)?;
    Ok(json!({"mediaType": media_type, "digest": digest.as_str(), "size": size}))
}
