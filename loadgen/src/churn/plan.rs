//! [`Plan`]: the object, the kind and the time of each operation. Pure: an iterator over a model of the existing
//! objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answers::Covers;
use super::config::{Config, Mix};
use super::lifecycle::{Changes, Propagation};
use super::objects::{self, Content};
use super::operations::{BAND, Groups, Kind, Operation, Operations};
use super::resource::Resource;
use super::template::ObjectName;
use super::version::{self, GROUP, LABEL, Version};
use super::{Error, Sections};
use crate::Arrivals;
use crate::arrivals::{self, Times};
use crate::seed;

/// A namespace contains an eighth of the objects: about nine namespaces exist at a time, and each exists until about
/// all objects have been replaced.
const NAMESPACES: u32 = 8;
const MOST_IN_NAMESPACE: u32 = 500;
/// A group of objects that are deleted together has `population` divided by this number, at most [`MOST_IN_GROUP`].
const GROUPS: u32 = 10;
const MOST_IN_GROUP: u32 = 50;
const FINGERPRINTED_OPERATIONS: usize = 4096;

/// A plan of churn. A clone is cheap, and equal arguments give equal plans.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    resource: Resource,
    content: Content,
    /// The resource and contents of the dependents, if the section has any.
    tree: Option<(Resource, Content)>,
    seed: u64,
    section: u8,
    length: Duration,
    records_writes: bool,
    covers: Covers,
}

/// An object as churn creates it, and after its first change.
#[derive(Debug, Clone, PartialEq)]
pub struct Specimen {
    /// The API group; empty for the core group.
    pub group: String,
    pub version: String,
    pub plural: String,
    pub kind: String,
    /// The namespace of the object; empty for cluster-wide objects.
    pub namespace: String,
    pub name: String,
    pub object: Value,
    /// The object after its first change.
    pub updated: Value,
    /// The first change as a merge patch.
    pub change: Value,
}

impl Plan {
    /// The specimen for the object with this number.
    pub fn specimen(&self, object: u64) -> Specimen {
        let (namespace, name) = self.place(object);
        let body = self.body(object, 0);
        let mut updated = body.clone();
        let (change, _) = self.patch(Kind::Update, object, 1);
        json_patch::merge(&mut updated, &change);
        let Resource { group, version, plural, kind, .. } = &self.resource;
        let own = |text: &str| text.to_owned();
        let (group, version, plural, kind) = (own(group), own(version), own(plural), own(kind));
        Specimen { group, version, plural, kind, namespace, name, object: body, updated, change }
    }

    /// Checks the configuration and fixes the random streams.
    pub fn build(config: &Config, seed: u64, length: Duration) -> Result<Self, Error> {
        Self::of_section(config, seed, 0, length)
    }

    /// The plans of all sections. No two of these plans draw the same random numbers or use the same names.
    pub fn all(sections: &Sections, seed: u64, length: Duration) -> Result<Vec<Self>, Error> {
        sections.check()?;
        (0u8..)
            .zip(sections.iter())
            .map(|(at, config)| {
                Self::of_section(config, seed, at, length).map_err(|error| sections.of(usize::from(at), error))
            })
            .collect()
    }

    fn of_section(config: &Config, seed: u64, section: u8, length: Duration) -> Result<Self, Error> {
        config.check()?;
        let (resource, content) = config.read()?;
        let tree = config.read_tree()?;
        Ok(Self {
            config: config.clone(),
            resource,
            content,
            tree,
            seed,
            section,
            length,
            records_writes: false,
            covers: Covers::default(),
        })
    }

    /// The same plan with a record of every successful write, which must be read regularly; see
    /// [`Churn::take_writes`](super::Churn::take_writes).
    #[must_use]
    pub fn recording_writes(mut self) -> Self {
        self.records_writes = true;
        self
    }

    /// The same plan, in which answers of the webhooks that are called for the writes in `covers` are judged.
    #[must_use]
    pub fn judging(mut self, covers: Covers) -> Self {
        self.covers = covers;
        self
    }

    pub(super) fn covers(&self) -> Covers {
        self.covers
    }

    /// The resource as the scenario names it, for example `caches.cache.example.com/v1`.
    pub fn spelled(&self) -> &str {
        &self.config.resource
    }

    pub(super) fn records_writes(&self) -> bool {
        self.records_writes
    }

