//! The entry points of the fuzz targets in `service/fuzz`. Each fuzz target calls a parser of data from outside with
//! arbitrary bytes.
//!
//! Each function turns bytes into inputs of a parser, and panics only if a property that must hold for all inputs is
//! broken. The module is compiled only with the feature `fuzz`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::LazyLock;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use service_admission::config::Config;
use service_admission::fuzz::{self as admission, Decision};
use service_admission::{Hook, Metrics, Pipeline, Policy, Resolver, Source, Treatment};
use service_core::authority::Authority;
use service_registry::verdicts::{Class, Failure};
use service_registry::{Challenge, Keyring, Kind, Reference, check, token};

/// A configuration whose policy has rules of all kinds, for the fuzz targets.
const CONFIG: &str = r#"
resolve: {skipPrefixes: ["ko://"]}
policy:
  onFailure: {auth: error}
  rules:
    - {pattern: "ghcr.io/team/*", recheck: always, onFailure: {unavailable: allow}}
    - {pattern: "ghcr.io/*", mode: skip}
    - {pattern: "a*b?/*", mode: detect}
"#;

static LOADED: LazyLock<Config> =
    LazyLock::new(|| Config::parse(CONFIG, Path::new("fuzz.yaml")).unwrap_or_else(|error| panic!("{error}")));

/// A resolver that returns a digest for every image at once, except for images whose tag requests a failure.
struct Script;

impl Source for Script {
    fn digest(
        self: Arc<Self>,
        reference: Reference,
        _: Keyring,
        _: Instant,
    ) -> BoxFuture<'static, Result<String, Failure>> {
        let class = Class::ALL.into_iter().find(|class| reference.tag.starts_with(class.name()));
        let answer = match class {
            Some(class) => Err(Failure::new(class, "scripted")),
            None => Ok(format!("sha256:{}", "a".repeat(64))),
        };
        std::future::ready(answer).boxed()
    }
}

fn pipeline() -> Pipeline {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let resolver = Resolver::new(&LOADED.resolve, Arc::new(Script), Arc::clone(&metrics));
    Pipeline::new(Arc::new(Policy::new(&LOADED)), Arc::new(resolver), metrics)
}

