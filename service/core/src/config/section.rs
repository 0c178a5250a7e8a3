//! The interface of a configuration section, and operations on sections of any type.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Map;

use super::{Checker, Error, YamlError, is_empty, nearest, parse_error};

/// A section of the file: keys that belong together, with defaults and checks.
pub trait Section: Any + fmt::Debug + Clone + PartialEq + Send + Sync + Sized {
    /// The top-level keys of the section in the file. Messages use the first key as the section's name.
    const KEYS: &'static [&'static str];
    /// Keys of the section that older files use, each with the text to write instead.
    const FORMER: &'static [(&'static str, &'static str)] = &[];
    /// The struct that is parsed from YAML. The struct has the section's keys, and unknown keys are refused.
    type Raw: DeserializeOwned + Default;

    /// Parses the section: `yaml(text)`. Each section implements this function itself, because a default implementation
    /// would be compiled again in each crate that lists sections. Each compiled copy of the YAML reader costs a
    /// megabyte and twenty seconds of build time.
    fn read(text: &str) -> Result<Self::Raw, YamlError>;

    /// Replaces settings in `raw` with those of the environment, before the checks, so that every setting is checked.
    fn overrule(raw: &mut Self::Raw, environment: &Environment<'_>) -> Result<(), Error> {
        let _ = (raw, environment);
        Ok(())
    }

    /// The checked section; `None` if the key is absent and the section has no defaults.
    fn check(raw: Self::Raw, check: &Checker<'_>) -> Result<Option<Self>, Error>;

    /// Takes from `fresh` the settings that may change while the process runs; returns the keys that changed.
    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        let _ = fresh;
        Vec::new()
    }

    /// Files that the section names and whose content may change while the process runs.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Adds settings to `shown` that no example file can contain.
    fn show(&self, shown: &mut Map<String, serde_json::Value>) {
        let _ = shown;
    }
}

/// A section of any type, behind one interface (type erasure).
pub(super) trait Value: Any + fmt::Debug + Send + Sync {
    fn take(&mut self, fresh: &dyn Value) -> Vec<&'static str>;
    fn files(&self) -> Vec<PathBuf>;
    fn show(&self, shown: &mut Map<String, serde_json::Value>);
    fn equals(&self, other: &dyn Value) -> bool;
    fn boxed(&self) -> Box<dyn Value>;
}

impl Clone for Box<dyn Value> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

impl<S: Section> Value for S {
    fn take(&mut self, fresh: &dyn Value) -> Vec<&'static str> {
        (fresh as &dyn Any).downcast_ref().map_or_else(Vec::new, |fresh| Section::take(self, fresh))
    }

    fn files(&self) -> Vec<PathBuf> {
        Section::files(self)
    }

    fn show(&self, shown: &mut Map<String, serde_json::Value>) {
        Section::show(self, shown);
    }

    fn equals(&self, other: &dyn Value) -> bool {
        (other as &dyn Any).downcast_ref::<S>() == Some(self)
    }

    fn boxed(&self) -> Box<dyn Value> {
        Box::new(self.clone())
    }
}

/// A type of section, and the function that reads it.
#[derive(Clone, Copy)]
pub struct Kind {
    pub(super) keys: &'static [&'static str],
    former: &'static [(&'static str, &'static str)],
    pub(super) parse: Parse,
}

type Parse = fn(&str, &Checker<'_>, &Environment<'_>) -> Result<Option<Box<dyn Value>>, Error>;

impl fmt::Debug for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.keys.join(", "))
    }
}

impl Kind {
    /// Whether the top-level key `key` belongs to this section.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

pub const fn kind<S: Section>() -> Kind {
    fn parse<S: Section>(
        text: &str,
        check: &Checker<'_>,
        environment: &Environment<'_>,
    ) -> Result<Option<Box<dyn Value>>, Error> {
        let mut raw = if is_empty(text) {
            S::Raw::default()
        } else {
            S::read(text).map_err(|error| parse_error(&error, check.path))?
        };
        S::overrule(&mut raw, environment)?;
        Ok(S::check(raw, check)?.map(|section| Box::new(section) as Box<dyn Value>))
    }
    Kind { keys: S::KEYS, former: S::FORMER, parse: parse::<S> }
}

/// Checks the top-level keys of a file.
#[derive(Clone, Copy)]
pub(super) struct Keys(pub &'static [Kind]);

impl Keys {
    /// Returns the file's format version if every top-level key is known.
    pub fn read(self, text: &str, path: &Path) -> Result<Option<u32>, Error> {
        let version = serde_saphyr::with_deserializer_from_str(text, |file| self.deserialize(file));
        version.map_err(|error| match (parse_error(&error, path), self.remedy(&error)) {
            (Error::Parse { path, at, what, .. }, Some(hint)) => Error::Parse { path, at, what, hint },
            (error, _) => error,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Keys {
    type Value = Option<u32>;

    fn deserialize<D: Deserializer<'de>>(self, file: D) -> Result<Self::Value, D::Error> {
        file.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Option<u32>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of sections")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut file: A) -> Result<Self::Value, A::Error> {
        let mut version = None;
        while let Some(key) = file.next_key::<String>()? {
            if key == "version" {
                version = file.next_value()?;
            } else if self.0.iter().any(|kind| kind.has(&key)) {
                file.next_value::<IgnoredAny>()?;
            } else {
                // The reader adds the known keys, which serde wants to live for ever.
                return Err(A::Error::unknown_field(&key, &[]));
            }
        }
        Ok(version)
    }
}

impl Keys {
    /// How to fix an unknown key, with a leading separator; `None` for other errors.
    fn remedy(self, error: &YamlError) -> Option<String> {
        let serde_saphyr::Error::SerdeUnknownField { field, expected, .. } = error.without_snippet() else {
            return None;
        };
        if !expected.is_empty() {
            return None;
        }
        if let Some((_, now)) = self.0.iter().flat_map(|kind| kind.former).find(|(former, _)| former == field) {
            return Some(format!("; it is now `{now}`"));
        }
        let keys = std::iter::once("version").chain(self.0.iter().flat_map(|kind| kind.keys.iter().copied()));
        Some(nearest(field, &keys.collect::<Vec<_>>()))
    }
}

/// Settings from environment variables, which replace settings of the file. Variables are read by a function, which
/// tests replace by their own.
pub struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<String>);

/// Prefix of every environment variable that replaces a setting. Without the prefix, a name such as `LOG_LEVEL` could
/// belong to another program.
const PREFIX: &str = "LONGHAUL_";

impl Environment<'_> {
    /// The value of the variable with this name, if the variable is set and not empty.
    pub fn read(&self, name: &str) -> Option<String> {
        (self.0)(&format!("{PREFIX}{name}")).filter(|value| !value.is_empty())
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        let parse = |value: String| match value.as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(Self::wrong(name, other, "true, false")),
        };
        self.read(name).map(parse).transpose()
    }

    pub fn wrong(name: &str, value: &str, known: &str) -> Error {
        Error::Value {
            path: "the environment".into(),
            key: format!("{PREFIX}{name}"),
            what: format!("unknown value `{value}`; use one of {known}"),
        }
    }
}
