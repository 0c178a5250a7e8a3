//! `repro`: the documented bug that a scenario shows, for `longhaul soak bugs/NAME` and the catalogue.
//!
//! These keys change nothing in a run: only readers and tests of the library use them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use units::Span;

/// A documented bug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Repro {
    /// The bug's number in the catalogue: `4`, or `M2` for a bug of growth.
    pub row: Row,
    /// Links to the documentation of the bug.
    pub reference: Vec<String>,
    /// How the bug happens, on the wire and in the client.
    pub mechanism: String,
    /// How a correct client behaves instead.
    pub good_client: String,
    /// Mistakes of the planted client that this scenario must show. For each, words that its verdict must contain.
    #[serde(default)]
    pub mistakes: BTreeMap<String, Vec<String>>,
    /// The HTTP versions in which the bug exists. Default: both.
    #[serde(default)]
    pub http_versions: Vec<u8>,
    /// Abilities without which a client cannot have the bug. Default: list and watch one kind.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Intervals that this scenario sets for the client. A command gets them as `LONGHAUL_RELIST_S` and
    /// `LONGHAUL_HANDLER_S`, and may ignore them.
    #[serde(default)]
    pub clocks: Clocks,
    /// Additional arguments of the planted client. The same client without the mistake gets them too.
    #[serde(default)]
    pub planted_arguments: Vec<String>,
}

/// An ability that not every watch client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// The client follows several kinds at once.
    ManyKinds,
    /// The client writes to the control plane when it handles an object.
    HandlerWrites,
    /// The client lists again from time to time while its watch is healthy.
    PeriodicRelist,
    /// The client requests the initial state as a stream (`sendInitialEvents`).
    StreamingLists,
    /// The client has a setting that makes its handler slow.
    SlowHandler,
}

impl Need {
    /// The ability as a clause that follows the words "a client that".
    pub fn sentence(self) -> &'static str {
        match self {
            Self::ManyKinds => "follows several kinds at once",
            Self::HandlerWrites => "writes to the control plane when it handles an object",
            Self::PeriodicRelist => "lists from time to time while its watch is healthy",
            Self::StreamingLists => "asks for the initial state as a stream",
            Self::SlowHandler => "has a setting that makes its handler slow",
        }
    }
}

/// The intervals that a scenario sets for a client.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Clocks {
    /// The interval at which a client lists again while its watch is healthy.
    pub relist: Option<Span>,
    /// The time that the handler takes for the first, third, fifth, … modification of an object.
    pub handler: Option<Span>,
}

/// The number of a bug in the catalogue, written `4` or `M2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Row(pub String);

impl Row {
    /// The key by which the catalogue sorts bugs: plain numbers come first.
    pub fn order(&self) -> (bool, u32) {
        let digits: String = self.0.chars().filter(char::is_ascii_digit).collect();
        (self.0.starts_with('M'), digits.parse().unwrap_or(u32::MAX))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrText;
        impl Visitor<'_> for NumberOrText {
            type Value = Row;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row of the catalogue, such as `4` or `M2`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Row, E> {
                let digits = text.strip_prefix('M').unwrap_or(text);
                let fine = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                fine.then(|| Row(text.to_owned()))
                    .ok_or_else(|| E::custom(format!("`{text}` is no row: write `4` or `M2`")))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Row, E> {
                Ok(Row(number.to_string()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Row, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

impl JsonSchema for Row {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Row".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A row of the catalogue.",
            "oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^M?[0-9]+$"}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbers_or_growth() {
        let row = |text: &str| serde_saphyr::from_str::<Row>(text);
        assert_eq!(row("4").unwrap(), Row("4".to_owned()));
        assert_eq!(row("M2").unwrap(), Row("M2".to_owned()));
        assert!(row("x4").unwrap_err().to_string().contains("`x4` is no row"));
        let mut rows = [row("M2").unwrap(), row("10").unwrap(), row("9").unwrap()];
        rows.sort_by_key(Row::order);
        assert_eq!(rows.map(|row| row.0), ["9", "10", "M2"]);
    }
}
