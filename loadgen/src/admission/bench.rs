//! Single steps of a call, for the benchmarks.

use std::time::Duration;

use serde_json::{Value, json};

use super::interval::{Phases, Recorder, Times};
use super::objects::grow::Growth;
use super::objects::manifest::{self, Draft};
use super::objects::{Identity, Kind};
use super::oracle::{self, Expected, Judgement};
use super::plan::{Plan, Request};
use super::review::{Actor, PLACEHOLDER, Review, Template};
use super::{Config, Error, Image, answer, pods};
use crate::seed;
use crate::wire::Answer;

/// A plan whose every body is the same, exactly so many bytes long, at least some hundred. Any valid answer is right.
pub(crate) fn plan_of_one(config: &Config, seed: u64, length: Duration, bytes: usize) -> Result<Plan, Error> {
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

/// A plan whose every request creates the same Pod, with one container for each image, as `kubectl apply` has it created.
/// `checked`: every image must come back with its digest; otherwise any valid answer is right.
pub(crate) fn plan_of_pod(
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

pub(crate) struct Call {
    plan: Plan,
    request: Request,
    recorder: Recorder,
}

/// The stream of requests, without the rest of their way.
pub(crate) fn requests(plan: &Plan) -> impl Iterator<Item = (Duration, u32)> + use<> {
    plan.clone().requests().map(|(at, request)| (at, request.template))
}

impl Call {
    /// The first request whose right answer has a patch, or has none though there are images; and that patch.
    pub(crate) fn first(plan: &Plan, with_patch: bool) -> Option<(Self, Value)> {
        plan.clone().requests().find_map(|(_, request)| {
            let Expected::Allow { images } = &plan.corpus().template(request.template).expected else { return None };
            let writes = images.iter().filter(|field| field.written != field.right);
            let patch: Vec<Value> =
                writes.map(|field| json!({"op": "replace", "path": field.pointer, "value": field.right})).collect();
            if images.is_empty() || patch.is_empty() == with_patch {
                return None;
            }
            let call = Self { plan: plan.clone(), request, recorder: Recorder::default() };
            Some((call, patch.into()))
        })
    }

    pub(crate) fn uid(&self) -> String {
        String::from_utf8_lossy(&self.request.uid).into_owned()
    }

    pub(crate) fn splice(&self) -> [&[u8]; 3] {
        self.plan.corpus().template(self.request.template).around(&self.request.uid)
    }

    pub(crate) fn judge(&self, answer: &Answer) -> bool {
        let template = self.plan.corpus().template(self.request.template);
        let judged =
            answer::check(answer.seen(), &self.request.uid, true).and_then(|verdict| oracle::judge(template, verdict));
        judged.is_ok_and(|judgement| judgement.allowed && judgement.wrong.is_none())
    }

    pub(crate) fn record(&mut self, response: Duration) {
        self.recorder.sent(response / 100);
        let phases = Phases { wait: response, ..Phases::default() };
        let times = Times { phases, service: response };
        self.recorder.answered(
            times,
            self.request.template,
            Judgement { allowed: true, unavailable: false, wrong: None },
        );
    }
}
