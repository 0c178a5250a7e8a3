//! The images that a registry has at the start. The seed alone decides them.
//!
//! Owns the contents of the seeded images: real OCI images with a tar layer that any client can pull. The module opens
//! no sockets. The seed decides the content of each repository, so the same seed gives the same digests on every
//! machine. The module `signed` makes the signatures.

mod heavy;
mod signed;

use bytes::Bytes;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::digest::Digest;
use super::manifest::{Manifest, OCI_INDEX, OCI_MANIFEST};
use super::refusal::Refusal;
use super::route::Reference;
use super::store::{Full, Store};
pub use signed::{Form, HOLDER, Keys, Signing};

/// Every fourth image is an index of two platforms.
const MULTI_ARCH_EVERY: usize = 4;
/// Every tenth reference names an image that does not exist.
const MISSING_EVERY: usize = 10;
/// Number of images to which a moving tag points, one after the other. After the last image the tag returns to the
/// first, so that a run of days stores a bounded number of images.
const VERSIONS: u64 = 8;
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const TAR_BLOCK: usize = 512;

/// The number of images, their seed, and whether they are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    /// Number of references, including those without an image.
    pub count: usize,
    pub seed: u64,
    /// Whether images are signed, some of them wrongly and some not at all.
    pub signed: bool,
}

impl Population {
    /// Computes, without a registry, the images that [`Server::seed`](crate::Server::seed) stores in a registry with
    /// this host name.
    pub fn images(&self, host: &str) -> Result<Vec<Image>, Error> {
        seed(&mut Store::new(super::BYTES_MAX), host, self, None)
    }

    /// Computes, without a registry, the images that [`Server::seed_heavy`](crate::Server::seed_heavy) stores.
    pub fn heavy(host: &str, count: usize) -> Result<Vec<Image>, Error> {
        seed_heavy(&mut Store::new(super::BYTES_MAX), host, count, false)
    }
}

/// An image reference for workloads, and the image behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `host:port/name:tag`
    pub reference: String,
    /// The digest that the tag has now; `None` for a missing image.
    pub digest: Option<String>,
    pub kind: ImageKind,
    /// How the image is signed; `None` for a missing image and in a population without signatures.
    pub signing: Option<Signing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    SingleArch,
    /// An index of two platforms.
    MultiArch,
    /// No image: the repository or the tag does not exist.
    Missing,
}

