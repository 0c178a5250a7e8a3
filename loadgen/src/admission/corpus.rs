//! The corpus: a bounded set of user actions, each already expanded to the reviews that Kubernetes sends for it. Pure.
//!
//! A denied action ends with its denial: when a Deployment is refused there is no `ReplicaSet`. What controllers make
//! from an admitted object carries the pins that the object got, so those reviews are right without a patch.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::config::Image;
use super::mix::{Action, Mix};
use super::objects::{self, Identity, Kind};
use super::oracle::{self, Digests, Expected};
use super::pods;
use super::review::{Operation, Review, Template};
use crate::{Size, seed};

/// Different instances of each action. Enough that no two neighbouring requests look alike.
const VARIANTS: usize = 16;
/// Once the corpus has this many bytes, no further variants are made: large sizes get fewer.
const MOST_BYTES: usize = 32 << 20;
const MOST_CONTAINERS: usize = 3;
/// Image names for webhooks of which nothing is known. The host is reserved for examples (RFC 2606): nothing answers there.
const INVENTED: [&str; 6] = [
    "shop/cart:1.4.2",
    "shop/ledger:7",
    "shop/search:2026-01-05",
    "base/proxy:v3.1",
    "tools/migrate:0.9.0",
    "ml/model:latest",
];

/// Templates, and for each action the sequences of template numbers that its variants send.
#[derive(Debug)]
pub(super) struct Corpus {
    templates: Vec<Template>,
    actions: Vec<(Action, Vec<Vec<u32>>)>,
}

impl Corpus {
    /// Reviews whose right answers follow from the images.
    pub(super) fn build(mix: &Mix, size: Option<Size>, seed: u64, images: &[Image]) -> Self {
        let digests = oracle::digests(images);
        Self::expanded(mix, Expand::new(seed, size, images, Some(&digests)))
    }

    /// Reviews of images that nobody knows: any valid answer is right, and whatever was asked for goes on.
    pub(super) fn for_any_webhook(mix: &Mix, size: Option<Size>, seed: u64) -> Self {
        let images: Vec<Image> = INVENTED
            .iter()
            .map(|name| Image { reference: format!("registry.example.com/{name}"), digest: None })
            .collect();
        Self::expanded(mix, Expand::new(seed, size, &images, None))
    }

    fn expanded(mix: &Mix, mut expand: Expand<'_>) -> Self {
        let mut corpus = Self { templates: Vec::new(), actions: Vec::new() };
        let wanted = mix.weights().into_iter().filter(|&(_, weight)| weight > 0);
        corpus.actions.extend(wanted.map(|(action, _)| (action, Vec::new())));
        let mut bytes = 0;
        for variant in 0..VARIANTS {
            if variant > 0 && bytes > MOST_BYTES {
                break;
            }
            for (action, variants) in &mut corpus.actions {
                let mut sequence = Vec::new();
                for review in expand.action(*action, Pick::of(variant)) {
                    let expected = match expand.digests {
                        Some(digests) => oracle::expected(review.kind, review.object.as_ref(), digests),
                        None => Expected::Any,
                    };
                    let template = Template::new(&review, expected);
                    bytes += template.bytes().len();
                    sequence.push(u32::try_from(corpus.templates.len()).expect("a few thousand templates at most"));
                    corpus.templates.push(template);
                }
                variants.push(sequence);
            }
        }
        corpus
    }

    /// This corpus with one of its templates for everything.
    pub(super) fn only(mut self, number: usize) -> Self {
        self.templates = vec![self.templates.swap_remove(number)];
        for (_, variants) in &mut self.actions {
            *variants = vec![vec![0]];
        }
        self
    }

    pub(super) fn templates(&self) -> &[Template] {
        &self.templates
    }

    pub(super) fn template(&self, number: u32) -> &Template {
        &self.templates[number as usize]
    }

    /// The reviews of one variant of the action, drawn at random.
    pub(super) fn draw(&self, action: Action, rng: &mut ChaCha8Rng) -> &[u32] {
        let Some((_, variants)) = self.actions.iter().find(|(known, _)| *known == action) else { return &[] };
        &variants[rng.random_range(0..variants.len())]
    }

    /// Every action with its variants.
    pub(super) fn actions(&self) -> &[(Action, Vec<Vec<u32>>)] {
        &self.actions
    }
}

/// Which images a variant uses, so that every action is seen both admitted and denied where the images allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    Existing,
    OneMissing,
    Any,
}

impl Pick {
    fn of(variant: usize) -> Self {
        match variant {
            0 => Self::Existing,
            1 => Self::OneMissing,
            _ => Self::Any,
        }
    }
}

struct Expand<'a> {
    rng: ChaCha8Rng,
    images: &'a [Image],
    /// `None`: nobody knows what exists.
    digests: Option<&'a Digests>,
    size: Option<Size>,
}

