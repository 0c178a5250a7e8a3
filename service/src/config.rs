//! The configuration: text to checked values, everything refused at the start.
//!
//! Owns keys, defaults and their reasons, and the error that names file, line, column and the nearest key. It opens no
//! file but the configuration itself and the policies that it names; certificates and keys are read by whoever uses them.

mod admission;
mod documents;
mod environment;
mod import;
mod migrate;
mod own;
mod policy;
mod quantity;
mod raw;
mod reconcile;
mod registration;
mod replicas;
mod resolve;
mod show;
mod validators;
mod watch;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use admission::Admission;
pub use import::{Imported, connaisseur};
pub use migrate::migrate;
pub use own::OwnCertificates;
pub use policy::{
    Action, Attestation, Mode, Namespaces, NoMatch, OnFailure, Pattern, Policy, Recheck, Resources, Roots, Rule,
    Verdicts, With,
};
pub use raw::{Level, LogFormat};
pub use reconcile::{Lease, QueueKey, Reconcile};
pub use registration::Registration;
pub use replicas::{Allow, Bucket, Rate, Replicas};
pub use resolve::{Keychain, MAX_CONCURRENT, Place, Registry, Resolve, Rewrite, canonical};
pub use show::show;
pub use validators::{Constraint, Cosign, Kind as ValidatorKind, Root, Text, TrustRoot, Validator};
pub use watch::{Resource, Transport, Watch};

/// The version of the file's keys. A file without one is of the first.
pub const VERSION: u32 = 1;

/// Inside the 30 s that Kubernetes gives a terminating pod.
const DRAIN: Duration = Duration::from_secs(20);

/// Everything one process needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The webhook listener; absent when this process has none.
    pub admission: Option<Admission>,
    /// The API over Deployments; absent when this process has none.
    pub replicas: Option<Replicas>,
    /// The health listener; absent when this process has none.
    pub health: Option<SocketAddr>,
    /// How images are resolved.
    pub resolve: Resolve,
    /// Who says whether an image may run.
    pub validators: Vec<Validator>,
    /// What is done with which image.
    pub policy: Policy,
    /// Files and folders that hold policies of their own, and the files of these folders.
    pub documents: Vec<PathBuf>,
    /// Path of a kubeconfig; when absent `$KUBECONFIG`, then the files of a pod.
    pub kubeconfig: Option<PathBuf>,
    /// The watch.
    pub watch: Watch,
    /// The reconciler.
    pub reconcile: Reconcile,
    /// How log lines look.
    pub log_format: LogFormat,
    /// The least severe line that is written.
    pub log_level: Level,
    /// Longest time between the signal and the exit.
    pub drain: Duration,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("failed to read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not a configuration.
    #[error("{}{at}: {what}{hint}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line and column, when known.
        at: At,
        /// What is wrong.
        what: String,
        /// What to write instead, starting with a separator; empty when there is nothing to say.
        hint: String,
    },
    /// A value that cannot be used.
    #[error("{}: {key}: {what}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key, dotted.
        key: String,
        /// What is wrong and what to write instead.
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
    /// Reads and checks `path`. Relative paths inside are taken from its folder. What the environment says counts before it.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Self::parse(&text, path)?.overruled(&|name| std::env::var(name).ok())
    }

    /// Checks `text` as if it had been read from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        // An empty file is a valid configuration of defaults; the parser calls it a missing document.
        let file: raw::File = if text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
            raw::File::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| parse_error(&error, path))?
        };
        Checker { path, folder: path.parent().unwrap_or(Path::new("")) }.check(file)
    }
}

fn parse_error(error: &serde_saphyr::Error, path: &Path) -> Error {
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

struct Checker<'a> {
    path: &'a Path,
    folder: &'a Path,
}

impl Checker<'_> {
    /// Checks the file.
    fn check(&self, file: raw::File) -> Result<Config, Error> {
        if let Some(version) = file.version.filter(|version| *version != VERSION) {
            let what = format!("{version} is not known to this program: it knows {VERSION}");
            return Err(self.value("version", what));
        }
        let mut validators = self.validators(file.validators)?;
        let mut paths: Vec<PathBuf> = file.policy.documents.iter().map(|path| self.folder.join(path)).collect();
        let documents = self.documents(&paths)?;
        paths.extend(documents.iter().map(|document| document.source.clone()));
        let policy = self.policy(file.policy, documents, &mut validators)?;
        Ok(Config {
            admission: file.admission.map(|raw| self.admission(raw)).transpose()?,
            replicas: file.replicas.map(|raw| self.replicas(raw)).transpose()?,
            health: file.health.map(|health| health.listen),
            resolve: self.resolve(file.resolve)?,
            validators,
            policy,
            documents: paths,
            kubeconfig: file.kubernetes.kubeconfig.map(|path| self.folder.join(path)),
            watch: self.watch(&file.watch)?,
            reconcile: self.reconcile(file.reconcile)?,
            log_format: file.log.format,
            log_level: file.log.level,
            drain: file.shutdown.drain.map_or(DRAIN, |span| span.0),
        })
    }

    fn positive(&self, key: &str, span: Option<quantity::Span>, default: Duration) -> Result<Duration, Error> {
        match span {
            None => Ok(default),
            Some(quantity::Span(Duration::ZERO)) => Err(self.value(key, "must be longer than zero")),
            Some(quantity::Span(duration)) => Ok(duration),
        }
    }

    fn within(&self, key: &str, value: u64, least: u64, most: u64) -> Result<usize, Error> {
        match usize::try_from(value) {
            Ok(size) if (least..=most).contains(&value) => Ok(size),
            _ => Err(self.value(key, format!("{value} is out of range: {least} to {most}"))),
        }
    }

    fn value(&self, key: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Value { path: self.path.into(), key: key.into(), what: what.into() }
    }
}

#[cfg(test)]
mod tests;
