//! Reading of configuration files: from text to checked values. Every configuration error is reported at the start of
//! the process.
//!
//! This module owns the error that names file, line, column and the most similar key, and it combines the sections of a
//! file. A caller passes the list of sections: each role has its own section with keys, defaults and reasons. This
//! module opens only the configuration file; the code that uses certificates and keys opens those files.

mod process;
pub mod quantity;
mod section;

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

pub use process::{Health, Kubernetes, Level, Log, LogFormat, Shutdown};
pub use section::{Environment, Kind, Section, kind};
use section::{Keys, Value};

/// The present version of the configuration format. A file without a version counts as version 1.
pub const VERSION: u32 = 1;
/// Maximum number of webhook configurations in one list. A longer list probably names configurations of other programs
/// by mistake.
const WEBHOOKS_MAX: usize = 8;

/// The checked sections of one configuration file.
#[derive(Debug, Clone)]
pub struct Config {
    sections: Vec<(&'static Kind, Option<Box<dyn Value>>)>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to read the configuration {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The text is not a valid configuration.
    #[error("{}{at}: {what}{hint}", path.display())]
    Parse {
        path: PathBuf,
        /// Line and column, when known.
        at: At,
        what: String,
        /// Text about how to fix the error, with a leading separator; empty if there is none.
        hint: String,
    },
    #[error("{}: {key}: {what}", path.display())]
    Value {
        path: PathBuf,
        /// The configuration key with its parents, joined by dots.
        key: String,
        /// The reason for the error, and how to fix it.
        what: String,
    },
}

/// Line and column in the file, both from 1; displays as `:3:7` or as nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At(pub Option<(u64, u64)>);

impl fmt::Display for At {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((line, column)) => write!(out, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

impl Config {
    /// Reads and checks the sections of the file at `path`. Relative paths in the configuration file are relative to
    /// the folder of the file. Environment variables replace settings of the file.
    pub fn load(path: &Path, kinds: &'static [Kind]) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Self::overruled(&text, path, kinds, &Environment(&|name| std::env::var(name).ok()))
    }

    /// Checks `text` as the content of the file `path`.
    pub fn parse(text: &str, path: &Path, kinds: &'static [Kind]) -> Result<Self, Error> {
        Self::overruled(text, path, kinds, &Environment(&|_| None))
    }

    /// Checks `text` as the content of the file `path`, with some settings replaced by those of `environment`.
    pub fn overruled(
        text: &str,
        path: &Path,
        kinds: &'static [Kind],
        environment: &Environment<'_>,
    ) -> Result<Self, Error> {
        let version = if is_empty(text) { None } else { Keys(kinds).read(text, path)? };
        let check = Checker { path, folder: path.parent().unwrap_or(Path::new("")) };
        if let Some(version) = version.filter(|version| *version != VERSION) {
            let what = format!("{version} is not known to this program: it knows {VERSION}");
            return Err(check.value("version", what));
        }
        let section = |kind: &'static Kind| Ok((kind, (kind.parse)(text, &check, environment)?));
        Ok(Self { sections: kinds.iter().map(section).collect::<Result<_, Error>>()? })
    }

    /// The section `S`; `None` if the file has no section `S` and the section has no defaults.
    pub fn find<S: Section>(&self) -> Option<&S> {
        self.sections
            .iter()
            .filter_map(|(_, section)| section.as_deref())
            .find_map(|one| (one as &dyn Any).downcast_ref())
    }

    pub fn has<S: Section>(&self) -> bool {
        self.find::<S>().is_some()
    }

    /// Like [`Self::find`], but returns a mutable reference.
    pub fn find_mut<S: Section>(&mut self) -> Option<&mut S> {
        self.sections
            .iter_mut()
            .filter_map(|(_, section)| section.as_deref_mut())
            .find_map(|one| (one as &mut dyn Any).downcast_mut())
    }

    pub fn of<S: Section>(&self) -> &S {
        self.find().expect("a section with defaults is in every configuration whose kinds name it")
    }

    /// Takes from `fresh` the settings that may change while the process runs; returns the keys that changed.
    pub fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        let pairs = self.sections.iter_mut().zip(&fresh.sections);
        let pairs = pairs.filter_map(|((_, old), (_, new))| Some((old.as_mut()?, new.as_deref()?)));
        pairs.flat_map(|(old, new)| old.take(new)).collect()
    }

    /// The main keys of the sections that differ between two configurations.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let same = |one: &Option<Box<dyn Value>>, two: &Option<Box<dyn Value>>| match (one, two) {
            (Some(one), Some(two)) => one.equals(&**two),
            (one, two) => one.is_none() && two.is_none(),
        };
        let pairs = self.sections.iter().zip(&other.sections);
        pairs.filter(|((_, one), (_, two))| !same(one, two)).map(|((kind, _), _)| kind.keys[0]).collect()
    }

