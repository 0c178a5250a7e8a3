//! `faults`: the faults of a scenario, planned one by one or drawn at random.
//!
//! This module reads the two notations of `faults:`, a list or a mapping, and makes one list of faults from either.
//! [`mock_faults::random`] decides the times of random faults. All other code handles planned and random faults in the
//! same way.

use std::borrow::Cow;
use std::ops::Deref;

use mock_faults::random::{Error, Random, Window};
use mock_faults::{Fault, Name};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The faults of a run in one list: first the planned faults as written, then the random faults ordered by time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    all: Vec<Fault>,
    /// The number of planned faults in the list; the faults after them are random.
    planned: usize,
    random: Option<Random>,
}

/// The value of `faults:` if it is a mapping.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Mapping {
    /// Faults that are written one by one, with the keys of the list form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    planned: Vec<Fault>,
    /// Faults that the scenario's seed draws from a list.
    random: Option<Random>,
}

impl Deref for Faults {
    type Target = [Fault];

    fn deref(&self) -> &[Fault] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl Faults {
    /// Every fault as a mutable reference, to change its target.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut Fault> {
        self.all.iter_mut()
    }

    /// The settings of random faults.
    pub fn random(&self) -> Option<&Random> {
        self.random.as_ref()
    }

    /// The faults with this name, planned and drawn.
    pub fn named(&self, name: Name) -> impl Iterator<Item = &Fault> {
        self.all.iter().filter(move |fault| fault.name == name)
    }

    /// Whether a planned or drawn fault has this name.
    pub fn has(&self, name: Name) -> bool {
        self.named(name).next().is_some()
    }

    pub fn planned(&self) -> &[Fault] {
        self.all.get(..self.planned).unwrap_or_default()
    }

    pub fn drawn(&self) -> &[Fault] {
        self.all.get(self.planned..).unwrap_or_default()
    }

    /// Draws the random faults by a seed and drops those of earlier draws.
    pub(super) fn draw(&mut self, seed: u64, window: &Window<'_>) -> Result<(), Error> {
        let Some(random) = &self.random else { return Ok(()) };
        self.all.truncate(self.planned);
        let drawn = random.draw(seed, &Window { planned: &self.all, ..*window })?;
        self.all.extend(drawn);
        Ok(())
    }

    /// Keeps the faults for which `keeps` returns true; the second argument of `keeps` has all planned faults. Returns
    /// the names of the removed faults. The random faults must be drawn again after this call.
    pub fn retain(&mut self, mut keeps: impl FnMut(&Fault, &[Fault]) -> bool) -> Vec<&'static str> {
        self.all.truncate(self.planned);
        let mut left_out = Vec::new();
        // Faults that wait for a removed fault are removed too, and so on.
        while let Some(index) = (0..self.all.len()).find(|index| !keeps(&self.all[*index], &self.all)) {
            left_out.push(self.all.remove(index).name.as_str());
        }
        self.planned = self.all.len();
        if let Some(random) = &mut self.random {
            random.from.retain(|candidate| {
                let kept = keeps(&candidate.0, &[]);
                if !kept {
                    left_out.push(candidate.0.name.as_str());
                }
                kept
            });
        }
        self.random.take_if(|random| random.from.is_empty());
        left_out
    }
}

impl From<Vec<Fault>> for Faults {
    fn from(all: Vec<Fault>) -> Self {
        Self { planned: all.len(), all, random: None }
    }
}

