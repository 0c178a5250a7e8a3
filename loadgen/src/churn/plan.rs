//! [`Plan`]: which object is created, changed and deleted when. Pure; an iterator over a model of the population.

use std::collections::VecDeque;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::Error;
use super::config::{Config, Mix};
use super::objects::{Content, Version};
use super::resource::Resource;
use super::template::Place;
use crate::Arrivals;
use crate::arrivals::{self, Times};
use crate::seed;

/// The population may stray from its size by one part in so many, so that creates and deletes can come in any order.
const BAND: u32 = 50;
/// Namespaces hold an eighth of the population: about nine exist at a time, and each lives for a good part of a turnover.
const NAMESPACES: u32 = 8;
const MOST_IN_NAMESPACE: u32 = 500;
const FINGERPRINTED_OPERATIONS: usize = 4096;

/// A plan of churn. Cheap to clone; the same arguments give the same plan.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    resource: Resource,
    content: Content,
    seed: u64,
    length: Duration,
    records_writes: bool,
}

impl Plan {
    /// Checks the configuration and fixes the streams.
    pub fn build(config: &Config, seed: u64, length: Duration) -> Result<Self, Error> {
        config.check()?;
        let (resource, content) = config.read()?;
        Ok(Self { config: config.clone(), resource, content, seed, length, records_writes: false })
    }

    /// The same plan, with a record of every successful write for whoever drains it: see
    /// [`Churn::take_writes`](super::Churn::take_writes).
    #[must_use]
    pub fn recording_writes(mut self) -> Self {
        self.records_writes = true;
        self
    }

    /// Whether successful writes are recorded.
    pub(super) fn records_writes(&self) -> bool {
        self.records_writes
    }

    /// How many operations the whole run plans, the fill not counted.
    pub fn planned(&self) -> u64 {
        arrivals::count(self.config.rate, self.length)
    }

    /// How long the plan is.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The configuration that it was built from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// `packages.longhaul.dev`, or `configmaps` in the core group.
    pub fn resource_name(&self) -> String {
        self.resource.name()
    }