/// Why an image could not be made or moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The limit of stored bytes is reached.
    #[error("failed to store an image: the registry holds {used_bytes} of at most {bytes_max} bytes")]
    Full {
        /// The number of stored bytes.
        used_bytes: u64,
        bytes_max: u64,
    },
    #[error("failed to move `{reference}`: the registry has no such tag")]
    NoSuchTag { reference: String },
    /// The stored manifest is no JSON object, so a tag cannot move to a changed copy of it.
    #[error("failed to move `{reference}`: its manifest is not a JSON object")]
    NotAnObject { reference: String },
    /// An image could not be signed.
    #[error(transparent)]
    Sign(#[from] mock_pki::Error),
    /// A certificate could not be issued.
    #[error(transparent)]
    Certify(#[from] mock_sigstore::Error),
}

impl From<Full> for Error {
    fn from(full: Full) -> Self {
        Self::Full { used_bytes: full.used_bytes, bytes_max: full.bytes_max }
    }
}

/// Makes the images and stores them, with their signatures if there are keys.
pub(super) fn seed(
    store: &mut Store,
    host: &str,
    population: &Population,
    keys: Option<&Keys>,
) -> Result<Vec<Image>, Error> {
    let mut random = ChaCha8Rng::seed_from_u64(population.seed);
    let mut images = Vec::with_capacity(population.count);
    let mut existing = 0;
    for n in 0..population.count {
        let kind = match n {
            _ if n % MISSING_EVERY == MISSING_EVERY - 1 => ImageKind::Missing,
            _ if n % MULTI_ARCH_EVERY == MULTI_ARCH_EVERY - 1 => ImageKind::MultiArch,
            _ => ImageKind::SingleArch,
        };
        let signing = (population.signed && kind != ImageKind::Missing).then(|| Signing::of(existing));
        existing += usize::from(kind != ImageKind::Missing);
        let kind = if signing == Some(Signing::Member) { ImageKind::MultiArch } else { kind };
        let folder = signing.map_or("seeded", Signing::folder);
        let name = format!("{folder}/{}-{n}", ["api", "worker", "web", "db"][random.random_range(0..4)]);
        let tag = format!("v{}.{}", random.random_range(0..4), random.random_range(0..20));
        let content = random.next_u64();
        let mut digest = match kind {
            ImageKind::Missing => None,
            ImageKind::SingleArch => Some(put_image(store, &name, Some(&tag), "amd64", content)?.0),
            ImageKind::MultiArch => Some(put_index(store, &name, &tag, content)?),
        };
        if let (Some(signing), Some(first)) = (signing, &digest) {
            // For a signature of another image, that image is a member of this one, or the tag's earlier image.
            let member = (signing == Signing::Member).then(|| first_member(store, &name, first)).flatten();
            let other = member.unwrap_or_else(|| first.clone());
            let moves = matches!(signing, Signing::Moved | Signing::OtherDigest(_));
            let now = if moves { move_tag(store, &name, &tag)? } else { first.clone() };
            if let Some(keys) = keys {
                let reference = format!("{host}/{name}");
                let target = signed::Target { name: &name, reference: &reference, digest: &now, other: &other };
                signed::sign(store, &target, signing, keys)?;
            }
            digest = Some(now);
        }
        let digest = digest.map(|digest| digest.to_string());
        images.push(Image { reference: format!("{host}/{name}:{tag}"), digest, kind, signing });
    }
    Ok(images)
}

/// Makes `count` images in the folder `hostile`, each with twenty bundles of 8 MiB that sign nothing.
pub(super) fn seed_heavy(store: &mut Store, host: &str, count: usize, attached: bool) -> Result<Vec<Image>, Error> {
    let image = |content: usize| {
        let (name, tag) = (format!("{}/bundles-{content}", heavy::FOLDER), "v1");
        let digest = put_image(store, &name, Some(tag), "amd64", content as u64)?.0;
        if attached {
            heavy::attach(store, &name, &digest)?;
        }
        let (digest, reference) = (Some(digest.to_string()), format!("{host}/{name}:{tag}"));
        Ok(Image { reference, digest, kind: ImageKind::SingleArch, signing: Some(Signing::Heavy) })
    };
    (0..count).map(image).collect()
}

/// Points a tag at the next of its images, as a push of a rebuilt image does; returns the new digest.
pub(super) fn move_tag(store: &mut Store, repository: &str, tag: &str) -> Result<Digest, Error> {
    const VERSION: &str = "dev.longhaul.version";
    let reference = || format!("{repository}:{tag}");
    let current = store
        .manifest(repository, &Reference::Tag(tag.to_owned()))
        .ok_or_else(|| Error::NoSuchTag { reference: reference() })?;
    let mut value: Value = serde_json::from_slice(&current.bytes).unwrap_or_default();
    let version = value["annotations"][VERSION].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let next = (version + 1) % VERSIONS;
    let Some(object) = value.as_object_mut() else { return Err(Error::NotAnObject { reference: reference() }) };
    let annotations = object.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(VERSION.to_owned(), next.to_string().into());
    }
    let media_type = current.media_type.clone();
    put_manifest(store, repository, Some(tag), &media_type, &value).map(|(digest, _)| digest)
}

/// The digest of the first image in an image index.
fn first_member(store: &Store, name: &str, index: &Digest) -> Option<Digest> {
    let index = store.manifest(name, &Reference::Digest(index.clone()))?;
    let index: Value = serde_json::from_slice(&index.bytes).ok()?;
    Digest::parse(index["manifests"][0]["digest"].as_str()?).ok()
}