/// Serializes faults as they were written, so that a reader of the record draws the same faults.
impl Serialize for Faults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.random {
            None => self.all.serialize(serializer),
            Some(random) => {
                Mapping { planned: self.planned().to_vec(), random: Some(random.clone()) }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Faults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> de::Visitor<'de> for Either {
            type Value = Faults;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of faults, or a mapping with `random` and perhaps `planned`")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<Faults, A::Error> {
                Vec::<Fault>::deserialize(de::value::SeqAccessDeserializer::new(items)).map(Faults::from)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Faults, A::Error> {
                let read = Mapping::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Faults { random: read.random, ..Faults::from(read.planned) })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Faults {
    fn schema_name() -> Cow<'static, str> {
        "Faults".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (list, mapping) = (generator.subschema_for::<Vec<Fault>>(), generator.subschema_for::<Mapping>());
        json_schema!({"description": "A list of faults, or a mapping with `random` and perhaps `planned`.", "anyOf": [list, mapping]})
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use units::Span;

    use super::super::{Scenario, Source};

    const SMOKE: &str = include_str!("../../../library/smoke.yaml");

    /// The scenario `smoke` with this text under `faults:`.
    fn with(faults: &str) -> Result<Scenario, String> {
        let start = SMOKE.find("\nfaults:").unwrap() + 1;
        let rest = &SMOKE[start..];
        let line_end = rest.find('\n').unwrap() + 1;
        let is_in = |line: &&str| line.starts_with([' ', '#', '-']) || line.trim().is_empty();
        let end = line_end + rest[line_end..].split_inclusive('\n').take_while(is_in).map(str::len).sum::<usize>();
        let text = format!("{}{faults}\n{}", &SMOKE[..start], &rest[end..]);
        let read = Source::parse(&text, "x.yaml", Path::new("."));
        read.map(|source| source.scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mapping_has_planned_and_drawn_faults() {
        let scenario = with(
            "faults:\n  planned:\n    - {name: watch-reset, at: 2s}\n  random:\n    every: 8s\n    from: [watch-end, compact]",
        )
        .unwrap();
        let faults = &scenario.faults;
        assert_eq!((faults.planned().len(), faults.len()), (1, 1 + faults.drawn().len()));
        assert!(!faults.drawn().is_empty());
        assert!(faults.drawn().iter().all(|fault| fault.at.unwrap() >= scenario.phases.warm_up));
        // This is its form in a manifest: read again, it draws the same faults.
        let text = serde_json::to_string(&scenario).unwrap();
        let mut again: Scenario = serde_json::from_str(&text).unwrap();
        again.draw().unwrap();
        assert_eq!(again.faults, scenario.faults);
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let error = with("faults:\n  random:\n    every: 8s\n    from: [watch-rest]").unwrap_err();
        assert!(error.contains("did you mean `watch-reset`?") && error.starts_with("x.yaml:"), "{error}");
        let error = with("faults:\n  planned: []\n  random:\n    every: 1s\n    from: [silent-watch]").unwrap_err();
        assert!(error.contains("`silent-watch` takes 10s with its canaries"), "{error}");
        let error = with("faults:\n  random:\n    evry: 1s\n    from: [silent-watch]").unwrap_err();
        assert!(error.contains("did you mean `every`?"), "{error}");
        let error = with("faults: watch-reset").unwrap_err();
        assert!(error.contains("a list of faults, or a mapping with `random`"), "{error}");
    }

    #[test]
    fn what_a_clock_cannot_do_is_refused() {
        for (keys, why) in [
            ("name: clock-jump, at: 2s, ahead: 1m, back: 1m", "keep `ahead` or `back`"),
            ("name: clock-jump, at: 2s, back: 1h, of: all", "only the wall clock goes back"),
            ("name: clock-jump, at: 2s, ahead: 90000h", "the most is one year"),
            ("name: clock-drift, at: 2s, for: 2s, ppm: 600000", "write -500000 to 500000"),
            ("name: clock-drift, at: 2s, for: 2s, ppm: 0", "write how many millionths it is off"),
            ("name: clock-jump, at: 2s, ahead: 1m, process: a", "`process: a` is none of the subject's: leave it out"),
        ] {
            let error = with(&format!("faults:\n  - {{{keys}}}")).unwrap_err();
            assert!(error.contains(why) && error.starts_with("x.yaml:"), "{keys}: {error}");
        }
        with("faults:\n  - {name: clock-jump, at: 2s, ahead: 1m}").unwrap();
    }

    /// If the length of the run changes, as many random faults are drawn as fit into the new length.
    #[test]
    fn another_length_draws_as_many_as_fit() {
        let mut source = Source::read("soak-1h").unwrap();
        source.last(Span::from_secs(5 * 60)).unwrap();
        let (phases, faults) = (source.scenario.phases, &source.scenario.faults);
        assert_eq!(faults.len(), 1, "150 s of steady phase, the last 60 of them to heal");
        assert!(faults.iter().all(|fault| fault.at.unwrap().0 < phases.loaded()));
        let error = source.last(Span::from_secs(3 * 60)).unwrap_err().to_string();
        let wanted = "--for 3m: no drawn fault fits: warm-up, drain and the time to heal leave less than the 1m in which one strikes; \
            write at least `--for 270s`";
        assert_eq!(error, wanted);
        source.last(Span::from_secs(270)).unwrap();
        assert_eq!(source.scenario.faults.len(), 1);
        assert!(source.last(Span::from_secs(269)).is_err(), "the length that is named is the least one");
    }
}
