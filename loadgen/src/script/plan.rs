//! The plan of a script: which write is due when. Pure.

use std::time::Duration;

use super::Error;
use super::config::{self, Config, Step, Verb};
use crate::churn::resource::Resource;
use crate::churn::template::Template;

/// A checked script with the seed that fills its objects.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    resource: Resource,
    template: Option<Template>,
    seed: u64,
    records: bool,
}

/// One write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// So long after the trigger of its step.
    pub after: Duration,
    /// The step, from 0.
    pub step: usize,
    /// The repetition, from 0.
    pub round: u32,
}

impl Plan {
    /// Checks and plans a script.
    pub fn build(config: &Config, seed: u64) -> Result<Self, Error> {
        config.check()?;
        let (resource, template) = config.read()?;
        Ok(Self { config: config.clone(), resource, template, seed, records: false })
    }

    /// The plan whose run keeps a record of its successful writes: see [`super::Script::take_writes`].
    #[must_use]
    pub fn recording_writes(mut self) -> Self {
        self.records = true;
        self
    }

    /// What it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The resource as Kubernetes names it: `packages.longhaul.dev`, or `configmaps` in the core group.
    pub fn resource_name(&self) -> String {
        self.resource.name()
    }

    /// How many writes the steps make, whenever they are due; a recreate counts twice, the deletion of a collection once.
    pub fn planned(&self) -> u64 {
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

    /// When the last write with a time of its own is due, after the start of the warm-up.
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

    /// The namespace of its objects; empty where they are in none.
    pub(super) fn place(&self) -> String {
        if self.resource.is_namespaced { self.config.namespace.clone() } else { String::new() }
    }

    /// What objects of that resource look like, where it is none that is known by itself.
    pub(super) fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    /// The names of the objects that exist before the subject starts: those that are named, in their order, then the many.
    pub(super) fn first_objects(&self) -> impl Iterator<Item = String> + '_ {
        self.config.objects.iter().cloned().chain((0..self.config.objects_many).map(config::many))
    }

    /// How many of them are named.
    pub(super) fn named_objects(&self) -> usize {
        self.config.objects.len()
    }

    /// The first write of every step with a time of its own.
    pub(super) fn timed(&self) -> impl Iterator<Item = Due> + '_ {
        self.config
            .steps
            .iter()
            .enumerate()
            .filter_map(|(index, step)| step.at.map(|at| Due { after: at.0, step: index, round: 0 }))
    }

    /// The first write of every step that waits for this fault's first hit.
    pub(super) fn after_hit<'a>(&'a self, id: &'a str) -> impl Iterator<Item = Due> + 'a {
        self.config.steps.iter().enumerate().filter_map(move |(index, step)| {
            let when = step.when.as_ref().filter(|when| when.hit == id)?;
            Some(Due { after: when.plus.0, step: index, round: 0 })
        })
    }

    /// The repetition after this one.
    pub(super) fn next(&self, due: Due) -> Option<Due> {
        let step = &self.config.steps[due.step];
        let round = due.round + 1;
        (round < step.times()).then(|| Due { after: due.after + self.spread(due), round, ..due })
    }

    /// The time from one repetition of its step to the next.
    pub(super) fn spread(&self, due: Due) -> Duration {
        spread(&self.config.steps[due.step])
    }

    /// The names that a repetition of a step writes.
    pub(super) fn names(&self, due: Due) -> Vec<String> {
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

    /// Everything that a step writes: after how many milliseconds, and which names.
    fn writes(plan: &Plan, first: Due) -> Vec<(u128, Vec<String>)> {
        std::iter::successors(Some(first), |due| plan.next(*due))
            .map(|due| (due.after.as_millis(), plan.names(due)))
            .collect()
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
        let timed: Vec<Due> = plan.timed().collect();
        assert_eq!(writes(&plan, timed[0]), [(2000, name("a")), (2100, name("a")), (2200, name("a"))]);
        assert_eq!(writes(&plan, timed[1]), [(1000, name("n-1")), (1000, name("n-2"))]);
        assert_eq!(timed.len(), 2);
        assert_eq!(writes(&plan, plan.after_hit("x").next().unwrap()), [(5, name("a"))]);
        assert_eq!(plan.after_hit("y").count(), 0);
        assert_eq!((plan.planned(), plan.length()), (7, Duration::from_millis(2200)));
        assert_eq!(plan.first_objects().collect::<Vec<_>>(), ["a", "p00000", "p00001"]);
    }
}
