//! The plan: every call with its time, which the seed alone decides. Pure: no I/O.

use std::time::Duration;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::{Config, Error};
use crate::{Schedule, seed};

/// The resource whose replica counts are read and set.
pub(super) const RESOURCE: &str = "deployments.apps/v1";
/// The namespace of the Deployments, which is used for nothing else in a run.
pub(super) const NAMESPACE: &str = "longhaul-api";
/// The first replica count, so that no count of a plan is 1, the default of a Deployment.
const FIRST_COUNT: i32 = 1000;

/// An operation and its Deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) verb: Verb,
    pub(super) deployment: u32,
    /// For a write, the count that it sets, which is unique. For a call of an unauthorised caller, the number of that
    /// caller.
    pub(super) number: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Set,
    List,
    Other,
    Intruder,
}

const VERBS: [Verb; 5] = [Verb::Get, Verb::Set, Verb::List, Verb::Other, Verb::Intruder];

/// All calls of a run. Equal configuration, seed and length give equal calls.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    schedule: Schedule,
    seed: u64,
}

impl Plan {
    pub fn build(config: &Config, seed: u64, length: Duration) -> Result<Self, Error> {
        config.check()?;
        let schedule = Schedule::new(config.arrivals, config.rate, None, seed, length);
        let schedule = schedule.map_err(|misfit| Error::Config { key: "rate", problem: format!("{misfit:?}") })?;
        Ok(Self { config: config.clone(), schedule, seed })
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn operations(&self) -> impl Iterator<Item = (Duration, Operation)> + Send + use<> {
        let mut rng = seed::stream(self.seed, "calls");
        let (weights, deployments) = (self.config.mix.weights(), self.config.deployments);
        let total: u32 = weights.iter().sum();
        let mut number = FIRST_COUNT + i32::try_from(deployments).unwrap_or(i32::MAX / 2);
        self.schedule.times().map(move |at| {
            let verb = draw(&mut rng, weights, total);
            let deployment = rng.random_range(0..deployments);
            // The limit is that of an `int32`: a run of 100 hours at the highest rate would need seven billion, and
            // wraps.
            number = number.checked_add(1).unwrap_or(FIRST_COUNT);
            (at, Operation { verb, deployment, number })
        })
    }
}

fn draw(rng: &mut ChaCha8Rng, weights: [u32; 5], total: u32) -> Verb {
    let mut left = rng.random_range(0..total);
    for (verb, weight) in VERBS.into_iter().zip(weights) {
        if left < weight {
            return verb;
        }
        left -= weight;
    }
    Verb::Get
}

/// The name of a Deployment; names sort in the order of their numbers.
pub(super) fn name(deployment: u32) -> String {
    format!("d{deployment:06}")
}

/// The number of a Deployment, from its name.
pub(super) fn number(name: &str) -> Option<u32> {
    name.strip_prefix('d').filter(|digits| digits.len() == 6)?.parse().ok()
}

/// The first count of a Deployment, which is different for each.
pub(super) fn first_count(deployment: u32) -> i32 {
    FIRST_COUNT + i32::try_from(deployment).unwrap_or(i32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn plan(mix: &str) -> Plan {
        let text = format!(r#"{{"rate": "100/s", "deployments": 7, "mix": {mix}}}"#);
        Plan::build(&serde_json::from_str(&text).unwrap(), 3, Duration::from_mins(1)).unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_calls_and_every_count_is_another() {
        let operations: Vec<_> = plan(r#"{"get": 5, "set": 3, "intruder": 1}"#).operations().collect();
        assert_eq!(operations, plan(r#"{"get": 5, "set": 3, "intruder": 1}"#).operations().collect::<Vec<_>>());
        let counts: BTreeSet<i32> =
            operations.iter().map(|(_, one)| one.number).chain((0..7).map(first_count)).collect();
        assert_eq!(counts.len(), operations.len() + 7);
        let of = |verb| operations.iter().filter(|(_, one)| one.verb == verb).count();
        assert!(of(Verb::Get) > of(Verb::Set) && of(Verb::Set) > of(Verb::Intruder) && of(Verb::Intruder) > 0);
        assert_eq!(number(&name(6)), Some(6));
        assert_eq!(number("web"), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, key) in [
            (r#"{"rate": "0/s"}"#, "rate"),
            (r#"{"rate": "1/s", "deployments": 0}"#, "deployments"),
            (r#"{"rate": "1/s", "mix": {"set": 1}}"#, "mix"),
            (r#"{"rate": "1/s", "timeout": "0s"}"#, "timeout"),
        ] {
            let config: Config = serde_json::from_str(text).unwrap();
            let error = Plan::build(&config, 1, Duration::from_secs(1)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("api.{key}: ")), "{error}");
        }
    }
}