    /// SHA-256, in hex, over the first objects and operations. Equal fingerprints mean equal churn.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for object in 0..u64::from(self.config.population).min(64) {
            hash.update(self.body(object, 0).to_string());
        }
        for (at, operation) in self.operations().take(FINGERPRINTED_OPERATIONS) {
            hash.update(format!("{} {operation:?}\n", at.as_micros()));
        }
        hex::encode(hash.finalize())
    }

    /// What the plan will do, as lines of text for people.
    pub fn describe(&self) -> String {
        let Config { population, rate, mix, size, .. } = &self.config;
        let small = if self.config.template.is_some() { "by template" } else { "small" };
        let size = size.map_or(small.to_owned(), |size| format!("{} at the median, {} at most", size.median, size.max));
        let (first, _) = self.place(0);
        format!(
            "churn: {population} {} ({size}), up to {} a namespace, namespaces {first} and on\n\
             churn: {} operations in {:.1} s ({rate}), create {} : update {} : delete {}{}\n\
             churn: fingerprint {}\n",
            self.resource_name(),
            self.objects_per_namespace(),
            self.planned(),
            self.length.as_secs_f64(),
            mix.create,
            mix.update,
            mix.delete,
            more(*mix),
            self.fingerprint(),
        )
    }

    /// The operations with their planned times, made one by one.
    pub(super) fn operations(&self) -> Operations {
        let population = u64::from(self.config.population);
        let band = u64::from((self.config.population / BAND).max(1));
        Operations {
            // Evenly spaced, so that the rate holds in every second and not only over the run.
            times: Times::new(
                Arrivals::Constant,
                self.config.rate,
                self.length,
                seed::stream(self.seed, "churn times"),
            ),
            rng: seed::stream(self.seed, "churn operations"),
            mix: self.config.mix,
            live: (0..population).collect(),
            next: population,
            fewest: population.saturating_sub(band),
            most: population + band,
            revision: 0,
        }
    }

    /// Objects that each namespace gets in the course of the run.
    pub(super) fn objects_per_namespace(&self) -> u64 {
        u64::from((self.config.population / NAMESPACES).clamp(1, MOST_IN_NAMESPACE))
    }

    pub(super) fn namespace_of(&self, object: u64) -> u64 {
        object / self.objects_per_namespace()
    }

    pub(super) fn namespace_name(&self, number: u64) -> String {
        format!("lh-{}-{number}", self.seed)
    }

    /// Namespace and name of an object. What is in no namespace has the seed in its name.
    pub(super) fn place(&self, object: u64) -> (String, String) {
        let kind = self.resource.kind.to_lowercase();
        if !self.resource.is_namespaced {
            return (String::new(), format!("{kind}-{}-{object:07}", self.seed));
        }
        let name = format!("{kind}-{object:07}");
        (self.namespace_name(self.namespace_of(object)), name)
    }

    /// Namespace and name of the canary.
    pub(super) fn canary_place(&self) -> (String, String) {
        if !self.resource.is_namespaced {
            return (String::new(), format!("canary-{}", self.seed));
        }
        (format!("lh-{}-canary", self.seed), "canary".to_owned())
    }

    pub(super) fn body(&self, object: u64, revision: u64) -> serde_json::Value {
        let (namespace, name) = self.place(object);
        let place = Place { namespace: &namespace, name: &name };
        self.content.create(&self.resource, place, self.version(object, revision))
    }

    /// What of an object an operation changes, and below which subresource.
    pub(super) fn patch(&self, kind: Kind, object: u64, revision: u64) -> (serde_json::Value, &'static str) {
        let (namespace, name) = self.place(object);
        let (place, version) = (Place { namespace: &namespace, name: &name }, self.version(object, revision));
        match kind {
            Kind::Label => (super::objects::marked("labels", version), ""),
            Kind::Annotate => (super::objects::marked("annotations", version), ""),
            Kind::Status => (self.content.status(place, version), "/status"),
            Kind::Create | Kind::Update | Kind::Delete => (self.content.update(&self.resource, place, version), ""),
        }
    }

    /// The canary and its change. No object of the population has its number, so its contents are its own.
    pub(super) fn canary(&self, revision: u64) -> (serde_json::Value, serde_json::Value) {
        let (namespace, name) = self.canary_place();
        let (place, version) = (Place { namespace: &namespace, name: &name }, self.version(u64::MAX, revision));
        (self.content.create(&self.resource, place, version), self.content.update(&self.resource, place, version))
    }

    /// Whether its objects are in namespaces.
    pub(super) fn is_namespaced(&self) -> bool {
        self.resource.is_namespaced
    }

    fn version(&self, object: u64, revision: u64) -> Version {
        Version { seed: self.seed, object, revision }
    }

    pub(super) fn resource(&self) -> &Resource {
        &self.resource
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }
}

/// The weights that most files leave out.
fn more(mix: Mix) -> String {
    let weights = [("label", mix.label), ("annotate", mix.annotate), ("status", mix.status)];
    let told: Vec<String> = weights
        .into_iter()
        .filter(|(_, weight)| *weight > 0)
        .map(|(word, weight)| format!(" : {word} {weight}"))
        .collect();
    told.concat()
}

/// What to do with which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub kind: Kind,
    pub object: u64,
    /// Decides the content; each operation has its own.
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Update,
    Label,
    Annotate,
    Status,
    Delete,
}

/// The stream of operations, with the population as it will be. Memory: one number for each live object.
pub(super) struct Operations {
    times: Times,
    rng: ChaCha8Rng,
    mix: Mix,
    /// Oldest first.
    live: VecDeque<u64>,
    next: u64,
    fewest: u64,
    most: u64,
    revision: u64,
}

impl Operations {
    fn kind(&mut self) -> Kind {
        let at = self.rng.random_range(0..self.mix.total());
        let Mix { create, update, delete, label, annotate, status } = self.mix;
        let mut weights = [
            (Kind::Create, create),
            (Kind::Update, update),
            (Kind::Delete, delete),
            (Kind::Label, label),
            (Kind::Annotate, annotate),
            (Kind::Status, status),
        ]
        .into_iter();
        let mut below = 0;
        let drawn = weights.find(|(_, weight)| {
            below += u64::from(*weight);
            at < below
        });
        let kind = drawn.map_or(Kind::Update, |(kind, _)| kind);
        let live = self.live.len() as u64;
        match kind {
            Kind::Create if live >= self.most => Kind::Delete,
            Kind::Delete if live <= self.fewest => Kind::Create,
            Kind::Update | Kind::Label | Kind::Annotate | Kind::Status if live == 0 => Kind::Create,
            kind => kind,
        }
    }

