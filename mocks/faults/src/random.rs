//! The draw of random faults: makes a schedule from a rate and a list of faults. Pure: the same seed, list of faults
//! and time limits give the same schedule.
//!
//! Owns the choice and the times of the faults. If the list contains only a fault's name, the fault gets the arguments
//! in its catalogue entry (`Row::drawn`).

use std::borrow::Cow;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Span;

use super::{Fault, Lasting, Name};

/// Maximum number of faults in one schedule. A hundred hours with one fault a minute are 6,000 faults.
pub const DRAWN_MAX: u64 = 10_000;
/// The time that a momentary fault takes: up to a second until the fault has a target, and a second for its canary.
const MOMENT: Duration = Duration::from_secs(2);
/// The pause between two drawn faults, so that a canary belongs to one fault.
const BETWEEN: Duration = Duration::from_secs(2);
/// If the range of possible starts of a fault is at least this long, the fault begins at a whole second. A shorter
/// range has too few whole seconds.
const SLACK_IN_SECONDS: Duration = Duration::from_secs(10);
/// Number of the random stream of the draw; load and churn use other streams of the same seed.
const STREAM: u64 = 0xFA17;

/// Faults that are drawn from a list, one in each interval of length `every`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Random {
    /// The length of an interval. One fault is drawn for each interval and begins within it.
    pub every: Span,
    /// The faults that may be drawn. An entry is a name, which gets default arguments, or a fault with arguments and
    /// without `at`. Every fault is drawn once before any is drawn again.
    pub from: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Candidate(pub Fault);

/// The time limits and defaults of a draw.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The earliest beginning of a drawn fault.
    pub from: Duration,
    /// The time by which every drawn fault has ended.
    pub to: Duration,
    /// The default resource of faults that can choose a resource.
    pub resource: Option<&'a str>,
    /// The faults that have times in the scenario. While one of these faults is active and its length is known, no
    /// drawn fault is active.
    pub planned: &'a [Fault],
}

/// The reasons why no faults can be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`random.from` is empty: name what may be drawn, for example `from: [watch-reset, silent-watch]`")]
    Nothing,
    /// An entry sets a beginning or an id.
    #[error(
        "`random.from`: entry {number} (`{fault}`) has `{key}`, which the draw decides: leave it out, or plan it under `planned`"
    )]
    Timed {
        /// The number of the entry in the list, from 1.
        number: usize,
        fault: &'static str,
        key: &'static str,
    },
    #[error("`random.from`: entry {number} (`{fault}`): {error}")]
    Unsound {
        /// The number of the entry in the list, from 1.
        number: usize,
        fault: &'static str,
        error: super::Error,
    },
    /// A fault is longer than an interval allows.
    #[error(
        "`random.every` is {every}, but `{fault}` takes {takes} with its canaries: write at least {takes}, or give it a shorter `for`"
    )]
    TooOften {
        /// The interval in `random.every`.
        every: Span,
        /// The name of the longest fault.
        fault: &'static str,
        /// The time that the fault needs.
        takes: Span,
    },
    #[error("`random.every: {every}` draws {count} faults, at most {DRAWN_MAX} are played: write at least {instead}")]
    TooMany {
        /// The interval in `random.every`.
        every: Span,
        /// The number of faults with this interval.
        count: u64,
        /// The shortest interval that is allowed.
        instead: Span,
    },
    #[error(
        "no drawn fault fits: the warm-up is over at {from}, from {to} on there is no time left to heal, and one strikes every {every}: make `steady` longer by {short}"
    )]
    NoRoom {
        /// The end of the warm-up, before which no drawn fault begins.
        from: Span,
        /// The time by which every drawn fault must have ended.
        to: Span,
        /// The interval in `random.every`.
        every: Span,
        /// The time by which the run is too short, in whole seconds.
        short: Span,
    },
}

