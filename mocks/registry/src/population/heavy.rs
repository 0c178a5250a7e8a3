//! Images that attack signature verifiers: each has twenty bundles of 8 MiB that sign nothing.
//!
//! Half of the bundles contain a long text, and half contain lists of empty texts. A careless parser needs many times
//! the size of such a list in memory. All images share the same two blobs.

use bytes::Bytes;
use serde_json::json;

use super::{Error, put_manifest};
use crate::digest::Digest;
use crate::manifest::OCI_MANIFEST;
use crate::store::Store;

/// The first segment of the repository names of images that attack signature verifiers.
pub(super) const FOLDER: &str = "hostile";
const BUNDLES: usize = 20;
/// The size of one bundle in bytes.
const BYTES: usize = 8 << 20;
const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";

pub(super) fn attach(store: &mut Store, name: &str, image: &Digest) -> Result<(), Error> {
    let config = blob(store, name, EMPTY_TYPE, Bytes::from_static(b"{}"))?;
    let layers = [blob(store, name, BUNDLE_TYPE, long())?, blob(store, name, BUNDLE_TYPE, lists())?];
    for number in 0..BUNDLES {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": BUNDLE_TYPE, "config": config,
            "layers": [layers[number % layers.len()]],
            "subject": {"mediaType": OCI_MANIFEST, "digest": image.as_str(), "size": 0},
            "annotations": {"number": number.to_string()},
        });
        put_manifest(store, name, None, OCI_MANIFEST, &manifest)?;
    }
    Ok(())
}

fn blob(store: &mut Store, name: &str, media_type: &str, bytes: Bytes) -> Result<serde_json::Value, Error> {
    let (digest, size) = (Digest::sha256(&bytes), bytes.len());
    store.put_blob(name, &digest, bytes)?;
    Ok(json!({"mediaType": media_type, "digest": digest.as_str(), "size": size}))
}

/// A bundle with one long payload.
fn long() -> Bytes {
    bundle(&"QUFB".repeat(BYTES / 4 - 256), "")
}

/// A bundle whose proof lists two million empty hashes.
fn lists() -> Bytes {
    let mut hashes = r#""","#.repeat(BYTES / 3 - 512);
    hashes.pop();
    let proof = format!(
        r#"{{"logIndex":"1","rootHash":"AAAA","treeSize":"2","checkpoint":{{"envelope":""}},"hashes":[{hashes}]}}"#
    );
    let entry = format!(
        r#"{{"logId":{{"keyId":"AAAA"}},"kindVersion":{{"kind":"dsse","version":"0.0.1"}},"canonicalizedBody":"AAAA","inclusionProof":{proof}}}"#
    );
    bundle("AAAA", &entry)
}

fn bundle(payload: &str, entries: &str) -> Bytes {
    let material = format!(r#"{{"publicKey":{{"hint":""}},"tlogEntries":[{entries}]}}"#);
    let envelope = format!(
        r#"{{"payload":"{payload}","payloadType":"application/vnd.in-toto+json","signatures":[{{"sig":"AAAA"}}]}}"#
    );
    let text =
        format!(r#"{{"mediaType":"{BUNDLE_TYPE}","verificationMaterial":{material},"dsseEnvelope":{envelope}}}"#);
    let mut bytes = text.into_bytes();
    bytes.resize(BYTES, b' ');
    bytes.into()
}