fn put_index(store: &mut Store, name: &str, tag: &str, content: u64) -> Result<Digest, Error> {
    let mut manifests = Vec::new();
    for (n, architecture) in (1..).zip(["amd64", "arm64"]) {
        let (digest, size) = put_image(store, name, None, architecture, content.wrapping_add(n))?;
        let platform = json!({ "architecture": architecture, "os": "linux" });
        manifests.push(json!({
            "mediaType": OCI_MANIFEST, "digest": digest.as_str(), "size": size, "platform": platform,
        }));
    }
    let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests });
    put_manifest(store, name, Some(tag), OCI_INDEX, &index).map(|(digest, _)| digest)
}

fn put_image(
    store: &mut Store,
    name: &str,
    tag: Option<&str>,
    architecture: &str,
    content: u64,
) -> Result<(Digest, usize), Error> {
    let mut random = ChaCha8Rng::seed_from_u64(content);
    let mut file = vec![0; random.random_range(1000..4000)];
    random.fill_bytes(&mut file);
    let layer = Bytes::from(tar("app/data", &file));
    let layer_digest = Digest::sha256(&layer);
    let config = Bytes::from(
        json!({
            "architecture": architecture, "os": "linux", "config": { "Entrypoint": ["/app/data"] },
            "rootfs": { "type": "layers", "diff_ids": [layer_digest.as_str()] },
        })
        .to_string(),
    );
    let config_digest = Digest::sha256(&config);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST,
        "config": { "mediaType": CONFIG_TYPE, "digest": config_digest.as_str(), "size": config.len() },
        "layers": [{ "mediaType": LAYER_TYPE, "digest": layer_digest.as_str(), "size": layer.len() }],
    });
    store.put_blob(name, &layer_digest, layer)?;
    store.put_blob(name, &config_digest, config)?;
    put_manifest(store, name, tag, OCI_MANIFEST, &manifest)
}

fn put_manifest(
    store: &mut Store,
    name: &str,
    tag: Option<&str>,
    media_type: &str,
    value: &Value,
) -> Result<(Digest, usize), Error> {
    let bytes = Bytes::from(value.to_string());
    let size = bytes.len();
    let manifest = Manifest::read(Some(media_type), bytes)
        .map_err(|_: Refusal| Error::NotAnObject { reference: format!("{name}:{}", tag.unwrap_or_default()) })?;
    let digest = manifest.digest.clone();
    store.put_manifest(name, manifest, tag)?;
    Ok((digest, size))
}

