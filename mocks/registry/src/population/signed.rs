//! Signatures of seeded images, as cosign 2 leaves them at tags and cosign 3 as referrers; and which image has which.
//!
//! Owns the forms and who signed. Which image is signed how follows from its place alone, so that a plan can be made without
//! keys; the signatures themselves are as fresh as the keys are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use mock_pki::Signer;
use serde_json::{Value, json};

use super::{Error, put_manifest};
use crate::digest::Digest;
use crate::manifest::OCI_MANIFEST;
use crate::store::Store;

/// Of so many images that exist the last is one that must not run, as long as there are good ones enough for workloads of three.
const BAD_EVERY: usize = 3;
/// The folder of images that two must have signed.
pub(super) const TWO: &str = "two";

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// What legacy payloads are stored as (cosign, `SIGNATURE_SPEC.md`).
const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";
const PREDICATE_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";

/// How an image is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signing {
    /// By [`Keys::release`], in this form.
    Release(Form),
    /// By [`Keys::second`] alone.
    Second(Form),
    /// By both of them, in the folder `two`.
    Both,
    /// By [`Keys::successor`], which takes the place of `second` when keys change.
    Successor(Form),
    /// Not at all.
    Unsigned,
    /// By a key that nobody trusts.
    Stranger(Form),
    /// What is attached is a signature by `release` of another image.
    OtherDigest(Form),
    /// The tag was signed and moved afterwards: what it points to now is not signed.
    Moved,
    /// Twice by `release`, in the folder `two`.
    SameTwice,
}

/// Where a signature lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// At the tag `sha256-….sig` (cosign 1 and 2).
    Tag,
    /// In a bundle that refers to the image (cosign 3).
    Bundle,
}

/// Good images, in turn.
const GOOD: [Signing; 6] = [
    Signing::Release(Form::Tag),
    Signing::Release(Form::Bundle),
    Signing::Second(Form::Tag),
    Signing::Release(Form::Bundle),
    Signing::Both,
    Signing::Second(Form::Bundle),
];
/// Images that must not run, in turn.
const BAD: [Signing; 9] = [
    Signing::Unsigned,
    Signing::Stranger(Form::Tag),
    Signing::OtherDigest(Form::Tag),
    Signing::SameTwice,
    Signing::Stranger(Form::Bundle),
    Signing::OtherDigest(Form::Bundle),
    Signing::Moved,
    Signing::Successor(Form::Tag),
    Signing::Successor(Form::Bundle),
];

/// The keys of a population. Made afresh for each run, as certificates are.
#[derive(Debug)]
pub struct Keys {
    /// Signs most images.
    pub release: Signer,
    /// Signs some.
    pub second: Signer,
    /// What `second` is replaced by.
    pub successor: Signer,
    stranger: Signer,
}

impl Keys {
    /// Four fresh keys.
    pub fn generate() -> Result<Self, mock_pki::Error> {
        Ok(Self {
            release: Signer::generate("release")?,
            second: Signer::generate("second")?,
            successor: Signer::generate("successor")?,
            stranger: Signer::generate("stranger")?,
        })
    }
}

impl Signing {
    /// That of the `n`-th image which exists.
    pub(super) fn of(n: usize) -> Self {
        let round = n / BAD_EVERY;
        match n % BAD_EVERY {
            at if at == BAD_EVERY - 1 => BAD[round % BAD.len()],
            at => GOOD[(round * (BAD_EVERY - 1) + at) % GOOD.len()],
        }
    }

    /// Whether two must have signed it.
    pub fn is_of_two(self) -> bool {
        matches!(self, Self::Both | Self::SameTwice)
    }
}

/// An image that is to be signed.
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    /// `host:port/name`
    pub(super) reference: &'a str,
    pub(super) digest: &'a Digest,
    /// Another image of the repository.
    pub(super) other: &'a Digest,
}

/// Stores what belongs to an image that is signed so.
pub(super) fn sign(store: &mut Store, target: &Target<'_>, signing: Signing, keys: &Keys) -> Result<(), Error> {
    let mut in_form = |form, about: &Digest, key: &Signer| match form {
        Form::Tag => at_tag(store, target, about, &[key]),
        Form::Bundle => in_bundle(store, target, about, key),
    };
    match signing {
        Signing::Release(form) => in_form(form, target.digest, &keys.release),
        Signing::Second(form) => in_form(form, target.digest, &keys.second),
        Signing::Successor(form) => in_form(form, target.digest, &keys.successor),
        Signing::Stranger(form) => in_form(form, target.digest, &keys.stranger),
        Signing::OtherDigest(form) => in_form(form, target.other, &keys.release),
        Signing::Both => at_tag(store, target, target.digest, &[&keys.release, &keys.second]),
        Signing::SameTwice => at_tag(store, target, target.digest, &[&keys.release, &keys.release]),
        Signing::Moved => {
            let before = Target { digest: target.other, ..*target };
            at_tag(store, &before, before.digest, &[&keys.release])
        }
        Signing::Unsigned => Ok(()),
    }
}

/// Signatures of `about` at the tag of the image's signatures, one layer for each key.
fn at_tag(store: &mut Store, target: &Target<'_>, about: &Digest, keys: &[&Signer]) -> Result<(), Error> {
    let mut layers = Vec::with_capacity(keys.len());
    for (n, key) in keys.iter().enumerate() {
        // Each signature has its own payload, as those of two runs of `cosign sign -a` have.
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": target.reference},
                "image": {"docker-manifest-digest": about.as_str()},
                "type": "cosign container image signature",
            },
            "optional": {"signature": n.to_string()},
        });
        let payload = payload.to_string();
        let signature = BASE64.encode(key.sign(payload.as_bytes())?);
        let mut layer = put_blob(store, target.name, PAYLOAD_TYPE, payload.into())?;
        layer["annotations"] = json!({SIGNATURE_ANNOTATION: signature});
        layers.push(layer);
    }
    let config = put_blob(store, target.name, CONFIG_TYPE, Bytes::from_static(b"{}"))?;
    let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers});
    let tag = format!("{}.sig", target.digest.as_str().replace(':', "-"));
    put_manifest(store, target.name, Some(&tag), OCI_MANIFEST, &manifest).map(drop)
}

/// A bundle that signs `about`, attached to the image.
fn in_bundle(store: &mut Store, target: &Target<'_>, about: &Digest, key: &Signer) -> Result<(), Error> {
    let hex = about.as_str().trim_start_matches("sha256:");
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": hex}}],
        "predicateType": PREDICATE_TYPE, "predicate": {},
    });
    let statement = statement.to_string();
    // What is signed of an envelope (DSSE v1, "PAE").
    let signed = format!("DSSEv1 {} {STATEMENT_TYPE} {} {statement}", STATEMENT_TYPE.len(), statement.len());
    let bundle = json!({
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": ""}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": BASE64.encode(&statement), "payloadType": STATEMENT_TYPE,
            "signatures": [{"sig": BASE64.encode(key.sign(signed.as_bytes())?)}],
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

/// Stores a blob; its descriptor.
fn put_blob(store: &mut Store, name: &str, media_type: &str, bytes: Bytes) -> Result<Value, Error> {
    let (digest, size) = (Digest::sha256(&bytes), bytes.len());
    store.put_blob(name, &digest, bytes)?;
    Ok(json!({"mediaType": media_type, "digest": digest.as_str(), "size": size}))
}
