//! A registry with signed images: manifests, blobs and referrers in memory, and keys that sign as cosign does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt as _;
use http::Response;
use parking_lot::Mutex;
use rcgen::{KeyPair, SigningKey as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Body, Server, full, status};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// The content and behaviour of the registry.
#[derive(Default)]
pub struct World {
    /// Manifests by repository and tag or digest.
    manifests: BTreeMap<String, (String, Vec<u8>)>,
    blobs: BTreeMap<String, Vec<u8>>,
    /// Descriptors of referrers, by repository and digest of the image.
    referrers: BTreeMap<String, Vec<Value>>,
    /// Whether the registry supports the referrers API.
    pub api: bool,
    /// Texts, each with a status: a request whose path contains the text gets this status; 0 means no answer.
    pub sick: Vec<(String, u16)>,
    pub delay: Duration,
    pub requests: Vec<String>,
}

pub struct Signed {
    pub server: Server,
    pub world: Arc<Mutex<World>>,
}

pub struct Key(KeyPair);

pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

impl Key {
    pub fn new() -> Self {
        Self(KeyPair::generate().unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.public_key_pem()
    }

    fn sign(&self, bytes: &[u8]) -> String {
        BASE64.encode(self.0.sign(bytes).unwrap())
    }
}

impl Signed {
    /// Pushes images that are signed by `key` (`tagged`, `bundled`), by `stranger` (`foreign`, `foreign-bundle`) or not
    /// at all (`unsigned`), and images whose signatures are about another image (`moved`, `moved-bundle`).
    pub fn fill(&self, key: &Key, stranger: &Key) {
        for (repository, by) in [("tagged", key), ("foreign", stranger)] {
            let digest = self.push(repository);
            self.sign_at_tag(repository, &digest, &digest, &[by]);
        }
        for (repository, by) in [("bundled", key), ("foreign-bundle", stranger)] {
            let digest = self.push(repository);
            self.sign_in_bundle(repository, &digest, &digest, by);
        }
        let unsigned = self.push("unsigned");
        let moved = self.push("moved");
        self.sign_at_tag("moved", &moved, &unsigned, &[key]);
        let moved = self.push("moved-bundle");
        self.sign_in_bundle("moved-bundle", &moved, &unsigned, key);
    }

    /// Starts an empty registry with the referrers API.
    pub async fn start() -> Self {
        let world = Arc::new(Mutex::new(World { api: true, ..World::default() }));
        let shared = Arc::clone(&world);
        let server = Server::start(
            false,
            Arc::new(move |request| {
                let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
                let shared = Arc::clone(&shared);
                async move {
                    let delay = shared.lock().delay;
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    answer(&shared, &method, &path).await
                }
                .boxed()
            }),
        );
        Self { server: server.await, world }
    }

    pub fn host(&self) -> String {
        self.server.address.to_string()
    }

    pub fn image(&self, repository: &str) -> String {
        format!("{}/{repository}:1", self.host())
    }

    /// The requests that arrived since the last call of this function.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.world.lock().requests)
    }

