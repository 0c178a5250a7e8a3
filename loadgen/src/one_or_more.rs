//! Configuration keys that accept one value, a list of values, or nothing.

/// Implements reading and writing of `$list(Vec<$one>)`: a list of one value is written as the value, and an empty list
/// as nothing.
#[macro_export]
macro_rules! one_or_more {
    ($list:ident of $one:ty, at most $most:expr, as $schema:literal, $expected:literal) => {
        impl std::ops::Deref for $list {
            type Target = [$one];
            fn deref(&self) -> &[$one] {
                &self.0
            }
        }

        impl serde::Serialize for $list {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match &self.0[..] {
                    [] => serializer.serialize_none(),
                    [one] => one.serialize(serializer),
                    several => several.serialize(serializer),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $list {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::Deserialize as _;
                use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
                struct OneOrMore;
                impl<'de> serde::de::Visitor<'de> for OneOrMore {
                    type Value = $list;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_unit<E: serde::de::Error>(self) -> Result<$list, E> {
                        Ok($list(Vec::new()))
                    }
                    fn visit_none<E: serde::de::Error>(self) -> Result<$list, E> {
                        Ok($list(Vec::new()))
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$list, A::Error> {
                        <$one>::deserialize(MapAccessDeserializer::new(map)).map(|one| $list(vec![one]))
                    }
                    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<$list, A::Error> {
                        Vec::deserialize(SeqAccessDeserializer::new(list)).map($list)
                    }
                }
                deserializer.deserialize_any(OneOrMore)
            }
        }

        impl schemars::JsonSchema for $list {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema.into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let one = generator.subschema_for::<$one>();
                schemars::json_schema!({
                    "anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": $most}, {"type": "null"}]
                })
            }
        }
    };
}
