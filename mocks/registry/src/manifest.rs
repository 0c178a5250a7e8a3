//! The fields of a manifest that the registry needs: its references and its subject.
//!
//! Owns the formats of OCI image manifests and indexes (image-spec manifest.md and image-index.md), and Docker's schema
//! 2 of both. The bytes of a manifest are never rewritten, because its digest is computed from the client's bytes.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::digest::Digest;
use super::refusal::{Code, Refusal};

/// Size limit of a manifest in bytes. The distribution specification asks registries to accept at least 4 MiB (spec.md,
/// "Pushing Manifests").
pub(super) const BYTES_MAX: usize = 4 << 20;

pub(super) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_SCHEMA_1: &[&str] = &[
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
];

#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) digest: Digest,
    /// The media type, exactly as it was pushed.
    pub(super) media_type: String,
    pub(super) bytes: Bytes,
    /// The manifest to which this manifest is attached.
    pub(super) subject: Option<Digest>,
    pub(super) artifact_type: Option<String>,
    pub(super) annotations: Map<String, Value>,
    /// Blobs that must be in the repository before this manifest is pushed.
    pub(super) blobs: Vec<Digest>,
    /// Manifests that must be in the repository before this index is pushed.
    pub(super) manifests: Vec<Digest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: u32,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
    subject: Option<Descriptor>,
    #[serde(default)]
    annotations: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: Option<String>,
    digest: String,
    /// The download addresses of a layer that may not be distributed. The registry does not require such a layer.
    #[serde(default)]
    urls: Vec<String>,
}

/// Approximate memory in bytes of a JSON value without its text; also of an object's entry without its key and value.
const VALUE_BYTES: u64 = 32;
const ENTRY_BYTES: u64 = 64;

impl Manifest {
    /// The memory of this manifest in bytes: its text and the values read from it.
    pub(super) fn held_bytes(&self) -> u64 {
        let digests = self.blobs.iter().chain(&self.manifests);
        let digests: u64 = digests.map(|digest| VALUE_BYTES + digest.as_str().len() as u64).sum();
        self.bytes.len() as u64 + digests + held_by_entries(&self.annotations)
    }

    /// Reads a pushed manifest. `content_type` is the header of the request; a body with another media type is refused.
    pub(super) fn read(content_type: Option<&str>, bytes: Bytes) -> Result<Self, Refusal> {
        let invalid = |reason: String| Refusal::new(Code::ManifestInvalid).detail(reason);
        let raw: Raw = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
        if raw.schema_version != 2 {
            return Err(invalid(format!("schemaVersion {} is not 2", raw.schema_version)));
        }
        let header = content_type.map(|value| value.split(';').next().unwrap_or(value).trim().to_owned());
        let media_type = match (header.filter(|value| !value.is_empty()), raw.media_type) {
            (Some(header), Some(body)) if header != body => {
                return Err(invalid(format!("the body says {body} and Content-Type says {header}")));
            }
            (Some(header), _) => header,
            (None, Some(body)) => body,
            (None, None) => return Err(invalid("neither Content-Type nor mediaType is given".to_owned())),
        };
        if DOCKER_SCHEMA_1.contains(&media_type.as_str()) {
            return Err(invalid("schema 1 manifests are not supported".to_owned()));
        }
        let digest_of = |descriptor: &Descriptor| Digest::parse(&descriptor.digest).map_err(|e| invalid(e.to_string()));
        let config_type = raw.config.as_ref().and_then(|config| config.media_type.clone());
        let blobs = raw.config.iter().chain(raw.layers.iter().filter(|layer| layer.urls.is_empty()));
        Ok(Self {
            digest: Digest::sha256(&bytes),
            blobs: blobs.map(digest_of).collect::<Result<_, _>>()?,
            manifests: raw.manifests.iter().map(digest_of).collect::<Result<_, _>>()?,
            subject: raw.subject.as_ref().map(digest_of).transpose()?,
            // spec.md, "Listing Referrers": an image manifest without artifactType is listed by its config's type.
            artifact_type: raw.artifact_type.filter(|value| !value.is_empty()).or(config_type),
            annotations: raw.annotations.unwrap_or_default(),
            media_type,
            bytes,
        })
    }

    /// The entry of this manifest in a list of referrers.
    pub(super) fn descriptor(&self) -> Value {
        let mut descriptor = serde_json::json!({
            "mediaType": self.media_type,
            "digest": self.digest.as_str(),
            "size": self.bytes.len(),
        });
        if let Some(artifact_type) = &self.artifact_type {
            descriptor["artifactType"] = artifact_type.as_str().into();
        }
        if !self.annotations.is_empty() {
            descriptor["annotations"] = Value::Object(self.annotations.clone());
        }
        descriptor
    }
}

fn held_by_entries(object: &Map<String, Value>) -> u64 {
    object.iter().map(|(key, value)| ENTRY_BYTES + key.len() as u64 + held(value)).sum()
}

fn held(value: &Value) -> u64 {
    let inside = match value {
        Value::String(text) => text.len() as u64,
        Value::Array(list) => list.iter().map(held).sum(),
        Value::Object(object) => held_by_entries(object),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: Option<&str>, body: &str) -> Result<Manifest, Refusal> {
        Manifest::read(content_type, Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn the_type_comes_from_the_header_and_must_not_contradict_the_body() {
        let body = format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":[]}}"#);
        assert_eq!(read(Some(&format!("{OCI_INDEX}; charset=utf-8")), &body).unwrap().media_type, OCI_INDEX);
        assert_eq!(read(None, &body).unwrap().media_type, OCI_INDEX);
        assert_eq!(read(Some(OCI_MANIFEST), &body).unwrap_err().code, Code::ManifestInvalid);
        assert!(read(None, r#"{"schemaVersion":2}"#).is_err());
        assert!(read(Some(OCI_MANIFEST), r#"{"schemaVersion":1}"#).is_err());
        assert!(read(Some(OCI_MANIFEST), "nonsense").is_err());
    }

    #[test]
    fn references_are_found_and_foreign_layers_are_not_required() {
        let [config, layer, foreign, subject] = [b"c", b"l", b"f", b"s"].map(|b| Digest::sha256(b));
        let body = format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"x/config","digest":"{config}"}},
                "layers":[{{"digest":"{layer}"}},{{"digest":"{foreign}","urls":["https://example.org/l"]}}],
                "subject":{{"digest":"{subject}"}},"annotations":{{"k":"v"}}}}"#
        );
        let manifest = read(Some(OCI_MANIFEST), &body).unwrap();
        assert_eq!(manifest.blobs, [config, layer]);
        assert_eq!(manifest.subject, Some(subject));
        let descriptor = manifest.descriptor();
        assert_eq!(descriptor["artifactType"], "x/config");
        assert_eq!(descriptor["annotations"]["k"], "v");
        assert_eq!(descriptor["size"], body.len());
    }
}
