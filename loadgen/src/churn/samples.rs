//! [`Sample`]: one of several templates of objects, and the expected answer of the kind's webhooks.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One of several templates: only the name of its file, or a mapping.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// A YAML file beside the scenario file. The name of the file is also used in messages.
    pub file: Option<String>,
    /// The object itself, or the contents of the file.
    pub object: Option<Value>,
    /// The expected answer of the webhooks.
    #[serde(skip_serializing_if = "Expect::is_allowed")]
    pub expect: Expect,
}

/// The webhooks' expected answer when an object is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Expect {
    /// The object must be allowed, and is used like objects of all other templates.
    #[default]
    Allowed,
    /// The object must be refused.
    Denied,
}

impl Expect {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_allowed(&self) -> bool {
        *self == Self::Allowed
    }
}

/// A template written as a mapping.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Mapping {
    /// A YAML file beside the scenario file.
    #[serde(default)]
    file: Option<String>,
    /// The object itself, as in `template`.
    #[serde(default)]
    object: Option<Value>,
    /// `denied` means that the webhooks must refuse the object. If webhooks allow the object, that is a wrong answer,
    /// and the object is deleted again. Default: `allowed`.
    #[serde(default)]
    expect: Expect,
}

impl<'de> Deserialize<'de> for Sample {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMapping;
        impl<'de> Visitor<'de> for NameOrMapping {
            type Value = Sample;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or a mapping such as `{file: bad.yaml, expect: denied}`")
            }
            fn visit_str<E: serde::de::Error>(self, file: &str) -> Result<Sample, E> {
                Ok(Sample { file: Some(file.to_owned()), ..Sample::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sample, A::Error> {
                let Mapping { file, object, expect } = Mapping::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Sample { file, object, expect })
            }
        }
        deserializer.deserialize_any(NameOrMapping)
    }
}

impl JsonSchema for Sample {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ChurnTemplate".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mapping = generator.subschema_for::<Mapping>();
        json_schema!({"anyOf": [{"type": "string"}, mapping]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_a_mapping() {
        let read = |text: &str| serde_json::from_str::<Sample>(text);
        assert_eq!(read(r#""good.yaml""#).unwrap().file.unwrap(), "good.yaml");
        let bad = read(r#"{"file": "bad.yaml", "expect": "denied"}"#).unwrap();
        assert_eq!(bad.expect, Expect::Denied);
        assert_eq!(read(&serde_json::to_string(&bad).unwrap()).unwrap(), bad);
        assert!(read(r#"{"fil": "x"}"#).unwrap_err().to_string().contains("unknown field `fil`"));
        assert!(read("3").unwrap_err().to_string().contains("the name of a file, or a mapping such as"));
    }
}