    /// The number of planned operations in the whole run, without the first objects; with `rate: auto` this is an upper
    /// bound.
    pub fn total(&self) -> u64 {
        arrivals::count(self.config.rate.most(), self.length)
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The name of the resource, such as `packages.longhaul.dev`, or `configmaps` in the core group.
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
            if let Some(policy) = self.propagation(operation) {
                hash.update(policy.as_str());
            }
        }
        hex::encode(hash.finalize())
    }

    pub fn describe(&self) -> String {
        let Config { population, rate, mix, size, .. } = &self.config;
        let places = match &self.config.namespace {
            Some(only) => format!("all in the namespace {only}"),
            None => {
                format!("up to {} a namespace, namespaces {} and on", self.objects_per_namespace(), self.place(0).0)
            }
        };
        let small =
            if self.config.template.is_some() || !self.config.templates.is_empty() { "by template" } else { "small" };
        let size = size.map_or(small.to_owned(), |size| format!("{} at the median, {} at most", size.median, size.max));
        format!(
            "churn: {population} {} ({size}), {places}\n\
             churn: {} operations in {:.1} s ({rate}), create {} : update {} : delete {}{}\n\
             churn: fingerprint {}\n",
            self.resource_name(),
            self.total(),
            self.length.as_secs_f64(),
            mix.create,
            mix.update,
            mix.delete,
            more(&self.config),
            self.fingerprint(),
        )
    }

    /// The operations with their planned times, made one after another.
    pub(super) fn operations(&self) -> Operations {
        let population = u64::from(self.config.population);
        let band = u64::from((self.config.population / BAND).max(1));
        Operations {
            // Evenly spaced, so that the rate holds in every second and not only over the run.
            times: Times::new(Arrivals::Constant, self.config.rate.most(), self.length, self.stream("churn times")),
            rng: self.stream("churn operations"),
            mix: self.config.weights(),
            also: self.config.also.as_ref().map_or(0, |also| also.weight),
            groups: self.groups(),
            live: (0..population).collect(),
            next: population,
            fewest: population.saturating_sub(band),
            most: population + band,
            revision: 0,
        }
    }

    /// The next planned writes from `from` to `until` on the objects in `of`, which are identified by namespace and
    /// name. The times are durations since the plan's start. The canary is not in the plan, so its next write counts as
    /// planned for `from`.
    pub fn next_writes(
        &self,
        of: &BTreeSet<(String, String)>,
        from: Duration,
        until: Duration,
    ) -> BTreeMap<(String, String), Duration> {
        let mut next = BTreeMap::new();
        if of.contains(&self.canary_place()) {
            next.insert(self.canary_place(), from);
        }
        let settled = match self.config.rate.steer().map(|steer| steer.settled()) {
            // Until the rate is found, any object may be written at once.
            Some(None) => return of.iter().map(|place| (place.clone(), from)).collect(),
            settled => settled.flatten(),
        };
        let time = |(number, (at, operation))| match &settled {
            Some(settled) => settled.offset_of(number).map(|at| (at, operation)),
            None => Some((at, operation)),
        };
        let operations = (0..).zip(self.operations()).filter_map(time);
        for (at, operation) in operations.skip_while(|(at, _)| *at < from).take_while(|(at, _)| *at <= until) {
            let objects = match operation.kind {
                Kind::Collect => self.groups().of(operation.object),
                _ => operation.object..operation.object + 1,
            };
            for place in objects.map(|object| self.place(object)).filter(|place| of.contains(place)) {
                next.entry(place).or_insert(at);
            }
        }
        next
    }

    fn stream(&self, name: &str) -> rand_chacha::ChaCha8Rng {
        seed::stream(self.seed, &version::of_section(name, self.section))
    }

    pub(super) fn groups(&self) -> Groups {
        let (namespace, population) = (self.objects_per_namespace(), self.config.population);
        Groups { namespace, size: u64::from((population / GROUPS).clamp(1, MOST_IN_GROUP)).min(namespace) }
    }

    /// The propagation policy for the dependents of an operation's object; `None` for operations that are not planned.
    pub(super) fn propagation(&self, operation: Operation) -> Option<Propagation> {
        let policies = &self.config.propagation;
        let deletes = matches!(operation.kind, Kind::Delete | Kind::Collect);
        if policies.is_empty() || !deletes || operation.revision == 0 {
            return None;
        }
        let mut rng = self.stream(&format!("churn propagation {}", operation.revision));
        Some(policies[rng.random_range(0..policies.len())])
    }

    pub(super) fn holds(&self, object: u64) -> bool {
        let Some(finalizers) = &self.config.finalizers else { return false };
        self.stream(&format!("churn finalizer {object}")).random_bool(finalizers.share)
    }

    /// The label selector of a group of objects, by the number of the group's first object.
    pub(super) fn selector(&self, first: u64) -> String {
        format!("{LABEL}={},{GROUP}={first}", self.tag())
    }

    /// The namespaces and contents of an object's dependents, without their owner reference.
    pub(super) fn children(&self, object: u64) -> Vec<(String, Value)> {
        let (Some(tree), Some((resource, content))) = (&self.config.tree, &self.tree) else { return Vec::new() };
        let (namespace, parent) = self.place(object);
        let per = u64::from(tree.per);
        let child = |number: u64| {
            let name = format!("{parent}-{number}");
            let place = ObjectName { namespace: &namespace, name: &name };
            let version = Version { child: true, ..self.version(object * per + number, 0) };
            let body = content.create(resource, place, version);
            (name, body)
        };
        (0..per).map(child).collect()
    }

    pub(super) fn child_resource(&self) -> Option<&Resource> {
        self.tree.as_ref().map(|(resource, _)| resource)
    }

    /// The owner reference of an object's dependents.
    pub(super) fn owner(&self, name: &str, uid: &str) -> Value {
        json!([{
            "apiVersion": self.resource.api_version(), "kind": self.resource.kind, "name": name, "uid": uid,
            "blockOwnerDeletion": true,
        }])
    }

    /// The number of objects that each namespace gets during the run.
    pub(super) fn objects_per_namespace(&self) -> u64 {
        if self.config.namespace.is_some() {
            return u64::MAX;
        }
        u64::from((self.config.population / NAMESPACES).clamp(1, MOST_IN_NAMESPACE))
    }

    pub(super) fn namespace_of(&self, object: u64) -> u64 {
        object / self.objects_per_namespace()
    }

    pub(super) fn namespace_name(&self, number: u64) -> String {
        if let Some(only) = &self.config.namespace {
            return only.clone();
        }
        format!("lh-{}-{number}", self.tag())
    }

    /// Whether the objects have a namespace that is there before and after the churn.
    pub(super) fn has_lasting_namespace(&self) -> bool {
        self.config.namespace.is_some()
    }

    /// Namespace and name of an object. The name contains the seed, unless the namespace belongs to this churn alone.
    pub(super) fn place(&self, object: u64) -> (String, String) {
        let kind = self.resource.kind.to_lowercase();
        if !self.resource.is_namespaced {
            return (String::new(), format!("{kind}-{}-{object:07}", self.tag()));
        }
        if let Some(only) = &self.config.namespace {
            return (only.clone(), format!("{kind}-{}-{object:07}", self.tag()));
        }
        let name = format!("{kind}-{object:07}");
        (self.namespace_name(self.namespace_of(object)), name)
    }

    pub(super) fn canary_place(&self) -> (String, String) {
        if !self.resource.is_namespaced {
            return (String::new(), format!("canary-{}", self.tag()));
        }
        match &self.config.namespace {
            Some(only) => (only.clone(), format!("canary-{}", self.tag())),
            None => (format!("lh-{}-canary", self.tag()), "canary".to_owned()),
        }
    }

    pub(super) fn body(&self, object: u64, revision: u64) -> Value {
        let (namespace, name) = self.place(object);
        let place = ObjectName { namespace: &namespace, name: &name };
        let mut body = self.content.create(&self.resource, place, self.version(object, revision));
        let metadata = &mut body["metadata"];
        if let Some(finalizers) = self.config.finalizers.as_ref().filter(|_| self.holds(object)) {
            let mut all = metadata["finalizers"].as_array().cloned().unwrap_or_default();
            all.push(finalizers.name.clone().into());
            metadata["finalizers"] = all.into();
        }
        if self.config.mix.delete_collection > 0 {
            metadata["labels"][GROUP] = self.groups().of(object).start.to_string().into();
        }
        body
    }

    /// The merge patch of an operation, and the subresource to which it is sent.
    pub(super) fn patch(&self, kind: Kind, object: u64, revision: u64) -> (Value, &'static str) {
        let (namespace, name) = self.place(object);
        let (place, version) = (ObjectName { namespace: &namespace, name: &name }, self.version(object, revision));
        match kind {
            Kind::Label => (objects::marked("labels", version), ""),
            Kind::Annotate => (objects::marked("annotations", version), ""),
            Kind::Status => (self.content.status(place, version), "/status"),
            Kind::Also => (self.change_of_other(place, version), ""),
            Kind::Create | Kind::Update | Kind::Delete | Kind::Collect | Kind::Denied => {
                (self.content.update(&self.resource, place, version), "")
            }
        }
    }

    /// The fields that updates of an object change.
    pub(super) fn varies(&self, object: u64) -> Vec<String> {
        self.content.varies(self.version(object, 0))
    }

    /// The merge patch of an update that changes only one field.
    pub(super) fn patch_of(&self, object: u64, revision: u64, pointer: &str) -> Value {
        let mut alone = self.clone();
        alone.content.keep(|varying| varying == pointer);
        alone.patch(Kind::Update, object, revision).0
    }

    /// Lets later updates leave out these fields.
    pub(super) fn keep_rehearsed(&mut self, refused: &[String]) {
        if !refused.is_empty() {
            tracing::warn!(
                fields = refused.join(", "),
                "changes of these fields are refused, so updates leave them out"
            );
            self.content.keep(|varying| !refused.iter().any(|one| one == varying));
        }
    }

    /// An object that the webhooks must refuse, with its name and the name of its template; `None` without such
    /// templates.
    pub(super) fn denied(&self, beside: u64, revision: u64) -> Option<(String, &str, Value)> {
        let (namespace, _) = self.place(beside);
        let kind = self.resource.kind.to_lowercase();
        let tag = if self.resource.is_namespaced { String::new() } else { format!("{}-", self.tag()) };
        let name = format!("{kind}-{tag}denied-{revision:07}");
        let place = ObjectName { namespace: &namespace, name: &name };
        let (called, object) = self.content.refused(&self.resource, place, self.version(beside, revision))?;
        Some((name, called, object))
    }

    /// The number of templates of objects that the webhooks must refuse.
    pub(super) fn denied_samples(&self) -> u64 {
        self.content.refused.len() as u64
    }

    fn change_of_other(&self, place: ObjectName<'_>, version: Version) -> Value {
        let mark = |what: &str| json!({"metadata": {what: {"longhaul.dev/also": version.revision.to_string()}}});
        match self.config.also.as_ref().map(|also| also.changes).unwrap_or_default() {
            Changes::Labels => mark("labels"),
            Changes::Annotations => mark("annotations"),
            Changes::Fields => self.content.fields(&self.resource, place, version),
        }
    }

    /// The canary as it is created, and its change. No other object has the canary's number, so its contents are
    /// unique.
    pub(super) fn canary(&self, revision: u64) -> (Value, Value) {
        let (namespace, name) = self.canary_place();
        let (place, version) = (ObjectName { namespace: &namespace, name: &name }, self.version(u64::MAX, revision));
        (self.content.create(&self.resource, place, version), self.content.update(&self.resource, place, version))
    }

    pub(super) fn is_namespaced(&self) -> bool {
        self.resource.is_namespaced
    }

    fn version(&self, object: u64, revision: u64) -> Version {
        Version { seed: self.seed, section: self.section, child: false, object, revision }
    }

    pub(super) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The value of churn's label on all objects of this section.
    pub(super) fn tag(&self) -> String {
        version::tag(self.seed, self.section)
    }
}

/// The weights of rare operations, as text.
fn more(config: &Config) -> String {
    let Config { mix, also, .. } = config;
    let Mix { label, annotate, status, delete_collection, .. } = *mix;
    let denied = config.weights().denied;
    let weights = [
        ("label", label),
        ("annotate", annotate),
        ("status", status),
        ("deleteCollection", delete_collection),
        ("also", also.as_ref().map_or(0, |also| also.weight)),
        ("denied", denied),
    ];
    let told: Vec<String> = weights
        .into_iter()
        .filter(|(_, weight)| *weight > 0)
        .map(|(word, weight)| format!(" : {word} {weight}"))
        .collect();
    told.concat()
}

#[cfg(test)]
mod tests;
