//! Tests that signatures are injected with their images, and that `--verify` sends no image that the policy would
//! refuse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mock_registry::{Form, HOLDER, Image, ImageKind, Keys, Population, Server, Signing};
use serde_json::json;
use tokio::process::Command;

use super::pulls::tool;
use super::world::{Programs, Setup, World};

/// The images of the registry, so many that each kind of signature is present.
const POPULATION: Population = Population { count: 48, seed: 5, signed: true };

/// A registry with signed images, and the keys to verify them.
struct Signed {
    registry: Server,
    images: Vec<Image>,
    keys: PathBuf,
}

impl Signed {
    async fn start(keys: PathBuf) -> Self {
        let registry = Server::start(mock_registry::Config::new()).await.unwrap();
        let made = Keys::generate().unwrap();
        std::fs::create_dir(&keys).unwrap();
        std::fs::write(keys.join("release.pub"), made.release.public_pem()).unwrap();
        std::fs::write(keys.join("trusted_root.json"), made.trusted_root().unwrap()).unwrap();
        let images = registry.seed_signed(&POPULATION, &made).unwrap();
        Self { registry, images, keys }
    }

    /// The reference of an image with this kind of signature.
    fn of(&self, signing: Signing) -> &str {
        &self.images.iter().find(|image| image.signing == Some(signing)).unwrap().reference
    }

    /// A policy for images of any registry: they need signatures by the release key, and in the folder `keyless`
    /// signatures by the certified signer.
    fn configuration(&self, host: &str) -> String {
        let path = self.keys.join(format!("{}.yaml", host.replace(':', "-")));
        let holder = json!({"name": "release", "keyless": {"issuer": HOLDER.issuer, "subject": HOLDER.subject}});
        let validators = json!([
            {"name": "default", "type": "cosign", "trustRoots": [{"name": "release", "keyFile": "release.pub"}]},
            {"name": "keyless", "type": "cosign", "trustRoots": [holder], "trustedRootFile": "trusted_root.json"},
        ]);
        let rules = json!([
            {"pattern": "*", "with": {"trustRoot": "release", "verifyInTransparencyLog": false}},
            {"pattern": "*/keyless/*", "validator": "keyless", "with": {"trustRoot": "release"}},
        ]);
        let registries = json!([{"host": host, "plainHttp": true}]);
        let configuration =
            json!({"validators": validators, "policy": {"rules": rules}, "resolve": {"registries": registries}});
        std::fs::write(&path, configuration.to_string()).unwrap();
        path.to_string_lossy().into_owned()
    }
}

/// Images signed in both forms, with and without keys, are sent only because `--verify` accepts them. A client of the
/// injected program can verify these images again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn signatures_travel_and_hold_at_the_other_end() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    let signed = Signed::start(world.folder.path().join("keys")).await;
    let good = [
        Signing::Release(Form::Tag),
        Signing::Release(Form::Bundle),
        Signing::Keyless(Form::Tag),
        Signing::Keyless(Form::Bundle),
    ]
    .map(|signing| signed.of(signing));
    let config = signed.configuration(signed.registry.host());
    let seed = world.programs.seed.to_string_lossy().into_owned();
    let sources = good.map(|image| format!("docker://{image}"));
    let mut arguments = vec!["--config", &config, "--verify", "--seed", &seed, "--wait-seconds", "60"];
    arguments.extend(sources.iter().flat_map(|source| ["--image", source]));
    let (code, said) = world.run(world.command("apply", &arguments)).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches("signed by release: ").count(), good.len(), "{said}");
    assert!(said.contains("signatures and the like: 4"), "{said}");
    let host = world.kubelet.seen.lock().address.unwrap().to_string();
    let there = signed.configuration(&host);
    for image in good {
        let (_, name) = image.split_once('/').unwrap();
        let mut verify = Command::new(&world.programs.service);
        verify.args(["verify", &format!("{host}/{name}"), "--config", &there]);
        let (code, said) = world.run(verify).await;
        assert!(code == 0 && said.contains("\nverified\n"), "{image}: {said}");
    }
    // Both cosign 2 and 3 look for this form; neither states which one it is.
    let key = signed.keys.join("release.pub").to_string_lossy().into_owned();
    let there = format!("{host}/{}", good[0].split_once('/').unwrap().1);
    let flags = ["verify", "--key", &key, "--insecure-ignore-tlog=true", "--allow-insecure-registry", &there];
    tool("cosign", &flags).await;
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
    signed.registry.shutdown().await;
}

/// If one image of several is not valid, the injector reports the class of its error and sends nothing. If only one
/// image of an index is sent, the signature of the index is left out.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn what_is_not_verified_is_not_sent() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    let signed = Signed::start(world.folder.path().join("keys")).await;
    let config = signed.configuration(signed.registry.host());
    let seed = world.programs.seed.to_string_lossy().into_owned();
    let good = format!("docker://{}", signed.of(Signing::Release(Form::Tag)));
    let bad = BTreeMap::from([
        (Signing::Unsigned, "unsigned"),
        (Signing::Moved, "unsigned"),
        (Signing::Stranger(Form::Tag), "invalid"),
        (Signing::Stranger(Form::Bundle), "invalid"),
        (Signing::OtherDigest(Form::Tag), "mismatch"),
        (Signing::OtherDigest(Form::Bundle), "mismatch"),
        (Signing::StrangeAuthority(Form::Bundle), "invalid"),
        (Signing::NotLogged(Form::Tag), "invalid"),
    ]);
    for (signing, class) in bad {
        let image = format!("docker://{}", signed.of(signing));
        let arguments = ["--config", &config, "--verify", "--seed", &seed, "--image", &good, "--image", &image];
        let (code, said) = world.run(world.command("apply", &arguments)).await;
        assert!(code == 1 && said.contains("not verified, so no image is sent"), "{signing:?}: {code}: {said}");
        assert!(said.contains(&format!(": {class}: ")), "{signing:?} is {class}: {said}");
        assert_eq!(said.matches("verified: ").count(), 1, "the other one is: {said}");
    }
    assert_eq!(world.left().await, Vec::<String>::new());
    let is_index =
        |image: &&Image| image.kind == ImageKind::MultiArch && matches!(image.signing, Some(Signing::Release(_)));
    let index = format!("docker://{}", signed.images.iter().find(is_index).unwrap().reference);
    let of_index = ["--offline", "--config", &config, "--verify", "--seed", &seed, "--image", &index];
    let (code, said) = world.run(world.command("plan", &of_index)).await;
    assert_eq!(code, 0, "{said}");
    let one = [&of_index[..], &["--platform", "linux/amd64"]].concat();
    let (code, said) = world.run(world.command("plan", &one)).await;
    assert!(code == 1 && said.contains("--platform leaves out an index and what signs it"), "{code}: {said}");
    // Without --verify the user may send them, and without --config they cannot be judged.
    let image = format!("docker://{}", signed.of(Signing::Unsigned));
    let plan = ["--offline", "--seed", &seed, "--image", &image];
    let (code, said) = world.run(world.command("plan", &[&plan[..], &["--config", &config]].concat())).await;
    assert!(code == 0 && !said.contains("signatures and the like"), "{said}");
    let (code, said) = world.run(world.command("plan", &[&plan[..], &["--verify"]].concat())).await;
    assert!(code != 0 && said.contains("--config"), "{said}");
    signed.registry.shutdown().await;
}
