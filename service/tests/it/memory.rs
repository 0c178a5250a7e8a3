//! Tests of the memory that callers and registries can make the service use: attacks on the shipped program under the
//! shipped limit of 64 MiB. During an attack, other reviews must be answered.
//!
//! If this process may create control groups, the kernel enforces the limit and kills a process that exceeds it. In any
//! case, the test checks the peak of the process' resident memory.

mod attacks;
mod process;
#[cfg(all(feature = "alerting", feature = "watcher"))]
mod roles;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use attacks::{large_body, pod_of_many, weighty};
use process::Process;

use crate::admission::{pod, review};
use crate::support::registry::Registry;
use crate::support::signed::{Key, Signed};

/// The memory limit in `kind/manifests/deployment.yaml`, in bytes.
const LIMIT_BYTES: u64 = 64 << 20;
const LASTS: Duration = Duration::from_secs(4);

fn config(registries: &[&str], more: &str) -> String {
    let registries: Vec<_> = registries.iter().map(|host| json!({"host": host, "plainHttp": true})).collect();
    format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nlog: {{format: json}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{timeout: 3s, registries: {}}}\n{more}",
        Value::from(registries)
    )
}

/// Sends small reviews while `attack` runs; each must be answered with `allowed`. In each review, a number replaces `?`
/// in `image`.
async fn others_are_answered(process: &Process, image: &str, attack: impl Future<Output = ()>) {
    let others = async {
        let (client, ends, mut tag) = (process.client(), Instant::now() + LASTS, 0);
        while Instant::now() < ends {
            let asked = Instant::now();
            tag += 1;
            let answer = process::ask(&client, &review("v1", &pod(&[&image.replace('?', &tag.to_string())]))).await;
            assert_eq!(answer["allowed"], true, "{answer}");
            assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::join!(others, attack);
}

fn held_within_the_limit(process: Process, what: &str) {
    let peak = process.stop();
    println!("{what}: {} KiB at most ({})", peak.bytes >> 10, peak.of);
    assert!(peak.bytes <= LIMIT_BYTES, "{what}: {} KiB ({})", peak.bytes >> 10, peak.of);
}

/// An attack by clients at two addresses without certificates: each address sends four bodies of 8 MiB and holds back
/// the last byte of each.
#[tokio::test(flavor = "multi_thread")]
async fn eight_bodies_of_eight_mebibytes() {
    let registry = Registry::start().await;
    let process = Process::start(&config(&[&registry.host()], ""), LIMIT_BYTES).await;
    let image = format!("{}/good:1", registry.host());
    let attack = async {
        let bodies = [2, 3].into_iter().flat_map(|last| (0..4).map(move |_| last));
        let held = bodies.map(|last| large_body(&process, last, 8 << 20));
        let refused = futures_util::future::join_all(held).await.into_iter().filter(|status| *status == 429).count();
        assert!((1..8).contains(&refused), "{refused} of 8 got 429");
    };
    others_are_answered(&process, &image, attack).await;
    held_within_the_limit(process, "eight bodies");
}

/// An attack by three images with twenty bundles of 8 MiB each. The bundles contain long statements, or lists of empty
/// items, which would take twenty times the memory of their text.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_bundles_of_eight_mebibytes() {
    let (registry, key) = (Signed::start().await, Key::new());
    let good = registry.push("good");
    registry.sign_in_bundle("good", &good, &good, &key);
    for repository in ["a", "b", "c"] {
        let image = registry.push(repository);
        for number in 0..20 {
            registry.bundle_of(repository, &image, &weighty(number, 8 << 20), number);
        }
    }
    let validators =
        json!([{"name": "default", "type": "cosign", "trustRoots": [{"name": "default", "key": key.pem()}]}]);
    let rules = json!([{"pattern": "*", "with": {"verifyInTransparencyLog": false}}]);
    let more = format!("validators: {validators}\npolicy: {{cache: {{ttl: 1s}}, rules: {rules}}}\n");
    let process = Process::start(&config(&[&registry.host()], &more), LIMIT_BYTES).await;
    let attack = async {
        let evil = ["a", "b", "c"].map(async |repository| {
            let client = process.client();
            process::ask(&client, &review("v1", &pod(&[&registry.image(repository)]))).await
        });
        for answer in futures_util::future::join_all(evil).await {
            assert_eq!(answer["allowed"], false, "{answer}");
        }
    };
    others_are_answered(&process, &registry.image("good"), attack).await;
    held_within_the_limit(process, "sixty bundles");
}

/// An attack by sixteen Pods of 500 images each, for which the registry never answers. During the attack, the registry
/// answers for the new images of other Pods.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn eight_thousand_images_of_a_silent_registry() {
    let registry = Registry::start().await;
    let process = Process::start(&config(&[&registry.host()], ""), LIMIT_BYTES).await;
    let image = format!("{}/good:?", registry.host());
    let attack = async {
        let asked = (0..16).map(async |pod| {
            let status = process::post(&process.client(), &pod_of_many(&registry.host(), pod)).await.0;
            assert!(matches!(status, 200 | 429), "{status}");
        });
        futures_util::future::join_all(asked).await;
    };
    others_are_answered(&process, &image, attack).await;
    held_within_the_limit(process, "8,000 images");
}