impl Random {
    /// Draws the schedule in order of time. Faults overlap neither other drawn faults nor planned faults of known
    /// length.
    pub fn draw(&self, seed: u64, window: &Window<'_>) -> Result<Vec<Fault>, Error> {
        let candidates = self.candidates(window.resource)?;
        let every = self.every.0;
        let room = window.to.saturating_sub(window.from);
        let count = u64::try_from(room.as_nanos() / every.as_nanos().max(1)).unwrap_or(u64::MAX);
        if count > DRAWN_MAX {
            let instead = Span::from_secs(room.as_secs().div_ceil(DRAWN_MAX).max(1));
            return Err(Error::TooMany { every: self.every, count, instead });
        }
        if count == 0 {
            let missing = (window.from + every).saturating_sub(window.to);
            let short = Span::from_secs(missing.as_secs() + u64::from(missing.subsec_nanos() > 0));
            return Err(Error::NoRoom { from: Span(window.from), to: Span(window.to), every: self.every, short });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        let mut bag: Vec<usize> = Vec::new();
        let mut drawn = Vec::new();
        let mut stretch = window.from;
        for _ in 0..count {
            if bag.is_empty() {
                bag = (0..candidates.len()).collect();
            }
            let fault = &candidates[bag.swap_remove(rng.random_range(0..bag.len()))];
            let late = late(&mut rng, every.saturating_sub(takes(fault)));
            let fault = Fault { at: Some(Span(stretch + late)), ..fault.clone() };
            if !window.planned.iter().any(|planned| meet(planned, &fault)) {
                drawn.push(fault);
            }
            stretch += every;
        }
        Ok(drawn)
    }

    /// The checked faults of `random.from`, with missing keys set to defaults of the catalogue and the scenario.
    fn candidates(&self, resource: Option<&str>) -> Result<Vec<Fault>, Error> {
        if self.from.is_empty() {
            return Err(Error::Nothing);
        }
        let mut candidates = Vec::new();
        for (index, Candidate(fault)) in self.from.iter().enumerate() {
            let (number, name) = (index + 1, fault.name.as_str());
            let timed = [("at", fault.at.is_some()), ("when", fault.when.is_some()), ("id", fault.id.is_some())];
            if let Some((key, _)) = timed.into_iter().find(|(_, given)| *given) {
                return Err(Error::Timed { number, fault: name, key });
            }
            let fault = complete(fault, resource);
            fault.check().map_err(|error| Error::Unsound { number, fault: name, error })?;
            candidates.push(fault);
        }
        let longest = candidates.iter().max_by_key(|fault| takes(fault));
        if let Some(fault) = longest.filter(|fault| takes(fault) > self.every.0) {
            let takes = Span(takes(fault));
            return Err(Error::TooOften { every: self.every, fault: fault.name.as_str(), takes });
        }
        Ok(candidates)
    }
}

/// Returns the fault with a length and a resource, set to defaults if the fault lacks them.
fn complete(fault: &Fault, resource: Option<&str>) -> Fault {
    let row = fault.name.row();
    let mut fault = Fault { at: Some(Span::from_secs(0)), ..fault.clone() };
    if fault.resource.is_none() && row.chooses.contains(&"resource") {
        fault.resource = resource.map(str::to_owned);
    }
    if fault.lasting() == Lasting::ToTheEnd {
        fault.lasts = Some(Span::from_secs(row.drawn.for_s));
    }
    if fault.count.is_none() && fault.probability.is_none() {
        fault.count = row.drawn.count;
    }
    fault
}

/// The time from the beginning of an interval to the beginning of its fault. If enough whole seconds are possible, the
/// time is a whole second, which people can read in a plan and write into a scenario.
fn late(rng: &mut ChaCha8Rng, slack: Duration) -> Duration {
    let grain = if slack >= SLACK_IN_SECONDS { Duration::from_secs(1) } else { Duration::from_millis(1) };
    let grains = u32::try_from(slack.as_nanos() / grain.as_nanos()).unwrap_or(u32::MAX);
    grain * rng.random_range(0..=grains)
}

fn active(fault: &Fault) -> Option<Duration> {
    match fault.lasting() {
        Lasting::Moment if fault.name.row().family.takes_its_time() => {
            Some(Duration::from_secs(fault.name.row().drawn.for_s))
        }
        Lasting::Moment => Some(MOMENT),
        Lasting::For(span) => Some(span.0),
        Lasting::ToTheEnd => None,
    }
}

/// How long a drawn fault takes, with the pause after it.
fn takes(fault: &Fault) -> Duration {
    active(fault).unwrap_or_default().saturating_add(BETWEEN)
}

/// Whether two faults are active at the same time. A planned fault that lasts to the end of the load may overlap drawn
/// faults, so the result is then `false`.
fn meet(planned: &Fault, drawn: &Fault) -> bool {
    let span = |fault: &Fault| Some((fault.at?.0, fault.at?.0.saturating_add(active(fault)?).saturating_add(BETWEEN)));
    span(planned).zip(span(drawn)).is_some_and(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

impl Serialize for Candidate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Candidate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Candidate;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a fault, or a fault such as {name: silent-watch, for: 8s}")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Candidate, E> {
                Name::deserialize(de::value::StrDeserializer::new(word)).map(|name| Candidate(Fault::armed(name)))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Candidate, A::Error> {
                <Fault as Deserialize>::deserialize(de::value::MapAccessDeserializer::new(map)).map(Candidate)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Candidate {
    fn schema_name() -> Cow<'static, str> {
        "Candidate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, fault) = (generator.subschema_for::<Name>(), generator.subschema_for::<Fault>());
        json_schema!({"description": "A fault that may be drawn: its name, or a fault without `at`.", "anyOf": [name, fault]})
    }
}

#[cfg(test)]
mod tests;
