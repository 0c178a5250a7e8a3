//! Durations, sizes and rates as people write them in scenario files (`15s`, `64MiB`, `200/s`), and the ports of
//! addresses.
//!
//! Every quantity has a unit. A bare number is an error, because a reader cannot tell whether `30` means seconds or
//! milliseconds. The error shows a correct example. This crate owns how quantities are written, and does not know their
//! uses.

mod address;
mod bytes;
mod rate;
mod span;

pub use address::{AddressError, masked, port};
pub use bytes::{Bytes, Growth, Throughput};
pub use rate::Rate;
pub use span::Span;

/// Why a text is no quantity. The message continues the words "failed to parse", and contains the text and a correct
/// example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("`{text}` has no unit: write for example `{example}`")]
    NoUnit {
        text: String,
        /// A correct example of the quantity.
        example: &'static str,
    },
    /// The quantity has no such unit.
    #[error("`{text}` has the unknown unit `{unit}`: use one of {known}, for example `{example}`")]
    UnknownUnit {
        text: String,
        unit: String,
        /// The units of the quantity.
        known: &'static str,
        /// A correct example of the quantity.
        example: &'static str,
    },
    #[error("`{text}` is not a quantity: write a number and a unit, for example `{example}`")]
    NotANumber {
        text: String,
        /// A correct example of the quantity.
        example: &'static str,
    },
    /// The number is larger than the largest accepted value.
    #[error("`{text}` is too large: the most is {most}")]
    TooLarge {
        text: String,
        /// The largest accepted value, as text.
        most: &'static str,
    },
}

/// Splits `1.5s` into 1.5 and `s`. An empty unit is an error; see [`Error::NoUnit`].
fn split<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), Error> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number: f64 = number.parse().map_err(|_| Error::NotANumber { text: text.to_owned(), example })?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(Error::NoUnit { text: text.to_owned(), example });
    }
    Ok((number, unit))
}

/// Implements the serde and schema traits of a quantity with its `FromStr` and `Display`.
macro_rules! spelled {
    ($type:ident, $expecting:literal, $pattern:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "description": $expecting, "pattern": $pattern})
            }
        }
    };
}
use spelled;
