//! Load plans with one review, for the benchmarks of this crate. These plans are not part of the crate's API.

use std::time::Duration;

use serde_json::json;

use super::expected::Expected;
use super::objects::grow::Growth;
use super::objects::manifest::{self, Draft};
use super::objects::{Identity, Kind};
use super::oracle;
use super::plan::Plan;
use super::review::{Actor, PLACEHOLDER, Review, Template};
use super::{Config, Error, Image, pods};
use crate::seed;

/// A plan whose bodies are all the same, with exactly this many bytes (at least some hundred). Any valid answer is
/// right.
pub fn plan_of_one(config: &Config, seed: u64, length: Duration, bytes: usize) -> Result<Plan, Error> {
    let body = |padding: &str| {
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": PLACEHOLDER, "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "cart", "namespace": "shop", "operation": "CREATE", "dryRun": false, "oldObject": null,
            "object": {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"name": "cart", "namespace": "shop", "annotations": {"longhaul.dev/padding": padding}},
                "spec": {"containers": [{"name": "cart", "image": "registry.example.com/shop/cart:1.4.2"}]}}}})
        .to_string()
    };
    let padding = "p".repeat(bytes.saturating_sub(body("").len()));
    let template = Template::of(body(&padding).into_bytes(), "Pod CREATE shop/cart".to_owned(), Expected::Any);
    Plan::of_one(config, seed, length, template)
}

/// A plan in which every request creates the same Pod, as `kubectl apply` does, with one container for each image. If
/// `checked` is set, every image must be pinned to its digest; otherwise any valid answer is right.
pub fn plan_of_pod(
    config: &Config,
    seed: u64,
    length: Duration,
    images: &[Image],
    checked: bool,
) -> Result<Plan, Error> {
    let mut rng = seed::stream(seed, "pod");
    let identity = Identity::new(&mut rng, "shop", "cart".to_owned());
    let references: Vec<String> = images.iter().map(|image| image.reference.clone()).collect();
    let template = manifest::template(&identity.app, &pods::spec(&mut rng, &references));
    let draft = Draft { kind: Kind::Pod, identity: &identity, template: &template, replicas: 1 };
    let object = draft.requested(&Growth::NATURAL, rng);
    let digests = oracle::digests(images);
    let expected = if checked { oracle::expected(Kind::Pod, Some(&object), None, &digests) } else { Expected::Any };
    let manager = draft.manager(&Growth::NATURAL);
    let review = Review::create(Kind::Pod, &identity, Actor::Person, object).managed_by(manager);
    Plan::of_one(config, seed, length, Template::new(&review, expected))
}
