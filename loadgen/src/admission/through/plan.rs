//! [`Plan`]: the operations on all objects with their times, decided before the load starts. Pure: no I/O.
//!
//! An operation on an existing object chooses an object whose creation ended some time before. If no such object
//! exists, the operation creates an object instead. When the number of objects reaches its limit, the next operation
//! deletes the oldest object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};

use super::stock::{self, Made, Stock};
use crate::admission::Error;
use crate::admission::config::{self, Config};
use crate::admission::expected::Expected;
use crate::admission::image::Image;
use crate::admission::mix::Action;
use crate::admission::objects::Kind;
use crate::arrivals::{Schedule, Stream};
use crate::seed;

/// Maximum number of objects that exist at once; enough that two neighbouring requests are never about the same object.
const POPULATION_MAX: usize = 300;
/// The time after an object's creation in which no operation chooses it; longer than most webhooks take.
const SETTLES: Duration = Duration::from_secs(1);
/// The number of namespaces: enough to show that webhooks consider namespaces, and few enough to be made at once.
const NAMESPACES: usize = 4;
/// The number of operations in the fingerprint, with the manifests. All later operations follow from the same random
/// streams.
const FINGERPRINTED: usize = 4096;

/// A plan of admission load through an API server. A clone is cheap; the same arguments give the same plan.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    seed: u64,
    schedule: Schedule,
    stock: Arc<Stock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Operation {
    /// The number of the object, which is never used again.
    pub object: u64,
    pub made: u32,
    pub step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Create,
    /// A creation with `dryRun=All`: nothing is stored.
    DryRun,
    /// `kubectl set image` of the first container, to the image of this number.
    SetImage(u32),
    Label,
    Scale {
        replicas: u32,
        subresource: bool,
    },
    /// A `ConfigMap` gets another text as data.
    Rewrite,
    Delete,
}

impl Plan {
    /// Makes the manifests and fixes the random streams. `images` are the images of the subject's registry.
    pub fn build(config: &Config, seed: u64, length: Duration, images: &[Image]) -> Result<Self, Error> {
        config::check_images(images)?;
        config.check()?;
        config.check_through()?;
        let schedule = config.schedule(seed, length)?;
        let stock = Stock::build(&config.mix, seed, images, stock::namespaces(seed, NAMESPACES));
        Ok(Self { config: config.clone(), seed, schedule, stock: Arc::new(stock) })
    }

    /// The number of planned requests in the whole run.
    pub fn total(&self) -> u64 {
        self.schedule.total()
    }

    pub fn length(&self) -> Duration {
        self.schedule.length()
    }

    /// The written kinds that contain images, each with the JSON pointer to its pod spec.
    pub(super) fn watched(&self) -> impl Iterator<Item = (Kind, &'static str)> {
        self.stock.kinds().filter_map(|kind| Some((kind, kind.pod_spec()?)))
    }

    /// A namespace of the load and an image that exists, to test whether a webhook's registration has taken effect.
    pub fn probe(&self) -> Option<(&str, &str)> {
        let image = self.stock.images().iter().find(|image| image.digest.is_some())?;
        Some((self.stock.namespaces.first()?, &image.reference))
    }

    pub(super) fn stock(&self) -> &Arc<Stock> {
        &self.stock
    }

    pub(super) fn in_flight_max(&self) -> usize {
        self.config.max_in_flight as usize
    }

    /// The service accounts of the load's Pods, in addition to the default account of each namespace.
    pub fn accounts(&self) -> Vec<&str> {
        let all = self.stock.all().iter().filter_map(Made::account);
        let all: BTreeSet<&str> = all.filter(|account| *account != "default").collect();
        all.into_iter().collect()
    }

    pub fn namespaces(&self) -> &[String] {
        &self.stock.namespaces
    }

