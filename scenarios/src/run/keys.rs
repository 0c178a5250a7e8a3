//! The signing keys of the seeded images, the service's policy for them, and the right answer of the service for each
//! image.
//!
//! Owns the policy for signed images: the keys `release` and `second` are trusted, and one signature is enough. Images
//! in the registry folder `two` must be signed with both keys. For images in the registry folder `keyless`, no key
//! counts; the signer must be certified by an authority. A change of keys replaces `second` by `successor` in the key
//! file, and the next change restores `second`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loadgen::admission::{Image, Refusal, Truth};
use mock_registry::{HOLDER, Keys, Signing};
use serde_json::{Value, json};

const RELEASE: &str = "release.pub";
const SECOND: &str = "second.pub";
/// The file name of the certificate authorities for keyless signers, and of the trusted logs.
const TRUSTED_ROOT: &str = "trusted_root.json";
/// The temporary name of a new file before it replaces the old file.
const FRESH: &str = "fresh";

/// The trusted keys of a run, and the files from which the service reads them.
pub(crate) struct Trusted {
    keys: Keys,
    folder: PathBuf,
    /// Whether the key file now holds `successor` instead of `second`.
    turned: std::sync::atomic::AtomicBool,
}

/// An image of the registry, converted for the load generator.
pub(super) fn image(image: &mock_registry::Image) -> Image {
    let verified = image.signing.map(|signing| verdict(signing, false));
    let hostile = image.signing == Some(Signing::Heavy);
    Image { verified, hostile, ..Image::new(image.reference.clone(), image.digest.clone()) }
}

/// Whether the signatures of an image allow it to run; `turned` says that the keys have changed.
fn verdict(signing: Signing, turned: bool) -> Result<(), Refusal> {
    match signing {
        Signing::Release(_) | Signing::Keyless(_) => Ok(()),
        Signing::Second(_) | Signing::Both if !turned => Ok(()),
        Signing::Successor(_) if turned => Ok(()),
        Signing::Second(_)
        | Signing::Both
        | Signing::Successor(_)
        | Signing::Stranger(_)
        | Signing::SameTwice
        | Signing::OtherHolder(_)
        | Signing::Expired(_)
        | Signing::StrangeAuthority(_)
        | Signing::NotLogged(_)
        | Signing::Heavy => Err(Refusal::Invalid),
        Signing::OtherDigest(_) => Err(Refusal::Mismatch),
        Signing::Unsigned | Signing::Moved | Signing::Member => Err(Refusal::Unsigned),
    }
}

impl Trusted {
    /// Generates keys, and writes their files into the new folder `folder`.
    pub(crate) fn generate(folder: PathBuf) -> Result<Self> {
        let keys = Keys::generate().context("failed to make the keys that sign images")?;
        std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let trusted = Self { keys, folder, turned: false.into() };
        trusted.write(RELEASE, trusted.keys.release.public_pem())?;
        trusted.write(SECOND, trusted.keys.second.public_pem())?;
        trusted.write(
            TRUSTED_ROOT,
            &trusted.keys.trusted_root().context("failed to write the trust root of the signers")?,
        )?;
        Ok(trusted)
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The sections of the service's configuration with the validators and the rules for images of this registry.
    pub(crate) fn sections(&self, registry: &str) -> (Value, Value) {
        let root = |name: &str, file: &str| json!({"name": name, "keyFile": self.folder.join(file)});
        let roots = [root("release", RELEASE), root("second", SECOND)];
        let with = |threshold: u32| json!({"trustRoot": "*", "threshold": threshold, "verifyInTransparencyLog": false});
        let holder = json!({"name": "release", "keyless": {"issuer": HOLDER.issuer, "subject": HOLDER.subject}});
        let trusted_root = self.folder.join(TRUSTED_ROOT);
        let validators = json!([
            {"name": "default", "type": "cosign", "trustRoots": roots},
            {"name": "keyless", "type": "cosign", "trustRoots": [holder], "trustedRootFile": trusted_root},
        ]);
        let rules = json!([
            {"pattern": "*", "with": with(1)},
            {"pattern": format!("{registry}/two/*"), "with": with(2)},
            {"pattern": format!("{registry}/keyless/*"), "validator": "keyless", "with": {"trustRoot": "release"}},
        ]);
        (validators, rules)
    }

    /// A configuration of the service with only the sections for signatures. The images are in the registry with this
    /// name, which uses plain HTTP.
    pub(crate) fn configuration(&self, registry: &str, login: Option<(&str, &Path)>) -> Value {
        let (validators, rules) = self.sections(registry);
        let mut host = json!({"host": registry, "plainHttp": true});
        if let Some((name, password)) = login {
            host["username"] = name.into();
            host["passwordFile"] = json!(password);
        }
        json!({"validators": validators, "policy": {"rules": rules}, "resolve": {"registries": [host]}})
    }

    /// Changes the trusted keys, and updates the right verdicts for the load.
    pub(super) fn change(&self, images: &[mock_registry::Image], truth: Option<&Truth>) -> Result<()> {
        let was = self.turned.fetch_xor(true, std::sync::atomic::Ordering::Relaxed);
        let key = if was { &self.keys.second } else { &self.keys.successor };
        // The right answers change first, because the service may read the new keys at once.
        for image in images {
            let Some(signing) = image.signing else { continue };
            let (before, after) = (verdict(signing, was), verdict(signing, !was));
            if let Some(truth) = truth.filter(|_| before != after) {
                truth.turn(&image.reference, before.err(), after.err());
            }
        }
        self.write(SECOND, key.public_pem())
    }

    /// Replaces a file atomically, so that no reader sees an incomplete file.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let (fresh, path) = (self.folder.join(FRESH), self.folder.join(name));
        std::fs::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .with_context(|| format!("failed to write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy names every folder of signed images, and the files that the policy names exist.
    #[test]
    fn what_the_service_is_told_fits_the_images() {
        let folder = tempfile::tempdir().unwrap();
        let trusted = Trusted::generate(folder.path().join("keys")).unwrap();
        let (validators, rules) = trusted.sections("h:1");
        let named = |value: &Value| value.as_str().is_some_and(|path| Path::new(path).is_file());
        assert!(named(&validators[0]["trustRoots"][0]["keyFile"]) && named(&validators[0]["trustRoots"][1]["keyFile"]));
        assert!(named(&validators[1]["trustedRootFile"]), "{validators}");
        let population = mock_registry::Population { count: 48, seed: 5, signed: true };
        let folders: std::collections::BTreeSet<String> = population
            .images("h:1")
            .unwrap()
            .iter()
            .filter(|image| image.signing.is_some())
            .filter_map(|image| Some(image.reference.strip_prefix("h:1/")?.split_once('/')?.0.to_owned()))
            .collect();
        assert_eq!(folders.iter().collect::<Vec<_>>(), ["keyless", "seeded", "two"]);
        let patterns: Vec<_> = rules.as_array().unwrap().iter().map(|rule| rule["pattern"].clone()).collect();
        assert_eq!(patterns, ["*", "h:1/two/*", "h:1/keyless/*"]);
    }

    /// A change of keys changes only the right answers for images that are signed with the changed keys.
    #[test]
    fn only_images_of_the_changed_keys_turn() {
        let images = mock_registry::Population { count: 48, seed: 5, signed: true }.images("h:1").unwrap();
        for signing in images.iter().filter_map(|image| image.signing) {
            let turns = matches!(signing, Signing::Second(_) | Signing::Both | Signing::Successor(_));
            assert_eq!(verdict(signing, false) != verdict(signing, true), turns, "{signing:?}");
        }
    }
}