    /// Files that the configuration names and whose content may change while the process runs.
    pub fn files(&self) -> Vec<PathBuf> {
        self.sections.iter().filter_map(|(_, section)| section.as_deref()).flat_map(Value::files).collect()
    }

    /// Adds to `shown` the settings that no example file can contain: settings that are absent by default, and defaults
    /// that depend on other keys.
    pub fn show(&self, shown: &mut serde_json::Map<String, serde_json::Value>) {
        for (kind, section) in &self.sections {
            match section {
                Some(section) => section.show(shown),
                None => kind.keys.iter().for_each(|key| drop(shown.remove(*key))),
            }
        }
    }
}

/// Whether the text of a configuration file has no content. An empty configuration file gives all defaults, although
/// the parser reports a missing document.
pub fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#'))
}

pub type YamlError = serde_saphyr::Error;

pub fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    serde_saphyr::from_str(text)
}

/// Turns the YAML parser's error about `path` into an [`enum@Error`] with position and remedy.
pub fn parse_error(error: &YamlError, path: &Path) -> Error {
    let error = error.without_snippet();
    let at = At(error.location().map(|at| (at.line(), at.column())).filter(|&(line, _)| line > 0));
    let (what, hint) = match error {
        serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
            (format!("unknown key `{field}`"), nearest(field, expected))
        }
        serde_saphyr::Error::SerdeUnknownVariant { variant, expected, .. } => {
            (format!("unknown value `{variant}`"), format!("; use one of {}", expected.join(", ")))
        }
        serde_saphyr::Error::SerdeMissingField { field, .. } => {
            (format!("the key `{field}` is missing"), String::new())
        }
        serde_saphyr::Error::Message { msg, .. } => (msg.clone(), String::new()),
        other => (other.to_string().lines().next().unwrap_or_default().to_owned(), String::new()),
    };
    Error::Parse { path: path.into(), at, what, hint }
}

fn nearest(field: &str, expected: &[&str]) -> String {
    let best = expected.iter().max_by(|a, b| {
        strsim::jaro_winkler(field, a).total_cmp(&strsim::jaro_winkler(field, b)).then_with(|| b.cmp(a))
    });
    match best {
        // Below this similarity a guess confuses more than the plain list.
        Some(best) if strsim::jaro_winkler(field, best) > 0.75 => format!("; did you mean `{best}`?"),
        _ => format!("; the keys here are {}", expected.join(", ")),
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Checker<'a> {
    pub path: &'a Path,
    /// The folder from which relative paths are taken.
    pub folder: &'a Path,
}

impl Checker<'_> {
    pub fn positive(&self, key: &str, span: Option<quantity::Span>, default: Duration) -> Result<Duration, Error> {
        match span {
            None => Ok(default),
            Some(quantity::Span(Duration::ZERO)) => Err(self.value(key, "must be longer than zero")),
            Some(quantity::Span(duration)) => Ok(duration),
        }
    }

    pub fn within(&self, key: &str, value: u64, least: u64, most: u64) -> Result<usize, Error> {
        match usize::try_from(value) {
            Ok(size) if (least..=most).contains(&value) => Ok(size),
            _ => Err(self.value(key, format!("{value} is out of range: {least} to {most}"))),
        }
    }

    pub fn object_name(&self, key: &str, text: Option<&String>) -> Result<(), Error> {
        if text.is_some_and(|text| !is_name(text)) {
            return Err(self.value(key, "is no name: write lower-case letters, digits, dots and dashes"));
        }
        Ok(())
    }

    pub fn webhook_names(&self, key: &str, names: &[String]) -> Result<(), Error> {
        self.within(key, names.len() as u64, 1, WEBHOOKS_MAX as u64)?;
        names.iter().try_for_each(|name| self.object_name(key, Some(name)))
    }

    /// An error about the value of `key`: `what` states the reason and the remedy.
    pub fn value(&self, key: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Value { path: self.path.into(), key: key.into(), what: what.into() }
    }
}

/// Whether `text` has only characters of a DNS subdomain (RFC 1123), so that it is safe in a path. The API server
/// checks the other rules of names.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(inner) && !text.starts_with('.')
}