    /// SHA-256, in hex, over all manifests and the first operations. Equal fingerprints mean equal load.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for made in self.stock.all() {
            hash.update(made.text());
        }
        for (at, operation) in self.clone().operations().take(FINGERPRINTED) {
            hash.update(format!("{} {operation:?}", at.as_micros()));
        }
        hex::encode(hash.finalize())
    }

    pub fn describe(&self) -> String {
        let made = self.stock.all();
        let denied = made.iter().filter(|made| made.expected.is_deny()).count();
        let mut text = format!(
            "admission: {}, sent through the API server\n\
             admission: at most {} requests in flight, at most {POPULATION_MAX} objects in {} namespaces\n\
             admission: {} manifests; {denied} of them must be denied\n",
            self.schedule.summary(),
            self.config.max_in_flight,
            self.stock.namespaces.len(),
            made.len(),
        );
        // Writing to a String cannot fail.
        let _ = writeln!(text, "admission: fingerprint {}", self.fingerprint());
        text
    }

    /// The operations with their planned times, made one after another.
    pub(super) fn operations(self) -> impl Iterator<Item = (Duration, Operation)> + Send + use<> {
        Operations {
            times: self.schedule.stream(),
            rng: seed::stream(self.seed, "operations"),
            plan: self,
            live: BTreeMap::new(),
            next: 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Live {
    object: u64,
    made: u32,
    since: Duration,
}

struct Operations {
    times: Stream,
    rng: ChaCha8Rng,
    plan: Plan,
    /// The existing objects by the plural name of their kind, oldest first.
    live: BTreeMap<&'static str, VecDeque<Live>>,
    next: u64,
}

impl Operations {
    fn act(&mut self, action: Action, at: Duration) -> Option<Operation> {
        let (kind, is_new) = action.kind()?;
        if self.live.values().map(VecDeque::len).sum::<usize>() >= POPULATION_MAX
            && let Some(oldest) = self.oldest(at)
        {
            return Some(Operation { object: oldest.object, made: oldest.made, step: Step::Delete });
        }
        if is_new {
            return Some(self.create(kind, action == Action::DryRunDeployment, at));
        }
        let removes = matches!(action, Action::DeleteDeployment | Action::DeletePod);
        let Some(Live { object, made, .. }) = self.settled(kind, at, removes) else {
            return Some(self.create(kind, false, at));
        };
        let step = match action {
            Action::RollImage => Step::SetImage(self.below(self.plan.stock.images().len())),
            Action::LabelPod => Step::Label,
            Action::UpdateConfigMap => Step::Rewrite,
            Action::ScaleDeployment => Step::Scale { replicas: self.below(10), subresource: false },
            Action::ScaleThroughSubresource => Step::Scale { replicas: self.below(10), subresource: true },
            _ => Step::Delete,
        };
        Some(Operation { object, made, step })
    }

    fn create(&mut self, kind: Kind, dry_run: bool, at: Duration) -> Operation {
        let index = self.below(self.plan.stock.of_kind(kind).len());
        let made = self.plan.stock.of_kind(kind)[index as usize];
        let object = self.next;
        self.next += 1;
        if dry_run {
            return Operation { object, made, step: Step::DryRun };
        }
        // An object that must be denied never exists.
        if !matches!(self.plan.stock.made(made).expected, Expected::Deny { .. }) {
            self.live.entry(kind.plural()).or_default().push_back(Live { object, made, since: at });
        }
        Operation { object, made, step: Step::Create }
    }

    /// A random object of the kind whose creation was at least [`SETTLES`] before.
    fn settled(&mut self, kind: Kind, at: Duration, removes: bool) -> Option<Live> {
        let all = self.live.get(kind.plural())?;
        let count = all.partition_point(|live| live.since + SETTLES <= at);
        if count == 0 {
            return None;
        }
        let index = self.below(count) as usize;
        let all = self.live.get_mut(kind.plural())?;
        if removes { all.remove(index) } else { all.get(index).copied() }
    }

    /// Takes the oldest object from the list of existing objects.
    fn oldest(&mut self, at: Duration) -> Option<Live> {
        let all = self.live.values_mut().filter(|all| all.front().is_some_and(|live| live.since + SETTLES <= at));
        all.min_by_key(|all| all.front().map(|live| live.object))?.pop_front()
    }

    fn below(&mut self, count: usize) -> u32 {
        u32::try_from(self.rng.random_range(0..count.max(1))).unwrap_or(0)
    }
}

impl Iterator for Operations {
    type Item = (Duration, Operation);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, _) = self.times.next()?;
        let action = self.plan.config.mix.draw(&mut self.rng)?;
        Some((at, self.act(action, at)?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;

    fn plan(json: &str, length_s: u64) -> Result<Plan, Error> {
        let config: Config = serde_json::from_str(json).unwrap();
        let digest = format!("sha256:{}", "a".repeat(64));
        let images = [Image::new("r:5000/a:1", Some(digest)), Image::new("r:5000/gone:1", None)];
        Plan::build(&config, 7, Duration::from_secs(length_s), &images)
    }

    /// For any plan: every name is new, only created objects are changed, no object is changed after its deletion, and
    /// the number of objects is bounded.
    #[test]
    fn names_are_new_and_the_population_is_bounded() {
        let mix =
            r#"{"createPod": 5, "createDeployment": 3, "createJob": 1, "rollImage": 1, "labelPod": 2, "deletePod": 1}"#;
        let plan = plan(&format!(r#"{{"rate": "200/s", "through": "apiserver", "mix": {mix}}}"#), 60).unwrap();
        let mut made: HashMap<u64, Duration> = HashMap::new();
        let mut seen = BTreeSet::new();
        let mut steps = BTreeSet::new();
        let mut most = 0;
        for (at, Operation { object, made: number, step }) in plan.clone().operations() {
            let expected = &plan.stock().made(number).expected;
            steps.insert(format!("{step:?}").split(['(', ' ']).next().unwrap_or_default().to_owned());
            match step {
                Step::Create => {
                    assert!(seen.insert(object), "{object} again");
                    if !expected.is_deny() {
                        made.insert(object, at);
                    }
                }
                Step::DryRun => assert!(seen.insert(object)),
                Step::Delete => assert!(made.remove(&object).is_some_and(|since| since + SETTLES <= at)),
                _ => assert!(made.get(&object).is_some_and(|since| *since + SETTLES <= at)),
            }
            most = most.max(made.len());
        }
        assert_eq!(most, POPULATION_MAX);
        assert_eq!(steps.iter().map(String::as_str).collect::<Vec<_>>(), ["Create", "Delete", "Label", "SetImage"]);
        assert_eq!(plan.fingerprint(), plan.clone().fingerprint());
    }

    #[test]
    fn what_only_direct_load_can_do_is_refused() {
        for (more, expected) in [
            (
                r#""size": {"median": "4KiB", "max": "8KiB"}"#,
                "admission.size: needs load that is sent to the webhook itself",
            ),
            (r#""client": "no-reuse""#, "admission.client: needs"),
            (r#""threads": 2"#, "admission.threads: is 2: needs"),
            (r#""mix": {"evictPod": 1}"#, "admission.mix: `evictPod` is not an action through the API server"),
        ] {
            let error = plan(&format!(r#"{{"rate": "20/s", "through": "apiserver", {more}}}"#), 10).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
