//! `controlPlane.http`: the HTTP versions that the subject is offered.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// HTTP versions. Written `1`, `2` or `both`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Http {
    One,
    Two,
    /// HTTP/2 first, the order of kube-apiserver.
    #[default]
    Both,
}

impl Http {
    /// The value in a scenario file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Two => "2",
            Self::Both => "both",
        }
    }

    /// Their names in TLS (RFC 7301), most wanted first.
    pub fn alpn(self) -> &'static [&'static str] {
        match self {
            Self::One => &["http/1.1"],
            Self::Two => &["h2"],
            Self::Both => &["h2", "http/1.1"],
        }
    }
}

impl std::str::FromStr for Http {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1" => Ok(Self::One),
            "2" => Ok(Self::Two),
            "both" => Ok(Self::Both),
            other => Err(format!("`{other}` is no version of HTTP: write 1, 2 or both")),
        }
    }
}

impl Serialize for Http {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One => serializer.serialize_u64(1),
            Self::Two => serializer.serialize_u64(2),
            Self::Both => serializer.serialize_str("both"),
        }
    }
}

impl<'de> Deserialize<'de> for Http {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Version;
        impl Visitor<'_> for Version {
            type Value = Http;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("1, 2 or both")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Http, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Http, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Http, E> {
                u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
                self.visit_u64(number.unsigned_abs())
            }
        }
        deserializer.deserialize_any(Version)
    }
}

impl JsonSchema for Http {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Http".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "Versions of HTTP.", "enum": [1, 2, "both"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        for (text, http) in [("1", Http::One), ("2", Http::Two), ("both", Http::Both), ("'1'", Http::One)] {
            let read: Http = serde_saphyr::from_str(text).unwrap();
            assert_eq!(read, http, "{text}");
            let again: Http = serde_json::from_value(serde_json::to_value(read).unwrap()).unwrap();
            assert_eq!(again, http);
        }
        let error = serde_saphyr::from_str::<Http>("3").unwrap_err().to_string();
        assert!(error.contains("write 1, 2 or both"), "{error}");
    }
}
