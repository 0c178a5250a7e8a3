//! Starts the registry of signed images, and a service with the trusted keys.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use loadgen::admission::Image;
use mock_faults::{Fault, FaultId};
use mock_registry::{Form, HOLDER, Keys, Population, Server, Signing};
use serde_json::{Value, json};

use crate::admission::subject::{self, Subject, World};
use crate::kit::cores::Cores;

/// Number of images: enough that each kind is present often. The rarest kind, images without a signature, is one in
/// forty.
const IMAGES: usize = 3000;
const SEED: u64 = 7;

/// The service's limit of simultaneous reviews. The benchmark's single client may use three quarters of this limit.
const IN_FLIGHT: usize = 1000;
/// Identifier of the fault that delays the registry's answers.
const SLOW: FaultId = FaultId(1);
/// The kind of images that the benchmark verifies with cosign.
pub(super) const BESIDE_COSIGN: Signing = Signing::Release(Form::Tag);

/// The registry with signed images, and the keys and certificates to verify them.
pub(super) struct Signed {
    registry: Server,
    images: Vec<mock_registry::Image>,
    key: PathBuf,
    second: PathBuf,
    trusted_root: PathBuf,
}

/// While this value lives, the registry delays its answers.
pub(super) struct Slow<'a>(&'a Server);

impl Signed {
    pub(super) async fn start(world: &World) -> Result<Self> {
        let keys = Keys::generate()?;
        let registry = Server::start(mock_registry::Config::new()).await?;
        let images = registry.seed_signed(&Population { count: IMAGES, seed: SEED, signed: true }, &keys)?;
        let file = |name: &str, text: &str| {
            let path = world.folder.path().join(name);
            std::fs::write(&path, text).map(|()| path)
        };
        let key = file("release.pub", keys.release.public_pem())?;
        let second = file("second.pub", keys.second.public_pem())?;
        let trusted_root = file("trusted_root.json", &keys.trusted_root()?)?;
        Ok(Self { registry, images, key, second, trusted_root })
    }

    /// The file of the key that signed most images.
    pub(super) fn key(&self) -> &std::path::Path {
        &self.key
    }

    /// All images with this kind of signature.
    pub(super) fn of(&self, signing: Signing) -> Vec<Image> {
        self.images.iter().filter(|image| image.signing == Some(signing)).map(plain).collect()
    }

    /// All images with one valid signature, by a key or with a certificate.
    pub(super) fn good(&self) -> Vec<Image> {
        let is_good = |signing| matches!(signing, Signing::Release(_) | Signing::Second(_) | Signing::Keyless(_));
        let good = self.images.iter().filter(|image| image.signing.is_some_and(is_good));
        good.map(|image| Image { verified: Some(Ok(())), ..plain(image) }).collect()
    }

    /// Number of requests that the registry has received so far.
    pub(super) fn requests(&self) -> u64 {
        self.registry.requests().total()
    }

    /// Delays every answer of the registry while the returned value lives.
    pub(super) fn slow(&self, delay: &str) -> Result<Slow<'_>> {
        let fault: Fault = serde_json::from_value(json!({"name": "registry-slow", "delay": delay}))?;
        self.registry.faults().begin(SLOW, &fault).context("the registry cannot be slow")?;
        Ok(Slow(&self.registry))
    }

    /// Starts a service that verifies the registry's images, with the cache settings `cache`.
    pub(super) async fn service(&self, world: &World, cores: &Cores, cache: &Value) -> Result<Subject> {
        let root = |name: &str, file: &PathBuf| json!({"name": name, "keyFile": file});
        let holder = json!({"name": "release", "keyless": {"issuer": HOLDER.issuer, "subject": HOLDER.subject}});
        let host = self.registry.host();
        let sections = json!({
            "admission": {"maxInFlight": IN_FLIGHT},
            "resolve": {"cache": cache, "registries": [{"host": host, "plainHttp": true}]},
            "validators": [
                {"name": "default", "type": "cosign", "trustRoots": [root("release", &self.key), root("second", &self.second)]},
                {"name": "keyless", "type": "cosign", "trustRoots": [holder], "trustedRootFile": self.trusted_root},
            ],
            "policy": {"cache": cache, "rules": [
                {"pattern": "*", "with": {"trustRoot": "*", "threshold": 1, "verifyInTransparencyLog": false}},
                {"pattern": format!("{host}/keyless/*"), "validator": "keyless", "with": {"trustRoot": "release"}},
            ]},
        });
        subject::configured(world, cores, "admission", &sections).await
    }
}

impl Drop for Slow<'_> {
    fn drop(&mut self) {
        self.0.faults().end(SLOW);
    }
}

fn plain(image: &mock_registry::Image) -> Image {
    Image::new(image.reference.clone(), image.digest.clone())
}
