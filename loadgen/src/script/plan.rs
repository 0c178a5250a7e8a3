//! The plan of a script: the writes and their times. Pure: no I/O.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::Error;
use super::config::{self, Config, Step, Verb};
use crate::churn::resource::Resource;
use crate::churn::template::Template;

/// A checked script, and the seed of its objects' contents.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    resource: Resource,
    template: Option<Template>,
    seed: u64,
    records: bool,
}

/// One repetition of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// The index of the step, from 0.
    pub step: usize,
    pub round: u32,
}

/// The writes that follow the start of the script or a hit of a fault, by time, then in the order of the file.
#[derive(Debug)]
pub(super) struct Writes {
    steps: BTreeMap<usize, Repeated>,
    due: BinaryHeap<Reverse<(Duration, usize, u32)>>,
}

#[derive(Debug)]
struct Repeated {
    every: Duration,
    times: u32,
}

impl Iterator for Writes {
    type Item = (Duration, Operation);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((after, step, round)) = self.due.pop()?;
        if let Some(it) = self.steps.get(&step).filter(|it| round + 1 < it.times) {
            self.due.push(Reverse((after + it.every, step, round + 1)));
        }
        Some((after, Operation { step, round }))
    }
}

impl Plan {
    pub fn build(config: &Config, seed: u64) -> Result<Self, Error> {
        config.check()?;
        let (resource, template) = config.read()?;
        Ok(Self { config: config.clone(), resource, template, seed, records: false })
    }

    /// The same plan with a record of its successful writes; see [`super::Script::take_writes`].
    #[must_use]
    pub fn recording_writes(mut self) -> Self {
        self.records = true;
        self
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The name of the resource, such as `packages.longhaul.dev`, or `configmaps` in the core group.
    pub fn resource_name(&self) -> String {
        self.resource.name()
    }

    /// The number of writes in all steps. A recreation counts as two writes, the deletion of a collection as one.
    pub fn total(&self) -> u64 {
        let writes = |step: &Step| {
            let (verb, names) = step.verb().unwrap_or((Verb::Create, &[]));
            match verb {
                Verb::DeleteCollection => 1,
                Verb::Recreate => 2 * names.len() as u64 * u64::from(step.times()),
                _ => names.len() as u64 * u64::from(step.times()),
            }
        };
        self.config.steps.iter().map(writes).sum()
    }

    /// The planned time of the last write that waits for no fault, counted from the start of the warm-up.
    pub fn length(&self) -> Duration {
        let end = |step: &Step| step.at.map(|at| at.0 + spread(step) * (step.times() - 1));
        self.config.steps.iter().filter_map(end).max().unwrap_or_default()
    }

    pub(super) fn records_writes(&self) -> bool {
        self.records
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The namespace of the objects; empty if they are cluster-wide.
    pub(super) fn place(&self) -> String {
        if self.resource.is_namespaced { self.config.namespace.clone() } else { String::new() }
    }

    /// The template of the resource's objects, if the resource has no built-in contents.
    pub(super) fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    /// The names of the objects that exist before the subject starts: first the named objects in their order, then the
    /// additional ones.
    pub(super) fn first_objects(&self) -> impl Iterator<Item = String> + '_ {
        self.config.objects.iter().cloned().chain((0..self.config.objects_many).map(config::many))
    }

    /// The number of named objects before the subject starts.
    pub(super) fn named_objects(&self) -> usize {
        self.config.objects.len()
    }

    /// The writes of all steps that have a time, in order of time.
    pub(super) fn timed(&self) -> Writes {
        self.writes(|step| step.at.map(|at| at.0))
    }

    /// The writes of all steps that wait for this fault's first hit, in order of time.
    pub(super) fn after_hit(&self, id: &str) -> Writes {
        self.writes(|step| step.when.as_ref().filter(|when| when.hit == id).map(|when| when.plus.0))
    }

    fn writes(&self, first: impl Fn(&Step) -> Option<Duration>) -> Writes {
        let mut writes = Writes { steps: BTreeMap::new(), due: BinaryHeap::new() };
        for (number, step) in self.config.steps.iter().enumerate() {
            if let Some(after) = first(step) {
                writes.due.push(Reverse((after, number, 0)));
                writes.steps.insert(number, Repeated { every: spread(step), times: step.times() });
            }
        }
        writes
    }

    /// The names that one repetition of a step writes.
    pub(super) fn names(&self, due: Operation) -> Vec<String> {
        let step = &self.config.steps[due.step];
        let Some((verb, names)) = step.verb() else { return Vec::new() };
        if verb == Verb::Create && step.times() > 1 {
            return names.iter().map(|name| config::numbered(name, due.round)).collect();
        }
        names.to_vec()
    }
}

fn spread(step: &Step) -> Duration {
    step.every.unwrap_or_default().0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(steps: &str) -> Plan {
        let text =
            format!(r#"{{"resource": "configmaps/v1", "objects": ["a"], "objectsMany": 2, "steps": [{steps}]}}"#);
        Plan::build(&serde_json::from_str(&text).unwrap(), 1).unwrap()
    }

    /// For each planned write: its time in milliseconds, and the names of its objects.
    fn writes(plan: &Plan, writes: Writes) -> Vec<(u128, Vec<String>)> {
        writes.map(|(after, operation)| (after.as_millis(), plan.names(operation))).collect()
    }

    fn name(name: &str) -> Vec<String> {
        vec![name.to_owned()]
    }

    #[test]
    fn repetitions_are_spread_and_creates_get_numbers() {
        let plan = plan(
            r#"{"at": "2s", "update": "a", "times": 3, "every": "100ms"}, {"at": "1s", "create": "n", "times": 2},
               {"when": {"hit": "x", "plus": "5ms"}, "recreate": "a"}"#,
        );
        let timed = [(1000, name("n-1")), (1000, name("n-2")), (2000, name("a")), (2100, name("a")), (2200, name("a"))];
        assert_eq!(writes(&plan, plan.timed()), timed);
        assert_eq!(writes(&plan, plan.after_hit("x")), [(5, name("a"))]);
        assert_eq!(plan.after_hit("y").count(), 0);
        assert_eq!((plan.total(), plan.length()), (7, Duration::from_millis(2200)));
        assert_eq!(plan.first_objects().collect::<Vec<_>>(), ["a", "p00000", "p00001"]);
    }
}