/// A tar archive with one file (POSIX.1-1988 `ustar`).
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; TAR_BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000755\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", content.len()));
    put(136, "00000000000\0");
    put(148, "        "); // the checksum counts its own field as spaces
    put(156, "0");
    put(257, "ustar\u{0}00");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = content.len().next_multiple_of(TAR_BLOCK) - content.len();
    [&header[..], content, &vec![0; padding], &[0; 2 * TAR_BLOCK]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(seed_value: u64) -> (Store, Vec<Image>) {
        let mut store = Store::new(64 << 20);
        let images = seed(&mut store, "h:1", &Population { count: 40, seed: seed_value, signed: false }, None).unwrap();
        (store, images)
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(seeded(1).1, seeded(1).1);
        assert_ne!(seeded(1).1, seeded(2).1);
        let (_, images) = seeded(1);
        let count = |kind| images.iter().filter(|image| image.kind == kind).count();
        assert_eq!(count(ImageKind::Missing), 4);
        assert!(count(ImageKind::MultiArch) >= 8);
        assert!(images.iter().all(|image| image.digest.is_some() == (image.kind != ImageKind::Missing)));
    }

    #[test]
    fn everything_that_a_manifest_refers_to_is_there() {
        let (store, images) = seeded(3);
        for image in images.iter().filter(|image| image.kind != ImageKind::Missing) {
            let (name, tag) = image.reference["h:1/".len()..].split_once(':').unwrap();
            let manifest = store.manifest(name, &Reference::Tag(tag.to_owned())).unwrap();
            assert_eq!(Some(manifest.digest.to_string()), image.digest);
            assert_eq!(store.missing_reference(name, manifest), None);
        }
    }

    #[test]
    fn moving_a_tag_changes_the_digest_and_stays_bounded() {
        let (mut store, images) = seeded(4);
        for kind in [ImageKind::SingleArch, ImageKind::MultiArch] {
            let image = images.iter().find(|image| image.kind == kind).unwrap();
            let (name, tag) = image.reference["h:1/".len()..].split_once(':').unwrap();
            let mut seen = std::collections::BTreeSet::new();
            let mut last = image.digest.clone();
            for _ in 0..50 {
                let next = Some(move_tag(&mut store, name, tag).unwrap().to_string());
                assert_ne!(next, last);
                last.clone_from(&next);
                seen.insert(next);
            }
            assert_eq!(seen.len() as u64, VERSIONS);
        }
        let before = store.used_bytes();
        assert!(matches!(move_tag(&mut store, "seeded/none", "v1"), Err(Error::NoSuchTag { .. })));
        assert_eq!(store.used_bytes(), before);
    }

    /// The population contains every variant of [`Signing`]. Each signature is stored where a client expects it, and
    /// the images computed without keys equal the images stored with keys.
    #[test]
    fn signed_images_have_what_belongs_to_them() {
        let (population, keys) = (Population { count: 48, seed: 5, signed: true }, Keys::generate().unwrap());
        let mut store = Store::new(64 << 20);
        let images = seed(&mut store, "h:1", &population, Some(&keys)).unwrap();
        assert_eq!(images, population.images("h:1").unwrap(), "what is planned without keys");
        let kinds: std::collections::BTreeSet<_> = images.iter().filter_map(|image| image.signing).collect();
        assert_eq!(kinds.len(), 21, "{kinds:?}");
        for image in &images {
            let Some(signing) = image.signing else { continue };
            let (name, tag) = image.reference["h:1/".len()..].split_once(':').unwrap();
            assert_eq!(name.split('/').next(), Some(signing.folder()));
            let digest = Digest::parse(image.digest.as_ref().unwrap()).unwrap();
            assert_eq!(store.manifest(name, &Reference::Tag(tag.to_owned())).unwrap().digest, digest);
            let at_tag = |digest: &Digest| {
                let tag = Reference::Tag(format!("{}.sig", digest.as_str().replace(':', "-")));
                store.manifest(name, &tag)
            };
            let bundles = store.referrers(name, &digest, None, None, 10).items;
            let layers = |manifest: &Manifest| {
                assert_eq!(store.missing_reference(name, manifest), None);
                serde_json::from_slice::<Value>(&manifest.bytes).unwrap()["layers"].as_array().unwrap().len()
            };
            let found = (at_tag(&digest).map_or(0, layers), bundles.len());
            let wanted = match signing {
                Signing::Unsigned | Signing::Moved | Signing::Member => (0, 0),
                Signing::Both | Signing::SameTwice => (2, 0),
                Signing::Heavy => (0, 20),
                Signing::Release(form)
                | Signing::Second(form)
                | Signing::Successor(form)
                | Signing::Stranger(form)
                | Signing::OtherDigest(form)
                | Signing::Keyless(form)
                | Signing::OtherHolder(form)
                | Signing::Expired(form)
                | Signing::StrangeAuthority(form)
                | Signing::NotLogged(form) => {
                    if form == Form::Tag {
                        (1, 0)
                    } else {
                        (0, 1)
                    }
                }
            };
            assert_eq!(found, wanted, "{signing:?}");
            if signing == Signing::Member {
                assert_eq!(image.kind, ImageKind::MultiArch);
                let member = first_member(&store, name, &digest).unwrap();
                assert_eq!(at_tag(&member).map(layers), Some(1));
            }
        }
    }

    #[test]
    fn a_small_registry_says_that_it_is_full() {
        let mut store = Store::new(10_000);
        let error = seed(&mut store, "h:1", &Population { count: 40, seed: 1, signed: false }, None).unwrap_err();
        assert!(error.to_string().contains("of at most 10000 bytes"), "{error}");
    }
}
