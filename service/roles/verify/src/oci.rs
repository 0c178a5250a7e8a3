//! The locations of an image's signatures in a registry: the tags and referrers to request, and the blobs that the
//! answers name.
//!
//! The functions parse bytes into descriptors of limited number and size: an index with a million referrers costs no
//! more memory than a short index.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::MapAccess;
use serde::{Deserialize, Deserializer};

use crate::digest::{Digest, DigestError};
use crate::evidence::{Attestation, Bundle, Companions, Evidence, Signature};
use crate::json::{self, Last};
use crate::verdict::{Class, Rejected};

/// Maximum number of layers of one `.sig` or `.att` manifest that are read; the newest layers are read, because tools
/// append new layers. Usual manifests have a few layers.
pub const LAYERS_MAX: usize = 50;
/// Maximum number of an image's referrers that are read.
pub const REFERRERS_MAX: usize = 50;
/// Maximum number of items of an index that are kept during parsing; the last items are kept.
const LISTED_MAX: usize = 4096;
/// Maximum number of bytes of one manifest that are kept: about the size of fifty keyless signatures.
pub const KEPT_BYTES_MAX: usize = 512 << 10;
/// Maximum number of bytes of a media type or predicate type.
const TYPE_BYTES_MAX: usize = 256;
/// Largest manifest or index, in bytes: the limit of registries.
pub const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Largest payload of a legacy signature, in bytes: usual payloads have 250 bytes, payloads with many annotations a few
/// thousand.
pub const PAYLOAD_BYTES_MAX: u64 = 64 << 10;
/// Largest attestation or bundle, in bytes, as some contain SBOMs. cosign's limit is 128 MiB, more than this service's
/// whole memory.
pub const ENVELOPE_BYTES_MAX: u64 = 8 << 20;

/// Media type of a legacy signature's payload.
pub(crate) const PAYLOAD_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Media type of a legacy attestation.
pub(crate) const ENVELOPE_TYPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Artifact type of a referrer in the index at the fallback tag, if the client (such as cosign 3.1) copied the media
/// type of the configuration.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
}

#[derive(Debug, Default)]
pub struct Layers {
    /// Layers to fetch, the newest first.
    pub layers: Vec<Layer>,
    /// Number of bytes of [`Self::layers`] besides the descriptors, at most [`KEPT_BYTES_MAX`].
    pub bytes: usize,
    /// Layers that cannot be used, with the reasons. The caller also passes unusable layers to
    /// [`verify`](crate::verify), so that the verdict lists them.
    pub unusable: Vec<Evidence>,
}

/// A layer with a signature or attestation, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub descriptor: Descriptor,
    /// Where the layer was found, for messages.
    pub source: String,
    /// The bytes of the layer, if the manifest contains them (`data` in the descriptor), so that no request is needed.
    pub data: Option<Vec<u8>>,
    origin: Origin,
}

/// A referrer that may be a sigstore bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    pub descriptor: Descriptor,
    /// Predicate type in the index (`dev.sigstore.bundle.predicateType`). The predicate type is not trusted and only
    /// affects the order of requests.
    pub predicate_type: Option<String>,
}

/// Why a registry's answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OciError {
    #[error("{what} of {size} bytes, at most {max} are read")]
    TooLarge {
        /// The name of the object that is too large.
        what: &'static str,
        size: u64,
        max: u64,
    },
    #[error("not {what}: {cause}")]
    Shape { what: &'static str, cause: String },
    #[error("the bytes have the digest {found}, not {wanted}")]
    Digest { wanted: Digest, found: Digest },
}