impl<'a> Expand<'a> {
    fn new(seed: u64, size: Option<Size>, images: &'a [Image], digests: Option<&'a Digests>) -> Self {
        Self { rng: seed::stream(seed, "corpus"), images, digests, size }
    }

    fn action(&mut self, action: Action, pick: Pick) -> Vec<Review> {
        match action {
            Action::CreatePod => self.create(Kind::Pod, pick),
            Action::CreateDeployment => self.create(Kind::Deployment, pick),
            Action::CreateStatefulSet => self.create(Kind::StatefulSet, pick),
            Action::CreateDaemonSet => self.create(Kind::DaemonSet, pick),
            Action::CreateJob => self.create(Kind::Job, pick),
            Action::CreateCronJob => self.create(Kind::CronJob, pick),
            Action::RollImage => self.roll_image(pick),
            Action::ScaleDeployment => self.scale_deployment(),
            Action::LabelPod => self.label_pod(),
            Action::DeletePod => self.delete_pod(),
            Action::DebugPod => self.debug_pod(pick),
            Action::CreatePodWithImageVolume => self.image_volume(pick),
        }
    }

    fn create(&mut self, kind: Kind, pick: Pick) -> Vec<Review> {
        let count = self.rng.random_range(1..=MOST_CONTAINERS);
        let images = self.pick(count, pick);
        let spec = pods::spec(&mut self.rng, &images);
        let identity = self.identity();
        let object = self.object(kind, &identity, &spec, false);
        let mut reviews = vec![create(kind, &identity, None, object)];
        if self.exist(&images) {
            reviews.extend(self.children(kind, &identity, &spec));
        }
        reviews
    }

    /// What the controllers make from an object that was admitted and pinned.
    fn children(&mut self, kind: Kind, owner: &Identity, spec: &Value) -> Vec<Review> {
        let pinned = self.pinned(spec);
        let (next, suffix, count) = match kind {
            Kind::Pod => return Vec::new(),
            Kind::Deployment => (Kind::ReplicaSet, 10, 1),
            Kind::CronJob => (Kind::Job, 8, 1),
            Kind::Job => (Kind::Pod, 5, 1),
            Kind::ReplicaSet | Kind::StatefulSet | Kind::DaemonSet => (Kind::Pod, 5, objects::replicas(&mut self.rng)),
        };
        let mut reviews = Vec::new();
        for _ in 0..count {
            let identity = owner.child(&mut self.rng, kind, suffix);
            let object = self.object(next, &identity, &pinned, false);
            reviews.push(create(next, &identity, Some(kind), object));
            reviews.extend(self.children(next, &identity, spec));
        }
        reviews
    }

    fn roll_image(&mut self, pick: Pick) -> Vec<Review> {
        let count = self.rng.random_range(1..=MOST_CONTAINERS);
        let before = self.pick(count, Pick::Existing);
        let old_spec = {
            let spec = pods::spec(&mut self.rng, &before);
            self.pinned(&spec)
        };
        let identity = self.identity();
        let image = self.pick(1, pick).remove(0);
        let mut new_spec = old_spec.clone();
        new_spec["containers"][0]["image"] = json!(image);
        let old = self.object(Kind::Deployment, &identity, &old_spec, true);
        let mut new = old.clone();
        new["spec"]["template"]["spec"] = new_spec.clone();
        new["metadata"]["generation"] = json!(2);
        let mut reviews = vec![update(Kind::Deployment, &identity, None, new, old)];
        if self.exist(&[image]) {
            reviews.extend(self.children(Kind::Deployment, &identity, &new_spec));
            let pod = identity.child(&mut self.rng, Kind::ReplicaSet, 5);
            let old_pod = self.object(Kind::Pod, &pod, &old_spec, true);
            reviews.push(delete(Kind::Pod, &pod, Some(Kind::ReplicaSet), old_pod));
        }
        reviews
    }

    fn scale_deployment(&mut self) -> Vec<Review> {
        let images = self.pick(2, Pick::Existing);
        let spec = {
            let spec = pods::spec(&mut self.rng, &images);
            self.pinned(&spec)
        };
        let identity = self.identity();
        let set = identity.child(&mut self.rng, Kind::Deployment, 10);
        let mut reviews = Vec::new();
        for (kind, identity, controller) in
            [(Kind::Deployment, &identity, None), (Kind::ReplicaSet, &set, Some(Kind::Deployment))]
        {
            let old = self.object(kind, identity, &spec, true);
            let mut new = old.clone();
            new["spec"]["replicas"] = json!(5);
            reviews.push(update(kind, identity, controller, new, old));
        }
        reviews.extend(self.children(Kind::ReplicaSet, &set, &spec));
        reviews
    }

    fn label_pod(&mut self) -> Vec<Review> {
        let (identity, old) = self.running_pod();
        let mut new = old.clone();
        new["metadata"]["labels"]["tier"] = json!(pods::word(&mut self.rng));
        vec![update(Kind::Pod, &identity, None, new, old)]
    }

