//! The draw of random faults: from a rate and a list to a schedule. Pure: the same seed, list and window give the same
//! schedule.
//!
//! Owns the choice and the times of the faults. The row of a fault (`Row::drawn`) holds the arguments of one that is
//! only named.

use std::borrow::Cow;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::Span;

use super::{Fault, Lasting, Name};

/// A hundred hours with a fault a minute are 6,000.
pub const DRAWN_MAX: u64 = 10_000;
/// A momentary fault waits up to a second for a target; its canary comes another second later.
const MOMENT: Duration = Duration::from_secs(2);
/// The quiet time between two drawn faults, so that the canaries of each are its own.
const BETWEEN: Duration = Duration::from_secs(2);
/// Below this slack, whole seconds would leave few moments in a short stretch.
const SLACK_IN_SECONDS: Duration = Duration::from_secs(10);
/// Keeps the random numbers of the draw apart from those of load and churn, which have the same seed.
const STREAM: u64 = 0xFA17;

/// Faults that are drawn from a list, one in each stretch of `every`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Random {
    /// The length of a stretch. One fault is drawn for each stretch, and begins somewhere in it.
    pub every: Span,
    /// The candidates: a name, which gets the arguments of its row, or a fault with arguments and without `at`. Each is
    /// drawn once before any is drawn again.
    pub from: Vec<Candidate>,
}

/// A fault that may be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate(pub Fault);

/// The bounds and defaults of a draw.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// No fault begins earlier.
    pub from: Duration,
    /// Every fault is over by then.
    pub to: Duration,
    /// The default resource for faults that can choose one.
    pub resource: Option<&'a str>,
    /// The faults with a time of their own. While one of known length is active, no drawn fault is.
    pub planned: &'a [Fault],
}

/// Why a draw is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An empty list.
    #[error("`random.from` is empty: name what may be drawn, for example `from: [watch-reset, silent-watch]`")]
    Nothing,
    /// An entry with a beginning or an id.
    #[error(
        "`random.from`: entry {number} (`{fault}`) has `{key}`, which the draw decides: leave it out, or plan it under `planned`"
    )]
    Timed {
        /// The number of the entry, from 1.
        number: usize,
        fault: &'static str,
        key: &'static str,
    },
    /// An entry that is no valid fault.
    #[error("`random.from`: entry {number} (`{fault}`): {error}")]
    Unsound {
        /// The number of the entry, from 1.
        number: usize,
        fault: &'static str,
        error: super::Error,
    },
    /// A fault does not fit between two others.
    #[error(
        "`random.every` is {every}, but `{fault}` takes {takes} with its canaries: write at least {takes}, or give it a shorter `for`"
    )]
    TooOften {
        /// The configured length.
        every: Span,
        /// The longest fault.
        fault: &'static str,
        /// The time that it needs.
        takes: Span,
    },
    /// More than [`DRAWN_MAX`].
    #[error("`random.every: {every}` draws {count} faults, at most {DRAWN_MAX} are played: write at least {instead}")]
    TooMany {
        /// The configured length.
        every: Span,
        /// The resulting number.
        count: u64,
        /// The shortest length that fits.
        instead: Span,
    },
    /// Not one stretch fits.
    #[error(
        "no drawn fault fits: the warm-up is over at {from}, from {to} on there is no time left to heal, and one strikes every {every}: make `steady` longer by {short}"
    )]
    NoRoom {
        /// The beginning of the window.
        from: Span,
        /// The end of the window.
        to: Span,
        /// The configured length.
        every: Span,
        /// The missing time, in whole seconds.
        short: Span,
    },
}

impl Random {
    /// Draws the schedule, in order of time. Faults overlap neither each other nor planned faults of known length.
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

    /// The checked list, with the additions of the rows and the scenario.
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

/// A fault with a length and a resource.
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

/// How late in its stretch a fault begins. If there are enough whole seconds to choose from, it is one of them, because
/// people can read that in a plan and write it into a scenario.
fn late(rng: &mut ChaCha8Rng, slack: Duration) -> Duration {
    let grain = if slack >= SLACK_IN_SECONDS { Duration::from_secs(1) } else { Duration::from_millis(1) };
    let grains = u32::try_from(slack.as_nanos() / grain.as_nanos()).unwrap_or(u32::MAX);
    grain * rng.random_range(0..=grains)
}

/// How long a fault is active.
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

/// Whether two faults are active at the same time. A planned fault that lasts to the end does not count: it may overlap
/// others.
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
