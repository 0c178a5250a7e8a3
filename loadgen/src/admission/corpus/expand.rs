//! Building blocks of reviews: images, identities, and objects of the requested size. Pure: no I/O.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::Pick;
use crate::admission::image::Image;
use crate::admission::objects::grow::Growth;
use crate::admission::objects::manifest::{self, Draft};
use crate::admission::objects::{self, Identity, Kind};
use crate::admission::oracle::Digests;
use crate::admission::pods;
use crate::admission::review::Review;
use crate::{Size, seed};

const MOST_CONTAINERS: usize = 3;
/// The size in bytes below which objects have only the fields that every user writes.
const LEAN_BELOW: u64 = 12 << 10;
/// The size in bytes above which an object cannot come from a client-side `kubectl apply`: its copy of the manifest
/// would be larger than annotations may be.
const APPLIED_BELOW: u64 = 200 << 10;
/// The allowed deviation of a review from its requested size: the size divided by this number.
const TOLERANCE: u64 = 100;
/// Maximum number of tries to reach a size. If the size of a kind grows in jumps, the try with the closest size is
/// used.
const MOST_TRIES: usize = 8;

/// The images, sizes and random numbers from which reviews are made.
pub(in crate::admission) struct Expand<'a> {
    pub rng: ChaCha8Rng,
    images: &'a [Image],
    /// The images of the registry; `None` if they are unknown.
    pub digests: Option<&'a Digests>,
    size: Option<Size>,
    /// The target size of the current review in bytes.
    target: Option<u64>,
    /// For each kind: the size of the last review in bytes for each byte of its manifest, from which the next try is
    /// estimated.
    slopes: BTreeMap<(&'static str, bool), f64>,
}

/// The state of an object on its way from manifest to storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The object as a user or a controller requests its creation.
    Asked,
    /// The object as a controller makes it from an admitted object: every image has its digest, if digests are known.
    Copied,
    /// The object as it is stored: admitted, with its name and its status.
    Stored,
}

/// A workload, and the data from which its objects are made.
pub(in crate::admission) struct Workload {
    pub kind: Kind,
    pub identity: Identity,
    pub template: Value,
    pub replicas: u32,
    /// Whether all images of the workload may run.
    pub exists: bool,
}

impl Workload {
    pub(in crate::admission) fn draft(&self) -> Draft<'_> {
        self.draft_of(self.kind, &self.identity)
    }

    /// The data from which an object of this workload is made.
    pub(super) fn draft_of<'a>(&'a self, kind: Kind, identity: &'a Identity) -> Draft<'a> {
        Draft { kind, identity, template: &self.template, replicas: self.replicas }
    }
}

impl<'a> Expand<'a> {
    pub(in crate::admission) fn new(
        seed: u64,
        size: Option<Size>,
        images: &'a [Image],
        digests: Option<&'a Digests>,
    ) -> Self {
        Self { rng: seed::stream(seed, "corpus"), images, digests, size, target: None, slopes: BTreeMap::new() }
    }

    /// A user's workload with up to three images, or with one image if the review must be small.
    pub(in crate::admission) fn workload(&mut self, kind: Kind, pick: Pick) -> Workload {
        self.target = self.size.map(|size| size.draw(&mut self.rng));
        let most = if self.is_lean() { 1 } else { MOST_CONTAINERS };
        let count = self.rng.random_range(1..=most);
        let images = self.pick(count, pick);
        self.workload_of(kind, &images)
    }

    pub(super) fn workload_with(&mut self, kind: Kind, images: &[String]) -> Workload {
        self.target = self.size.map(|size| size.draw(&mut self.rng));
        self.workload_of(kind, images)
    }

    /// A workload with these images, for a review of the size that was drawn last.
    fn workload_of(&mut self, kind: Kind, images: &[String]) -> Workload {
        let identity = self.identity();
        let spec = if self.is_lean() { pods::lean(images) } else { pods::spec(&mut self.rng, images) };
        let template = if kind.pod_spec().is_some() { manifest::template(&identity.app, &spec) } else { Value::Null };
        Workload { kind, template, replicas: objects::replicas(&mut self.rng), exists: self.exist(images), identity }
    }

    fn is_lean(&self) -> bool {
        self.target.is_some_and(|bytes| bytes < LEAN_BELOW)
    }

