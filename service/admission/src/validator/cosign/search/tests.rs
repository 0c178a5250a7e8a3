//! Tests of how much the signatures of one image delay other images. The tests use a scripted registry and a clock that
//! advances only when all tasks wait.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use service_core::share::Share;
use service_registry::verdicts::{Class, Failure};
use service_registry::{Keyring, Piece, Wanted};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::validator::cosign::load;
use crate::validator::{Memory, Pieces, Question, Validator};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const KEY: &str = include_str!("../../../../../roles/verify/fixtures/trust/keys/p256.pub");
/// Time that the registry takes to deliver a bundle.
const FETCH: Duration = Duration::from_millis(20);
/// Time limit of one call of the validator.
const TIME: Duration = Duration::from_secs(5);

/// A registry whose repository names state number and size of the image's bundles: `24x8388608-…`. No bundle of this
/// registry is a valid signature.
struct Script;

fn digest(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text)))
}

fn bundles(repository: &str) -> Vec<String> {
    let (count, size) = repository.split('-').next().and_then(|text| text.split_once('x')).unwrap();
    let (count, size): (usize, u64) = (count.parse().unwrap(), size.parse().unwrap());
    let manifest = |number: usize| {
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest("{}"), "size": 2},
            "layers": [{"mediaType": BUNDLE, "digest": digest(&number.to_string()), "size": size}],
            "annotations": {"number": number.to_string()},
        })
    };
    (0..count).map(|number| manifest(number).to_string()).collect()
}

impl Pieces for Script {
    fn piece<'p>(&'p self, question: &'p Question, wanted: Wanted<'p>) -> BoxFuture<'p, Result<Piece, Failure>> {
        async move {
            let bundles = bundles(&question.repository);
            Ok(match wanted {
                Wanted::Referrers(_) => {
                    let descriptor = |text: &String| -> Value {
                        json!({"mediaType": MANIFEST, "artifactType": BUNDLE, "digest": digest(text), "size": text.len()})
                    };
                    let manifests: Vec<_> = bundles.iter().map(descriptor).collect();
                    Piece::Found(json!({"schemaVersion": 2, "manifests": manifests}).to_string().into())
                }
                Wanted::Manifest(name) => match bundles.into_iter().find(|text| digest(text) == name) {
                    Some(text) => Piece::Found(text.into()),
                    None => Piece::Absent,
                },
                _ => {
                    sleep(FETCH).await;
                    Piece::Found(Bytes::from_static(b"{}"))
                }
            })
        }
        .boxed()
    }

    fn relevant(&self, _: &str, _: &str, _: &Keyring) -> Keyring {
        Keyring::default()
    }
}

fn validator(bytes: usize) -> Arc<dyn Validator> {
    let config = json!({
        "validators": [{"name": "default", "type": "cosign", "trustRoots": [{"name": "default", "key": KEY}]}],
        "policy": {"rules": [{"pattern": "*", "with": {"verifyInTransparencyLog": false}}]},
    });
    let config = Config::parse(&config.to_string(), Path::new("c.yaml")).unwrap();
    let pieces: Arc<dyn Pieces> = Arc::new(Script);
    let validators = load(&config, &pieces, &Memory::of(&Share::of(bytes))).unwrap();
    Arc::clone(validators.of_rule(0).unwrap())
}

/// Validates the image in `repository`; returns the failure class and the time until the failure.
async fn class_and_time(validator: &Arc<dyn Validator>, repository: &str) -> (Class, Duration) {
    let begun = Instant::now();
    let question = Question {
        host: "h.io".into(),
        repository: repository.into(),
        digest: digest("image").into(),
        keyring: Keyring::default(),
        deadline: begun + TIME,
    };
    let failure = Arc::clone(validator).validate(question).await.unwrap_err();
    (failure.class, begun.elapsed())
}

/// While four Pods with sixteen images of 24 bundles of 8 MiB each wait for memory that holds one bundle, another
/// tenant's image gets its verdict without delay.
#[tokio::test(start_paused = true)]
async fn evidence_is_waited_for_by_the_image_that_has_it() {
    let validator = validator(32 << 20);
    let heavy: Vec<_> = (0..64).map(|number| format!("24x{}-{number}", 8 << 20)).collect();
    let attack = join_all(heavy.iter().map(|repository| class_and_time(&validator, repository)));
    let neighbours = async {
        for repository in ["1x8192-signed", "0x0-unsigned"] {
            sleep(Duration::from_secs(1)).await;
            let (class, took) = class_and_time(&validator, repository).await;
            assert!(!class.is_own_limit() && class != Class::Unavailable, "{repository}: {class}");
            assert!(took <= 3 * FETCH, "{repository}: {took:?}");
        }
    };
    let (failed, ()) = tokio::join!(attack, neighbours);
    assert!(failed.iter().all(|(class, _)| class.is_own_limit()), "{failed:?}");
}

/// If an image has too many objects or too large ones in place of signatures, no policy admits its failure class, even
/// if the registry answers every request.
#[tokio::test(start_paused = true)]
async fn more_than_one_review_may_look_at_is_a_class_of_its_own() {
    for (repository, share) in [
        ("24x8388608", 32 << 20), // too many bytes
        ("30x100", 32 << 20),     // too many pieces
        ("1x8388608", 24 << 20),  // a piece that never fits
    ] {
        let (class, _) = class_and_time(&validator(share), repository).await;
        assert_eq!(class, Class::TooMuchEvidence, "{repository}");
    }
    let (class, _) = class_and_time(&validator(32 << 20), "3x8388608").await;
    assert_eq!(class, Class::Invalid, "what may be looked at was");
}