    fn delete_pod(&mut self) -> Vec<Review> {
        let (identity, old) = self.running_pod();
        vec![delete(Kind::Pod, &identity, None, old)]
    }

    fn debug_pod(&mut self, pick: Pick) -> Vec<Review> {
        let (identity, old) = self.running_pod();
        let image = self.pick(1, pick).remove(0);
        let mut new = old.clone();
        new["spec"]["ephemeralContainers"] = json!([pods::debugger(&mut self.rng, &image)]);
        let mut review = update(Kind::Pod, &identity, None, new, old);
        review.sub_resource = Some("ephemeralcontainers");
        vec![review]
    }

    fn image_volume(&mut self, pick: Pick) -> Vec<Review> {
        let images = self.pick(2, pick);
        let mut spec = pods::spec(&mut self.rng, &images[..1]);
        let volume = json!({"name": "model", "image": {"reference": images[1], "pullPolicy": "IfNotPresent"}});
        if let Some(volumes) = spec["volumes"].as_array_mut() {
            volumes.push(volume);
        }
        let identity = self.identity();
        let object = self.object(Kind::Pod, &identity, &spec, false);
        vec![create(Kind::Pod, &identity, None, object)]
    }

    /// A Pod that was admitted some time ago.
    fn running_pod(&mut self) -> (Identity, Value) {
        let images = self.pick(2, Pick::Existing);
        let spec = pods::spec(&mut self.rng, &images);
        let pinned = self.pinned(&spec);
        let identity = self.identity().child(&mut self.rng, Kind::ReplicaSet, 5);
        let object = self.object(Kind::Pod, &identity, &pinned, true);
        (identity, object)
    }

    fn identity(&mut self) -> Identity {
        let namespace = format!("{}-{}", pods::word(&mut self.rng), self.rng.random_range(1..10));
        let name = format!("{}-{}", pods::word(&mut self.rng), seed::suffix(&mut self.rng, 4));
        Identity::new(&mut self.rng, &namespace, name)
    }

    fn object(&mut self, kind: Kind, identity: &Identity, spec: &Value, stored: bool) -> Value {
        let replicas = objects::replicas(&mut self.rng);
        let mut object = objects::object(kind, identity, spec, replicas, stored);
        if let Some(size) = self.size {
            let bytes = size.draw(&mut self.rng);
            objects::pad(&mut object, bytes, &mut self.rng);
        }
        object
    }

    /// So many references; `OneMissing` falls back to existing ones when every image exists.
    fn pick(&mut self, count: usize, pick: Pick) -> Vec<String> {
        let any = pick == Pick::Any || self.digests.is_none();
        let mut picked: Vec<String> =
            (0..count).map(|_| self.one(|image| any || image.digest.is_some()).unwrap_or_default()).collect();
        if pick == Pick::OneMissing
            && let Some(missing) = self.one(|image| image.digest.is_none())
        {
            let at = self.rng.random_range(0..count);
            picked[at] = missing;
        }
        picked
    }

    fn one(&mut self, wanted: impl Fn(&Image) -> bool) -> Option<String> {
        let fitting: Vec<&Image> = self.images.iter().filter(|image| wanted(image)).collect();
        (!fitting.is_empty()).then(|| fitting[self.rng.random_range(0..fitting.len())].reference.clone())
    }

    fn exist(&self, references: &[String]) -> bool {
        let Some(digests) = self.digests else { return true };
        references.iter().all(|reference| digests.get(reference).is_some_and(Option::is_some))
    }

    /// The pod spec as it was admitted: every image with its digest, where digests are known.
    fn pinned(&self, spec: &Value) -> Value {
        let Some(digests) = self.digests else { return spec.clone() };
        let mut pod = json!({"spec": spec});
        for (pointer, written) in objects::images(Kind::Pod, &pod) {
            if let (Some(Some(digest)), Some(place)) = (digests.get(&written), pod.pointer_mut(&pointer)) {
                *place = json!(format!("{written}@{digest}"));
            }
        }
        pod["spec"].take()
    }
}

fn create(kind: Kind, identity: &Identity, controller: Option<Kind>, object: Value) -> Review {
    review(kind, Operation::Create, identity, controller, Some(object), None)
}

fn update(kind: Kind, identity: &Identity, controller: Option<Kind>, object: Value, old: Value) -> Review {
    review(kind, Operation::Update, identity, controller, Some(object), Some(old))
}

fn delete(kind: Kind, identity: &Identity, controller: Option<Kind>, old: Value) -> Review {
    review(kind, Operation::Delete, identity, controller, None, Some(old))
}

fn review(
    kind: Kind,
    operation: Operation,
    identity: &Identity,
    controller: Option<Kind>,
    object: Option<Value>,
    old: Option<Value>,
) -> Review {
    Review { kind, operation, sub_resource: None, identity: identity.clone(), controller, object, old }
}

#[cfg(test)]
pub(in crate::admission) mod tests;