    /// Makes a review of the requested size; `build` must give equal results for equal arguments.
    pub(super) fn sized(&mut self, build: impl Fn(&Self, &Growth, &ChaCha8Rng) -> Review) -> Review {
        let rng = ChaCha8Rng::seed_from_u64(self.rng.random());
        let Some(target) = self.target else { return build(self, &Growth::NATURAL, &rng) };
        let mut growth = Growth { bytes: 0, applied: target < APPLIED_BELOW };
        let mut before: Option<(usize, u64)> = None;
        let mut best: Option<(u64, Review)> = None;
        for _ in 0..MOST_TRIES {
            let review = build(self, &growth, &rng);
            let length = review.to_bytes().len() as u64;
            let kind = (review.kind.name(), review.old.is_some() && review.object.is_some());
            let off = target.abs_diff(length);
            if best.as_ref().is_none_or(|&(least, _)| off < least) {
                best = Some((off, review));
            }
            if off <= target / TOLERANCE {
                break;
            }
            if let Some((bytes, at)) = before {
                let (grown, by) = (growth.bytes as f64 - bytes as f64, length as f64 - at as f64);
                if by == 0.0 {
                    // The kind does not grow, or has grown as far as Kubernetes allows.
                    break;
                }
                self.slopes.insert(kind, (by / grown).clamp(0.2, 20.0));
            }
            before = Some((growth.bytes, length));
            let slope = self.slopes.get(&kind).copied().unwrap_or(2.0);
            let next = growth.bytes as f64 + (target as f64 - length as f64) / slope;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped: 0 to 2^20")]
            let next = next.clamp(0.0, 1_048_576.0) as usize;
            if next == growth.bytes {
                break;
            }
            growth.bytes = next;
        }
        best.map(|(_, review)| review).expect("the loop runs at least once")
    }

    pub(super) fn object(&self, draft: &Draft<'_>, state: State, growth: &Growth, rng: &ChaCha8Rng) -> Value {
        let mut object = draft.requested(growth, rng.clone());
        if state != State::Asked {
            self.pin(draft.kind, &mut object);
        }
        if state == State::Stored {
            objects::store(draft.kind, &mut object, draft.identity);
        }
        object
    }

    pub(super) fn identity(&mut self) -> Identity {
        let namespace = format!("{}-{}", pods::word(&mut self.rng), self.rng.random_range(1..10));
        let name = format!("{}-{}", pods::word(&mut self.rng), seed::suffix(&mut self.rng, 4));
        Identity::new(&mut self.rng, &namespace, name)
    }

    /// Chooses `count` image references. [`Pick::OneMissing`] chooses existing images if all images may run.
    pub(super) fn pick(&mut self, count: usize, pick: Pick) -> Vec<String> {
        let any = pick == Pick::Any || self.digests.is_none();
        let mut picked: Vec<String> =
            (0..count).map(|_| self.one(|image| any || image.refused().is_none()).unwrap_or_default()).collect();
        if pick == Pick::OneMissing
            && let Some(missing) = self.one(|image| image.refused().is_some())
        {
            let at = self.rng.random_range(0..count);
            picked[at] = missing;
        }
        picked
    }

    fn one(&mut self, wanted: impl Fn(&Image) -> bool) -> Option<String> {
        let fitting: Vec<&Image> = self.images.iter().filter(|image| !image.hostile && wanted(image)).collect();
        (!fitting.is_empty()).then(|| fitting[self.rng.random_range(0..fitting.len())].reference.clone())
    }

    /// An image that only attacks use, and the host of all images.
    pub(super) fn hostile(&mut self) -> (Option<String>, String) {
        let hostile: Vec<&Image> = self.images.iter().filter(|image| image.hostile).collect();
        let drawn = (!hostile.is_empty()).then(|| hostile[self.rng.random_range(0..hostile.len())].reference.clone());
        let host = self.images.first().and_then(|image| image.reference.split('/').next()).unwrap_or_default();
        (drawn, host.to_owned())
    }

    pub(super) fn exist(&self, references: &[String]) -> bool {
        let Some(digests) = self.digests else { return true };
        references.iter().all(|reference| digests.get(reference).is_some_and(|image| image.refused().is_none()))
    }

    /// Changes the object as an admission does: every image gets its digest, if digests are known.
    fn pin(&self, kind: Kind, object: &mut Value) {
        let Some(digests) = self.digests else { return };
        for (pointer, written) in objects::images(kind, object) {
            let digest = digests.get(&written).and_then(|image| image.digest.as_ref());
            if let (Some(digest), Some(place)) = (digest, object.pointer_mut(&pointer)) {
                *place = json!(format!("{written}@{digest}"));
            }
        }
    }
}