    /// Pushes an unsigned image under the tag `1`; returns its digest.
    pub fn push(&self, repository: &str) -> String {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": IMAGE, "config": {"mediaType": EMPTY, "digest": digest(b"{}"), "size": 2},
            "layers": [], "annotations": {"of": repository},
        });
        self.put(repository, Some("1"), IMAGE, manifest.to_string().as_bytes())
    }

    fn put(&self, repository: &str, tag: Option<&str>, media_type: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        let manifests = &mut self.world.lock().manifests;
        for name in [Some(&*digest), tag].into_iter().flatten() {
            manifests.insert(format!("{repository}/{name}"), (media_type.to_owned(), bytes.to_vec()));
        }
        digest
    }

    pub fn blob(&self, bytes: &[u8]) -> Value {
        let digest = digest(bytes);
        self.world.lock().blobs.insert(digest.clone(), bytes.to_vec());
        json!({"digest": digest, "size": bytes.len()})
    }

    /// Pushes signatures of the digest `signed` by `keys` to the `.sig` tag of `image`, as `cosign sign` of version 2
    /// does.
    pub fn sign_at_tag(&self, repository: &str, image: &str, signed: &str, keys: &[&Key]) {
        let payload = json!({"critical": {
            "identity": {"docker-reference": format!("{}/{repository}", self.host())},
            "image": {"docker-manifest-digest": signed}, "type": "cosign container image signature",
        }, "optional": null});
        let payload = payload.to_string();
        let layers: Vec<_> = keys
            .iter()
            .map(|key| {
                let mut layer = self.blob(payload.as_bytes());
                layer["mediaType"] = PAYLOAD.into();
                layer["annotations"] = json!({"dev.cosignproject.cosign/signature": key.sign(payload.as_bytes())});
                layer
            })
            .collect();
        let mut config = self.blob(b"{}");
        config["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
        let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": layers});
        self.put(repository, Some(&signature_tag(image)), IMAGE, manifest.to_string().as_bytes());
    }

    /// Pushes a bundle that signs `signed`, as a referrer of `image`, as `cosign sign` of version 3 does.
    pub fn sign_in_bundle(&self, repository: &str, image: &str, signed: &str, key: &Key) {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": signed.trim_start_matches("sha256:")}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {},
        });
        let (kind, statement) = ("application/vnd.in-toto+json", statement.to_string());
        let signed = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
        let bundle = json!({
            "mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": ""}, "tlogEntries": []},
            "dsseEnvelope": {"payload": BASE64.encode(&statement), "payloadType": kind, "signatures": [{"sig": key.sign(signed.as_bytes())}]},
        });
        self.bundle_of(repository, image, bundle.to_string().as_bytes(), 0);
    }

    /// Pushes the bytes `bundle` as a referrer of `image`; different values of `number` make equal bundles different.
    pub fn bundle_of(&self, repository: &str, image: &str, bundle: &[u8], number: usize) {
        let mut layer = self.blob(bundle);
        layer["mediaType"] = BUNDLE.into();
        let mut config = self.blob(b"{}");
        config["mediaType"] = EMPTY.into();
        let subject = json!({"mediaType": IMAGE, "digest": image, "size": 300});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": IMAGE, "artifactType": BUNDLE, "config": config, "layers": [layer], "subject": subject,
            "annotations": {"number": number.to_string()},
        });
        let manifest = manifest.to_string().into_bytes();
        let (size, digest) = (manifest.len(), self.put(repository, None, IMAGE, &manifest));
        let descriptor = json!({"mediaType": IMAGE, "artifactType": BUNDLE, "digest": digest, "size": size});
        let mut world = self.world.lock();
        let referrers = world.referrers.entry(format!("{repository}/{image}")).or_default();
        referrers.push(descriptor);
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": referrers}).to_string();
        let fallback = format!("{repository}/{}", image.replace(':', "-"));
        world.manifests.insert(fallback, (INDEX.to_owned(), index.into_bytes()));
    }

    /// Loads a repository from `service/roles/verify/fixtures/registry`. The repository's referrers are the ones at the
    /// fallback tag.
    pub fn load(&self, repository: &str, content: &Value) {
        let texts = |key: &str| -> Vec<(String, String)> {
            let map = content[key].as_object().unwrap().iter();
            map.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
        };
        let mut world = self.world.lock();
        for (digest, text) in texts("manifests") {
            let manifest: Value = serde_json::from_str(&text).unwrap();
            let media_type = manifest["mediaType"].as_str().unwrap_or(IMAGE).to_owned();
            world.manifests.insert(format!("{repository}/{digest}"), (media_type, text.into_bytes()));
        }
        for (tag, digest) in texts("tags") {
            let manifest = world.manifests[&format!("{repository}/{digest}")].clone();
            if let Some(image) = tag.strip_prefix("sha256-").filter(|hex| hex.len() == 64) {
                let index: Value = serde_json::from_slice(&manifest.1).unwrap();
                let referrers = index["manifests"].as_array().unwrap().clone();
                world.referrers.insert(format!("{repository}/sha256:{image}"), referrers);
            }
            world.manifests.insert(format!("{repository}/{tag}"), manifest);
        }
        for (digest, text) in texts("blobs") {
            world.blobs.insert(digest, text.into_bytes());
        }
    }

    /// Replaces the manifest at the `.sig` tag of `image` with `bytes`.
    pub fn spoil_tag(&self, repository: &str, image: &str, bytes: &[u8]) {
        self.put(repository, Some(&signature_tag(image)), IMAGE, bytes);
    }

    /// From now on, serves every blob without its last byte.
    pub fn truncate_blobs(&self) {
        for bytes in self.world.lock().blobs.values_mut() {
            bytes.pop();
        }
    }
}

fn signature_tag(image: &str) -> String {
    image.replace(':', "-") + ".sig"
}

async fn answer(world: &Mutex<World>, method: &str, path: &str) -> Response<Body> {
    let sick = {
        let mut world = world.lock();
        world.requests.push(format!("{method} {path}"));
        world.sick.iter().find(|(part, _)| path.contains(part.as_str())).map(|(_, status)| *status)
    };
    match sick {
        Some(0) => std::future::pending().await,
        Some(1) => tokio::time::sleep(Duration::from_millis(300)).await,
        Some(code) => return status(code, ""),
        None => {}
    }
    let world = world.lock();
    let rest = path.trim_start_matches("/v2/");
    let (media_type, bytes) = if let Some((repository, name)) = rest.split_once("/manifests/") {
        match world.manifests.get(&format!("{repository}/{name}")) {
            Some((media_type, bytes)) => (media_type.as_str(), bytes.clone()),
            None => return status(404, ""),
        }
    } else if let Some((_, name)) = rest.split_once("/blobs/") {
        match world.blobs.get(name) {
            Some(bytes) => ("application/octet-stream", bytes.clone()),
            None => return status(404, ""),
        }
    } else if let Some((repository, name)) = rest.split_once("/referrers/").filter(|_| world.api) {
        let none = Vec::new();
        let referrers = world.referrers.get(&format!("{repository}/{name}")).unwrap_or(&none);
        (INDEX, json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": referrers}).to_string().into_bytes())
    } else {
        return status(404, "404 page not found");
    };
    let builder =
        Response::builder().header("content-type", media_type).header("docker-content-digest", digest(&bytes));
    builder.body(full(if method == "HEAD" { Vec::new() } else { bytes })).unwrap()
}