/// Fuzzes reviews. Input that begins with `{` is a whole body; other input is a new Pod, or the old and new version of
/// a Pod separated by a NUL.
pub fn review(bytes: &[u8]) {
    if bytes.first() == Some(&b'{') {
        return body(bytes);
    }
    let text = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default());
    let (operation, old, new) = match text.split_once('\0') {
        Some((old, new)) => ("UPDATE", old, new),
        None => ("CREATE", "null", &*text),
    };
    let head = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":""#;
    body(format!(r#"{head}{operation}","object":{new},"oldObject":{old}}}}}"#).as_bytes());
}

/// Checks that the body of a review is refused or answered with JSON that repeats the uid. If a new object is admitted
/// without a message, its patch must pin every image that no rule exempts.
fn body(bytes: &[u8]) {
    thread_local! {
        static SET: (Pipeline, tokio::runtime::Runtime) = (
            pipeline(),
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime needs no files"),
        );
    }
    let Ok((version, ask)) = admission::parse(bytes) else { return };
    let hook = if bytes.len().is_multiple_of(2) { Hook::Mutating } else { Hook::Validating };
    let decide = |(pipeline, runtime): &(Pipeline, tokio::runtime::Runtime)| {
        runtime.block_on(async {
            let deadline = Instant::now() + std::time::Duration::from_secs(1);
            pipeline.review(hook, &ask, deadline).await.expect("a share for one review")
        })
    };
    let decision = SET.with(decide);
    assert_eq!(SET.with(decide), decision, "equal input gives equal answers");
    if let (Decision::Allow { patch, notes }, Some(object), "CREATE") = (&decision, ask.object, &*ask.operation) {
        let examined = !notes.annotations.contains_key("exempt") && notes.warnings.is_empty();
        if let (true, Ok(mut object)) = (examined, serde_json::from_str::<Value>(object)) {
            apply(&mut object, patch.as_deref());
            let policy = Policy::new(&LOADED);
            for (_, image) in admission::images(&object.to_string()) {
                assert_eq!(policy.treatment(&image), Treatment::LeaveAlone, "{image}");
            }
        }
    }
    if let Ok(answer) = admission::answer(&version, &ask.uid, decision) {
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        assert_eq!(answer["response"]["uid"], *ask.uid);
    }
}

/// Applies a JSON patch that consists of replacements.
fn apply(object: &mut Value, patch: Option<&str>) {
    let operations: Vec<Value> =
        patch.map(|patch| serde_json::from_str(patch).expect("a patch is JSON")).unwrap_or_default();
    for operation in operations {
        let path = operation["path"].as_str().expect("an operation has a path");
        let place = object.pointer_mut(path).expect("a patch leads to what is there");
        assert!(place.is_string(), "only images are replaced");
        *place = operation["value"].clone();
    }
}

/// Fuzzes configurations: each configuration is refused with a message, or gives a policy that can explain any image.
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match crate::config::parse(&text, Path::new("fuzz.yaml")) {
        Ok(config) => {
            let policy = Policy::new(&Config::of(&config));
            let _ = policy.explain("ghcr.io/team/app:1", Some("team")).to_string();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Fuzzes login challenges and answers of token services: parsed values are bounded, and every token fits into a
/// header.
pub fn challenge(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(Challenge::Bearer { realm, service }) = Challenge::parse(&text) {
        let parts = [Some(realm), service];
        assert!(parts.into_iter().flatten().all(|part| part.len() <= 4 << 10), "{text}");
    }
    if let Some((token, life)) = token(bytes) {
        assert!(life.as_secs() <= 3600 && !token.is_empty() && token.len() <= 16 << 10);
        let header = http::HeaderValue::from_str(&format!("Bearer {token}")).expect("a token is a header's value");
        assert!(!header.as_bytes()["Bearer ".len()..].iter().any(u8::is_ascii_whitespace), "{header:?}");
    }
}

/// Fuzzes manifests: accepted bytes are valid JSON, and no manifest is both an index and an image.
pub fn manifest(bytes: &[u8]) {
    const TYPES: [&str; 4] = [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ];
    let kinds = TYPES.map(|media_type| check(Some(media_type), bytes).ok());
    for (media_type, kind) in TYPES.into_iter().zip(kinds) {
        assert!(kind.is_none() || kind == Kind::of(media_type));
    }
    assert!(kinds[0] == kinds[1] && kinds[2] == kinds[3] && (kinds[0].is_none() || kinds[2].is_none()));
    if kinds.iter().any(Option::is_some) {
        // Deeper parts are only skipped: a number there may be larger than any that we could read.
        let text = std::str::from_utf8(bytes).expect("a manifest is UTF-8");
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect("a manifest is a JSON object");
        let list = |key: &str| fields.get(key).is_some_and(|value| value.get().starts_with('['));
        assert_eq!(fields["schemaVersion"].get(), "2");
        assert!(list("manifests") != list("layers"), "{text}");
    }
    // The first line as a media type, the rest as a body.
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    if let Ok(media_type) = std::str::from_utf8(&bytes[..line]) {
        let _ = check(Some(media_type), &bytes[line..]);
    }
}

/// Fuzzes HTTP/2 connections: open calls never hold more memory than their limit, and none after the connection's end.
pub fn http2(bytes: &[u8]) {
    service_core::edge::fuzz::http2(bytes);
}

/// Fuzzes Docker configurations: matching an image ends at once, and a narrowed keyring matches no more images than the
/// full keyring.
pub fn keyring(bytes: &[u8]) {
    let places = [("docker.io", "library/nginx"), ("a.corp:5000", "team/app"), ("[::1]:5000", "x")];
    let places = places.map(|(host, repository)| {
        (Authority::parse(host).unwrap_or_else(|error| panic!("{error}")), repository.to_owned())
    });
    for ring in [Keyring::docker_config(bytes, &"c".into()), Keyring::dockercfg(bytes, &"s".into())] {
        let Ok(ring) = ring else { continue };
        let part = ring.narrowed(&places);
        for (host, repository) in &places {
            let fits = |ring: &Keyring| ring.fitting(host, repository).map(Arc::clone).collect::<Vec<_>>();
            assert_eq!(fits(&ring), fits(&part));
            assert!(
                fits(&ring)
                    .iter()
                    .all(|one| one.basic().is_none_or(|basic| http::HeaderValue::from_str(&basic).is_ok()))
            );
        }
        assert_eq!(part.fingerprint().is_none(), part.is_empty());
    }
}
