//! `nth` and `every`: the choice of targets by their number since the fault began.
//!
//! Owns how `nth` and `every` are written, and which numbers they choose.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a list in `nth`.
const LIST_MAX: usize = 100;

/// The chosen requests: one, a range, or a list; counted from 1 since the fault began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nth {
    Range {
        /// The first chosen number.
        from: u64,
        /// The last chosen number; if absent, all later ones are chosen.
        to: Option<u64>,
    },
    /// The numbers of the chosen requests, in ascending order.
    List(Vec<u64>),
}

/// Each second, third, … of the matching requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every(pub u64);

impl Nth {
    /// Chooses only the request with this number.
    pub const fn one(number: u64) -> Self {
        Self::Range { from: number, to: Some(number) }
    }

    /// Whether request number `number` is chosen.
    pub fn contains(&self, number: u64) -> bool {
        match self {
            Self::Range { from, to } => number >= *from && to.is_none_or(|to| number <= to),
            Self::List(numbers) => numbers.contains(&number),
        }
    }

    /// The error in the setting: the written value, and the advice.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        match self {
            Self::Range { from, to } if *from == 0 || to.is_some_and(|to| to < *from) => Some((
                format!("from {from} to {}", to.map_or("the end".to_owned(), |to| to.to_string())),
                "requests are counted from 1, and a range goes upwards, for example `{from: 2, to: 7}`",
            )),
            Self::List(numbers) if numbers.is_empty() || numbers.len() > LIST_MAX => {
                Some((format!("a list of {}", numbers.len()), "write 1 to 100 numbers, for example `[2, 4, 6]`"))
            }
            Self::List(numbers) if numbers[0] == 0 || numbers.windows(2).any(|pair| pair[0] >= pair[1]) => Some((
                format!("{numbers:?}"),
                "requests are counted from 1, and a list goes upwards, for example `[2, 4, 6]`",
            )),
            _ => None,
        }
    }
}

impl Every {
    /// Whether request number `number` is chosen.
    pub fn contains(self, number: u64) -> bool {
        self.0 > 0 && number.is_multiple_of(self.0)
    }

    /// The error in the setting: the written value, and the advice.
    pub(super) fn problem(self) -> Option<(String, &'static str)> {
        (self.0 < 2).then(|| (self.to_string(), "write `2nd` or more: a fault without it acts on each one"))
    }

    /// Reads `2nd` as well as `2`.
    fn read(text: &str) -> Option<Self> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let number: u64 = digits.parse().ok()?;
        matches!(&text[digits.len()..], "" | "st" | "nd" | "rd" | "th").then_some(Self(number))
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = match (self.0 % 10, self.0 % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        write!(f, "{}{ending}", self.0)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Range {
    from: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
}

impl<'de> Deserialize<'de> for Nth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Nth;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as `2`, a range such as `{from: 2, to: 7}`, or a list such as `[2, 4, 6]`")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Nth, E> {
                Ok(Nth::one(number))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Nth, E> {
                u64::try_from(number).map(Nth::one).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Nth, A::Error> {
                let Range { from, to } = Range::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Nth::Range { from, to })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Nth, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Nth::List)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Nth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Range { from, to } if *to == Some(*from) => serializer.serialize_u64(*from),
            Self::Range { from, to } => Range { from: *from, to: *to }.serialize(serializer),
            Self::List(numbers) => numbers.serialize(serializer),
        }
    }
}

impl JsonSchema for Nth {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let range = Range::json_schema(generator);
        let number = json_schema!({"type": "integer", "minimum": 1});
        json_schema!({
            "description": "Which of the matching requests, counted from 1 since the fault began: one, a range, or a list.",
            "anyOf": [number, range, {"type": "array", "items": number, "minItems": 1, "maxItems": LIST_MAX}],
        })
    }
}

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Every;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an ordinal such as `2nd`, or its number")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Every, E> {
                Ok(Every(number))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Every, E> {
                u64::try_from(number).map(Every).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Every, E> {
                Every::read(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Every {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Every {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Every".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Each second, third, … of the matching requests: an ordinal such as `2nd`, or its number.",
            "anyOf": [{"type": "integer", "minimum": 2}, {"type": "string", "pattern": "^[0-9]+(st|nd|rd|th)?$"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nth(text: &str) -> Result<Nth, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn of(contains: impl Fn(u64) -> bool) -> Vec<u64> {
        (1..=7).filter(|number| contains(*number)).collect()
    }

    #[test]
    fn numbers_are_chosen_as_they_are_written() {
        for (text, chosen) in [("2", vec![2]), (r#"{"from":5}"#, vec![5, 6, 7]), ("[2,4,6]", vec![2, 4, 6])] {
            let read = nth(text).unwrap();
            assert_eq!((of(|number| read.contains(number)), read.problem()), (chosen, None), "{text}");
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
        let every = |text: &str| serde_json::from_str::<Every>(text).unwrap();
        assert_eq!(of(|number| every("\"2nd\"").contains(number)), [2, 4, 6]);
        assert_eq!(of(|number| every("3").contains(number)), [3, 6]);
        let spelled = [1, 2, 3, 4, 11, 12, 13, 21, 22, 111].map(|number| Every(number).to_string());
        assert_eq!(spelled.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 111th");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        for text in ["0", r#"{"from":4,"to":2}"#, "[]", "[0,2]", "[2,2]", "[4,2]"] {
            assert!(nth(text).unwrap().problem().is_some(), "{text}");
        }
        assert!(nth("\"two\"").unwrap_err().contains("a list such as `[2, 4, 6]`"));
        assert!(Every(0).problem().is_some() && Every(1).problem().is_some() && Every(2).problem().is_none());
        for text in ["\"second\"", "\"2xx\"", "\"\"", "-2"] {
            let error = serde_json::from_str::<Every>(text).unwrap_err().to_string();
            assert!(error.contains("an ordinal such as `2nd`"), "{text}: {error}");
        }
    }
}