    fn object(&mut self, kind: Kind) -> u64 {
        match kind {
            Kind::Create => {
                self.live.push_back(self.next);
                self.next += 1;
                self.next - 1
            }
            Kind::Update | Kind::Label | Kind::Annotate | Kind::Status => {
                self.live[self.rng.random_range(0..self.live.len())]
            }
            // From the oldest quarter: lifetimes differ, yet no object lives so long that its namespace never empties.
            Kind::Delete => {
                let at = self.rng.random_range(0..self.live.len().div_ceil(4));
                self.live.remove(at).expect("the index was drawn below the length")
            }
        }
    }
}

impl Iterator for Operations {
    type Item = (Duration, Operation);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.times.next()?;
        let kind = self.kind();
        let object = self.object(kind);
        self.revision += 1;
        Some((at, Operation { kind, object, revision: self.revision }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use units::Rate;

    use super::*;

    fn plan(population: u32, per_second: f64, mix: Mix, seed: u64) -> Plan {
        let config = Config {
            resource: "packages.longhaul.dev/v1alpha1".to_owned(),
            population,
            rate: Rate::per_second(per_second),
            mix,
            size: None,
            template: None,
            vary: Vec::new(),
            scope: None,
            end: super::super::End::Keep,
        };
        Plan::build(&config, seed, Duration::from_secs(20)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever the mix: names never come back, only live objects are touched, the population stays in its band, and
        /// the number of namespaces in use stays bounded.
        #[test]
        fn the_population_is_constant_and_ever_new(
            population in 1u32..400, create in 1u32..9, update in 0u32..9, delete in 1u32..9, seed: u64,
        ) {
            let plan = plan(population, 200.0, Mix { create, update, delete, ..Mix::default() }, seed);
            let mut live: BTreeSet<u64> = (0..u64::from(population)).collect();
            let mut highest = u64::from(population) - 1;
            for (_, operation) in plan.operations() {
                match operation.kind {
                    Kind::Create => {
                        prop_assert!(operation.object == highest + 1, "a new name each time");
                        highest = operation.object;
                        live.insert(operation.object);
                    }
                    Kind::Update | Kind::Label | Kind::Annotate | Kind::Status => prop_assert!(live.contains(&operation.object)),
                    Kind::Delete => prop_assert!(live.remove(&operation.object)),
                }
                let band = usize::try_from((population / BAND).max(1)).unwrap();
                prop_assert!(live.len().abs_diff(population as usize) <= band, "{} live", live.len());
                if operation.revision % 100 == 0 {
                    let namespaces: BTreeSet<u64> = live.iter().map(|&object| plan.namespace_of(object)).collect();
                    let bound = u64::from(population).div_ceil(plan.objects_per_namespace()) * 4 + 8;
                    prop_assert!(namespaces.len() as u64 <= bound, "{} namespaces", namespaces.len());
                }
            }
        }
    }

    #[test]
    fn exact_rate_weights_and_determinism() {
        let mix = Mix::usual();
        let plan = plan(500, 50.0, mix, 7);
        let all: Vec<_> = plan.operations().collect();
        assert_eq!(all.len() as u64, plan.planned());
        assert_eq!(all.len(), 1000);
        for second in 0..20 {
            let inside = all.iter().filter(|(at, _)| at.as_secs() == second).count();
            assert_eq!(inside, 50, "in second {second}");
        }
        let updates = all.iter().filter(|(_, operation)| operation.kind == Kind::Update).count();
        assert!((546..=726).contains(&updates), "{updates} of 1000, 636 expected, six standard errors are 91");
        assert_eq!(all, plan.operations().collect::<Vec<_>>());
        assert_eq!(plan.fingerprint(), self::plan(500, 50.0, mix, 7).fingerprint());
        assert_ne!(plan.fingerprint(), self::plan(500, 50.0, mix, 8).fingerprint());
    }

    #[test]
    fn updates_alone_are_possible_and_so_is_only_filling() {
        let updates = plan(3, 50.0, Mix { update: 1, ..Mix::default() }, 7);
        assert!(updates.operations().all(|(_, operation)| operation.kind == Kind::Update));
        assert_eq!(plan(3, 0.0, Mix::usual(), 7).operations().count(), 0);
    }

    #[test]
    fn description_says_what_matters() {
        let text = plan(500, 50.0, Mix::usual(), 7).describe();
        for expected in
            ["500 packages.longhaul.dev (small)", "62 a namespace", "lh-7-0", "1000 operations in 20.0 s (50/s)"]
        {
            assert!(text.contains(expected), "`{expected}` is not in\n{text}");
        }
    }
}
