//! The catalogue of faults: the type `Name`, with a value for each fault.
//!
//! Owns how names of faults are written and parsed. `lib.rs` lists the faults beside their modules. The file of each
//! fault owns the fault's meaning and behaviour.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Name;

/// Declares the type of fault names: first the faults that the mock API server injects, then all other faults.
macro_rules! catalogue {
    (played { $($name:ident = $row:path,)* } elsewhere { $($other:ident = $other_row:path,)* }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Name {
            $(#[doc = concat!("See `", stringify!($row), "`.")] $name,)*
            $(#[doc = concat!("See `", stringify!($other_row), "`.")] $other,)*
        }

        impl Name {
            /// All names, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$name,)* $(Self::$other,)*];

            /// All names as scenarios write them.
            pub(crate) const WORDS: &[&str] = &[$($row.row.name,)* $($other_row.name,)*];

            /// The catalogue entry of the fault.
            pub fn row(self) -> &'static Row {
                match self {
                    $(Self::$name => &$row.row,)*
                    $(Self::$other => &$other_row,)*
                }
            }

            /// The function that makes the fault's behaviour, if the mock API server injects the fault.
            pub(crate) fn play(self) -> Option<behaviour::Play> {
                match self {
                    $(Self::$name => Some($row.play),)*
                    $(Self::$other => None,)*
                }
            }
        }
    };
}
pub(crate) use catalogue;

impl Name {
    /// The name as scenarios write it.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<str>::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|name| name.as_str() == word);
        found.copied().ok_or_else(|| de::Error::unknown_variant(&word, Self::WORDS))
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let one =
            |name: &Self| serde_json::json!({"description": name.row().doc, "type": "string", "const": name.as_str()});
        let all: Vec<serde_json::Value> = Self::ALL.iter().map(one).collect();
        json_schema!({"description": "The catalogue of faults.", "oneOf": all})
    }
}

#[cfg(test)]
mod tests;
