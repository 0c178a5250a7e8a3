//! Whose signatures count in a run: the keys of the seeded images, what the service is told of them, and what is right by them.
//!
//! Owns the policy that signed images are judged by: `release` and `second` are trusted, one of them is enough, and in the folder `two`
//! both must have signed. When keys change, `successor` takes the place of `second` in its file, and the next time the other way
//! round.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loadgen::admission::{Image, Refusal, Truth};
use mock_registry::{Keys, Signing};
use serde_json::{Value, json};

/// The folder of the key files, below that of the run.
const FOLDER: &str = "keys";
const RELEASE: &str = "release.pub";
const SECOND: &str = "second.pub";
/// Where the new file lies until it takes the place of the old one.
const FRESH: &str = "fresh";

/// The keys of a run, and the files that the service reads.
pub(super) struct Trusted {
    keys: Keys,
    folder: PathBuf,
    /// Whether `successor` stands in the place of `second` now.
    turned: std::sync::atomic::AtomicBool,
}

/// An image of the registry as the load knows it.
pub(super) fn image(image: &mock_registry::Image) -> Image {
    let verified = image.signing.map(|signing| verdict(signing, false));
    Image { verified, ..Image::new(image.reference.clone(), image.digest.clone()) }
}

/// Whether an image may run by its signatures, before and after keys have changed.
fn verdict(signing: Signing, turned: bool) -> Result<(), Refusal> {
    match signing {
        Signing::Release(_) => Ok(()),
        Signing::Second(_) | Signing::Both if !turned => Ok(()),
        Signing::Successor(_) if turned => Ok(()),
        Signing::Second(_) | Signing::Both | Signing::Successor(_) | Signing::Stranger(_) | Signing::SameTwice => {
            Err(Refusal::Invalid)
        }
        Signing::OtherDigest(_) => Err(Refusal::Mismatch),
        Signing::Unsigned | Signing::Moved => Err(Refusal::Unsigned),
    }
}

impl Trusted {
    /// Fresh keys, in files below `folder`.
    pub(super) fn generate(folder: &Path) -> Result<Self> {
        let keys = Keys::generate().context("failed to make the keys that sign images")?;
        let folder = folder.join(FOLDER);
        std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let trusted = Self { keys, folder, turned: false.into() };
        trusted.write(RELEASE, trusted.keys.release.public_pem())?;
        trusted.write(SECOND, trusted.keys.second.public_pem())?;
        Ok(trusted)
    }

    /// What signs.
    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The validators and the rules of the service, for images of the registry with this name.
    pub(super) fn sections(&self, registry: &str) -> (Value, Value) {
        let root = |name: &str, file: &str| json!({"name": name, "keyFile": self.folder.join(file)});
        let roots = [root("release", RELEASE), root("second", SECOND)];
        let with = |threshold: u32| json!({"trustRoot": "*", "threshold": threshold, "verifyInTransparencyLog": false});
        let validators = json!([{"name": "default", "type": "cosign", "trustRoots": roots}]);
        let rules = json!([
            {"pattern": "*", "with": with(1)},
            {"pattern": format!("{registry}/two/*"), "with": with(2)},
        ]);
        (validators, rules)
    }

    /// Changes keys, and tells the load what is right from now on.
    pub(super) fn change(&self, images: &[mock_registry::Image], truth: Option<&Truth>) -> Result<()> {
        let was = self.turned.fetch_xor(true, std::sync::atomic::Ordering::Relaxed);
        let key = if was { &self.keys.second } else { &self.keys.successor };
        // Told first: a service that is quick must not be ahead of what is right.
        for image in images {
            let Some(signing) = image.signing else { continue };
            let (before, after) = (verdict(signing, was), verdict(signing, !was));
            if let Some(truth) = truth.filter(|_| before != after) {
                truth.turn(&image.reference, before.err(), after.err());
            }
        }
        self.write(SECOND, key.public_pem())
    }

    /// Puts a file in its place as a whole, so that nobody reads half a key.
    fn write(&self, name: &str, pem: &str) -> Result<()> {
        let (fresh, path) = (self.folder.join(FRESH), self.folder.join(name));
        std::fs::write(&fresh, pem)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .with_context(|| format!("failed to write {}", path.display()))
    }
}
