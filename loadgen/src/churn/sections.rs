//! [`Sections`]: one section of churn, or a list of them.

use std::fmt;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Config, Error};

/// More make a plan that nobody can read.
const SECTIONS_MAX: usize = 20;

/// What is churned: nothing, one resource, or several at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sections(pub Vec<Config>);

impl Sections {
    /// Refuses what makes no sense, naming the key, and of several sections which one.
    pub fn check(&self) -> Result<(), Error> {
        if self.len() > SECTIONS_MAX {
            let problem = format!("has {} sections: write at most {SECTIONS_MAX}", self.len());
            return Err(Error::Sections { problem });
        }
        self.iter().enumerate().try_for_each(|(at, config)| config.check().map_err(|error| self.of(at, error)))
    }

    /// The error of one section.
    pub(super) fn of(&self, at: usize, error: Error) -> Error {
        if self.len() == 1 { error } else { Error::Section { number: at + 1, source: Box::new(error) } }
    }
}

impl Deref for Sections {
    type Target = [Config];
    fn deref(&self) -> &[Config] {
        &self.0
    }
}

impl DerefMut for Sections {
    fn deref_mut(&mut self) -> &mut [Config] {
        &mut self.0
    }
}

impl Serialize for Sections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [] => serializer.serialize_none(),
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Sections;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a section of churn such as `{resource: v1/configmaps, population: 50, rate: 10/s}`, or a list of them")
            }
            fn visit_unit<E: serde::de::Error>(self) -> Result<Sections, E> {
                Ok(Sections::default())
            }
            fn visit_none<E: serde::de::Error>(self) -> Result<Sections, E> {
                Ok(Sections::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sections, A::Error> {
                Config::deserialize(MapAccessDeserializer::new(map)).map(|one| Sections(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sections, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(Sections(all))
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

impl JsonSchema for Sections {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ChurnSections".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Config>();
        json_schema!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": SECTIONS_MAX}, {"type": "null"}]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"resource": "v1/configmaps", "population": 5, "rate": "1/s"}"#;

    #[test]
    fn one_several_or_none() {
        let read = |text: &str| serde_json::from_str::<Sections>(text);
        assert_eq!(read(ONE).unwrap().len(), 1);
        assert_eq!(read(&format!("[{ONE}, {ONE}]")).unwrap().len(), 2);
        assert_eq!(read("null").unwrap(), Sections::default());
        for text in [ONE.to_owned(), format!("[{ONE},{ONE}]"), "null".to_owned()] {
            let sections = read(&text).unwrap();
            assert_eq!(read(&serde_json::to_string(&sections).unwrap()).unwrap(), sections);
        }
        assert!(read(r#"{"resourc": 1}"#).unwrap_err().to_string().contains("unknown field `resourc`"));
        assert!(read("3").unwrap_err().to_string().contains("a section of churn such as"));
    }

    #[test]
    fn an_error_names_the_section_where_there_are_several() {
        let mut sections: Sections = serde_json::from_str(&format!("[{ONE}, {ONE}]")).unwrap();
        sections.check().unwrap();
        sections[1].population = 0;
        let error = sections.check().unwrap_err().to_string();
        assert_eq!(error, "section 2: churn.population: is 0: write 1 to 200000");
        sections.0.remove(0);
        assert!(sections.check().unwrap_err().to_string().starts_with("churn.population: "));
    }
}