/// The kind of manifest that contains a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Signature(BTreeMap<String, String>),
    Attestation(BTreeMap<String, String>),
    Bundle { artifact_type: String, subject: Option<Digest> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawManifest {
    schema_version: u32,
    artifact_type: Option<String>,
    config: Option<RawDescriptor>,
    layers: Option<Last<RawDescriptor, LAYERS_MAX>>,
    manifests: Option<Last<RawDescriptor, LISTED_MAX>>,
    subject: Option<RawDescriptor>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    media_type: String,
    digest: String,
    size: u64,
    artifact_type: Option<String>,
    #[serde(default, deserialize_with = "known_annotations")]
    annotations: BTreeMap<String, String>,
    data: Option<String>,
}

/// Tag of an image's legacy signatures: `sha256-<hex>.sig`.
pub fn signature_tag(image: &Digest) -> String {
    format!("sha256-{}.sig", image.hex())
}

/// Tag of an image's legacy attestations: `sha256-<hex>.att`.
pub fn attestation_tag(image: &Digest) -> String {
    format!("sha256-{}.att", image.hex())
}

/// Tag of the index of referrers for registries without the referrers API: `sha256-<hex>`.
pub fn referrers_tag(image: &Digest) -> String {
    format!("sha256-{}", image.hex())
}

/// Parses the manifest at [`signature_tag`] into layers to fetch.
pub fn signature_layers(manifest: &[u8]) -> Result<Layers, OciError> {
    layers(manifest, "signature", PAYLOAD_BYTES_MAX, Origin::Signature)
}

/// Parses the manifest at [`attestation_tag`] into layers to fetch.
pub fn attestation_layers(manifest: &[u8]) -> Result<Layers, OciError> {
    layers(manifest, "attestation", ENVELOPE_BYTES_MAX, Origin::Attestation)
}

/// Parses an answer of the referrers API, or the index at [`referrers_tag`], into manifests to fetch. The manifests may
/// be sigstore bundles; the newest is first if the index states times.
pub fn referrers(index: &[u8]) -> Result<Vec<Referrer>, OciError> {
    const WHAT: &str = "an index of referrers";
    let found = parsed(index, WHAT)?.manifests.ok_or_else(|| shape(WHAT, "it has no manifests"))?;
    let mut candidates: Vec<(Option<String>, Referrer)> = Vec::new();
    // Entries of other types belong to other tools, in any number.
    for raw in found.items.into_iter().filter(may_be_bundle) {
        let mut annotations = raw.annotations.clone();
        let made = annotations.remove("org.opencontainers.image.created");
        let predicate_type = annotations.remove("dev.sigstore.bundle.predicateType");
        let predicate_type = predicate_type.filter(|text| text.len() <= TYPE_BYTES_MAX);
        let Ok(descriptor) = descriptor(&raw) else { continue };
        candidates.push((made, Referrer { descriptor, predicate_type }));
    }
    candidates.reverse();
    candidates.sort_by(|one, other| other.0.cmp(&one.0));
    Ok(candidates.into_iter().map(|(_, referrer)| referrer).take(REFERRERS_MAX).collect())
}

/// Parses a referrer's manifest into the layer to fetch; `None` if the referrer is not a bundle.
pub fn bundle_layer(referrer: &Referrer, manifest: &[u8]) -> Result<Option<Layer>, OciError> {
    const WHAT: &str = "the manifest of a bundle";
    let found = Digest::of(manifest);
    if found != referrer.descriptor.digest {
        return Err(OciError::Digest { wanted: referrer.descriptor.digest, found });
    }
    let raw = parsed(manifest, WHAT)?;
    let of_config = raw.config.map(|config| config.media_type);
    let artifact_type = raw.artifact_type.or(of_config).unwrap_or_default();
    if !is_bundle(&artifact_type) {
        return Ok(None);
    }
    let (mut layers, count) = raw.layers.map_or_else(Default::default, |layers| (layers.items, layers.count));
    let (1, Some(only)) = (count, layers.pop_back()) else {
        return Err(shape(WHAT, &format!("{count} layers, a bundle is one")));
    };
    let subject = raw.subject.map(|subject| subject.digest.parse());
    let subject = subject.transpose().map_err(|error: DigestError| shape(WHAT, &error.to_string()))?;
    let source = format!("bundle {}", referrer.descriptor.digest);
    layer(&only, source, ENVELOPE_BYTES_MAX, Origin::Bundle { artifact_type, subject }).map(Some)
}

impl Layer {
    /// The layer with its bytes, as evidence. If `bytes` are not the bytes that the manifest names, the evidence is
    /// unusable for this reason.
    pub fn evidence(self, bytes: Vec<u8>) -> Evidence {
        let found = Digest::of(&bytes);
        if found != self.descriptor.digest {
            return unusable(self.source, &OciError::Digest { wanted: self.descriptor.digest, found });
        }
        let (source, media_type) = (self.source, self.descriptor.media_type);
        match self.origin {
            Origin::Signature(mut annotations) => Evidence::Signature(Signature {
                source,
                media_type,
                payload: bytes,
                signature: annotations.remove("dev.cosignproject.cosign/signature").unwrap_or_default(),
                companions: companions(annotations),
            }),
            Origin::Attestation(annotations) => Evidence::Attestation(Attestation {
                source,
                media_type,
                envelope: bytes,
                companions: companions(annotations),
            }),
            Origin::Bundle { artifact_type, subject } => {
                Evidence::Bundle(Bundle { source, artifact_type, media_type, subject, json: bytes })
            }
        }
    }

    /// Unusable evidence for a layer that can never be fetched, for example because the registry lacks its blob.
    pub fn missing(self, cause: &str) -> Evidence {
        Evidence::Unusable(Rejected { source: self.source, class: Class::Invalid, cause: cause.to_owned() })
    }
}

/// Whether `text` is the media type of a sigstore bundle in any version.
pub(crate) fn is_bundle(text: &str) -> bool {
    text.starts_with("application/vnd.dev.sigstore.bundle.v0.")
        || text.starts_with("application/vnd.dev.sigstore.bundle+json")
}

fn may_be_bundle(raw: &RawDescriptor) -> bool {
    raw.artifact_type.as_deref().is_none_or(|text| text.is_empty() || text == EMPTY_TYPE || is_bundle(text))
}

fn layers(
    manifest: &[u8],
    what: &'static str,
    size_max: u64,
    origin: impl Fn(BTreeMap<String, String>) -> Origin,
) -> Result<Layers, OciError> {
    const WHAT: &str = "a manifest of signatures";
    let raw = parsed(manifest, WHAT)?.layers.ok_or_else(|| shape(WHAT, "it has no layers"))?;
    let count = raw.count;
    let mut found = Layers::default();
    for (back, raw) in raw.items.into_iter().rev().enumerate() {
        let source = format!("{what} {} of {count}", count - back);
        let annotated = raw.annotations.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let bytes = annotated + raw.data.as_ref().map_or(0, String::len);
        let fits = found.bytes + bytes <= KEPT_BYTES_MAX;
        let layer = if fits {
            layer(&raw, source.clone(), size_max, origin(raw.annotations.clone()))
        } else {
            let size = (found.bytes + bytes) as u64;
            Err(OciError::TooLarge { what: "annotations of layers", size, max: KEPT_BYTES_MAX as u64 })
        };
        match layer {
            Ok(layer) => {
                found.bytes += bytes;
                found.layers.push(layer);
            }
            Err(error) => found.unusable.push(unusable(source, &error)),
        }
    }
    Ok(found)
}

fn layer(raw: &RawDescriptor, source: String, size_max: u64, origin: Origin) -> Result<Layer, OciError> {
    let descriptor = descriptor(raw)?;
    if descriptor.size > size_max {
        return Err(OciError::TooLarge { what: "a layer", size: descriptor.size, max: size_max });
    }
    let data = raw.data.as_ref().and_then(|text| STANDARD.decode(text).ok());
    let data = data.filter(|bytes| Digest::of(bytes) == descriptor.digest);
    Ok(Layer { descriptor, source, data, origin })
}

fn descriptor(raw: &RawDescriptor) -> Result<Descriptor, OciError> {
    if raw.media_type.len() > TYPE_BYTES_MAX {
        return Err(shape("a descriptor", "its media type is too long"));
    }
    let digest = raw.digest.parse().map_err(|error: DigestError| shape("a descriptor", &error.to_string()))?;
    Ok(Descriptor { media_type: raw.media_type.clone(), digest, size: raw.size })
}

/// Parses the known annotations; unknown annotations are skipped, whatever their number.
fn known_annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    const KNOWN: [&str; 4] = [
        "dev.cosignproject.cosign/",
        "dev.sigstore.cosign/",
        "dev.sigstore.bundle.",
        "org.opencontainers.image.created",
    ];
    /// Maximum number of annotations of an object that are kept; tools write fewer annotations.
    const MAX: usize = 32;
    struct Annotations;
    impl<'de> serde::de::Visitor<'de> for Annotations {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut annotations = BTreeMap::new();
            while let Some((key, value)) = map.next_entry::<String, String>()? {
                if annotations.len() < MAX && KNOWN.iter().any(|known| key.starts_with(known)) {
                    annotations.insert(key, value);
                }
            }
            Ok(annotations)
        }
    }
    deserializer.deserialize_any(Annotations)
}

fn companions(mut annotations: BTreeMap<String, String>) -> Companions {
    let mut take =
        |name: &str| annotations.remove(&format!("dev.sigstore.cosign/{name}")).filter(|text| !text.is_empty());
    Companions {
        certificate: take("certificate"),
        chain: take("chain"),
        log_entry: take("bundle"),
        timestamp: take("rfc3161timestamp"),
    }
}

fn parsed(bytes: &[u8], what: &'static str) -> Result<RawManifest, OciError> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        return Err(OciError::TooLarge { what, size: bytes.len() as u64, max: MANIFEST_BYTES_MAX as u64 });
    }
    let raw: RawManifest = json::read(bytes).map_err(|error| shape(what, &error.to_string()))?;
    if raw.schema_version == 2 { Ok(raw) } else { Err(shape(what, "its schemaVersion is not 2")) }
}

fn unusable(source: String, error: &OciError) -> Evidence {
    Evidence::Unusable(Rejected { source, class: Class::Invalid, cause: error.to_string() })
}

fn shape(what: &'static str, cause: &str) -> OciError {
    OciError::Shape { what, cause: cause.to_owned() }
}

#[cfg(test)]
mod tests;
