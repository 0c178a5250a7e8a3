//! The configuration: text to checked values, everything refused at the start.
//!
//! Owns keys, defaults and their reasons, and the error that names file, line, column and the nearest key. It opens no
//! file but the configuration itself; certificates and keys are read by whoever uses them.

mod defaults;
mod quantity;
mod raw;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use raw::{Level, LogFormat, QueueKey, Resource, Transport};

/// Everything one process needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The webhook listener; absent when this process has none.
    pub admission: Option<Admission>,
    /// The health listener; absent when this process has none.
    pub health: Option<SocketAddr>,
    /// How images are resolved.
    pub resolve: Resolve,
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

/// The webhook listener.
#[derive(Debug, Clone)]
pub struct Admission {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// PEM file of the certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// Largest accepted review, bytes.
    pub max_body_bytes: usize,
    /// Reviews in work at one time; more are shed with 429.
    pub max_in_flight: usize,
}

/// How images are resolved.
#[derive(Debug, Clone)]
pub struct Resolve {
    /// Written images that start with one of these are left alone.
    pub skip_prefixes: Vec<String>,
    /// Longest time for one image.
    pub timeout: Duration,
    /// How long a digest may be reused.
    pub cache_ttl: Duration,
    /// Largest size of the digest cache, bytes.
    pub cache_max_bytes: usize,
    /// Registries that need something other than anonymous HTTPS.
    pub registries: Vec<Registry>,
}

/// One registry.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Host and port as images write it.
    pub host: String,
    /// Host and port that requests for it really go to, such as a mirror inside the cluster. Images keep their spelling.
    pub endpoint: Option<String>,
    /// Whether it speaks HTTP without TLS.
    pub plain_http: bool,
    /// PEM file of the authorities trusted for it, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// User name and the file that holds the password.
    pub login: Option<(String, PathBuf)>,
}

/// The watch.
#[derive(Debug, Clone)]
pub struct Watch {
    /// HTTP/1.1 or HTTP/2.
    pub transport: Transport,
    /// What is watched.
    pub resource: Resource,
    /// Time between two safety relists beside a healthy watch.
    pub relist_interval: Duration,
    /// `timeoutSeconds` of a watch request.
    pub server_timeout: Duration,
    /// Longest time without a byte before a stream is torn down.
    pub silence_limit: Duration,
    /// Upper bound of the first back-off.
    pub backoff_initial: Duration,
    /// Upper bound of any back-off.
    pub backoff_max: Duration,
}

/// The reconciler.
#[derive(Debug, Clone)]
pub struct Reconcile {
    /// What is kept in order.
    pub queue: QueueKey,
    /// Objects worked on at one time.
    pub workers: usize,
    /// Wait before each further attempt.
    pub retries: Vec<Duration>,
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
    /// Reads and checks `path`. Relative paths inside are taken from its folder.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Self::parse(&text, path)
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
    fn check(&self, file: raw::File) -> Result<Config, Error> {
        Ok(Config {
            admission: file.admission.map(|raw| self.admission(raw)).transpose()?,
            health: file.health.map(|health| health.listen),
            resolve: self.resolve(file.resolve)?,
            kubeconfig: file.kubernetes.kubeconfig.map(|path| self.folder.join(path)),
            watch: self.watch(&file.watch)?,
            reconcile: self.reconcile(file.reconcile)?,
            log_format: file.log.format,
            log_level: file.log.level,
            drain: file.shutdown.drain.map_or(defaults::DRAIN, |span| span.0),
        })
    }

    fn admission(&self, raw: raw::Admission) -> Result<Admission, Error> {
        let max_body_bytes = raw.max_body_bytes.map_or(defaults::MAX_BODY_BYTES, |size| size.0);
        let most = defaults::MAX_BODY_BYTES_MOST;
        let max_body_bytes = self.within("admission.maxBodyBytes", max_body_bytes, 1024, most)?;
        let in_flight = raw.max_in_flight.unwrap_or(defaults::MAX_IN_FLIGHT);
        self.within("admission.maxInFlight", in_flight as u64, 1, 100_000)?;
        Ok(Admission {
            listen: raw.listen,
            certificate: self.folder.join(raw.certificate),
            key: self.folder.join(raw.key),
            max_body_bytes,
            max_in_flight: in_flight,
        })
    }

    fn resolve(&self, raw: raw::Resolve) -> Result<Resolve, Error> {
        if raw.skip_prefixes.iter().any(String::is_empty) {
            return Err(self.value("resolve.skipPrefixes", "an empty prefix would skip every image: remove it"));
        }
        let cache_bytes = raw.cache.max_bytes.map_or(defaults::CACHE_BYTES, |size| size.0);
        let mut registries = Vec::with_capacity(raw.registries.len());
        for (index, registry) in raw.registries.into_iter().enumerate() {
            registries.push(self.registry(index, registry)?);
        }
        Ok(Resolve {
            skip_prefixes: raw.skip_prefixes,
            timeout: self.positive("resolve.timeout", raw.timeout, defaults::RESOLVE_TIMEOUT)?,
            cache_ttl: raw.cache.ttl.map_or(defaults::CACHE_TTL, |span| span.0),
            cache_max_bytes: self.within("resolve.cache.maxBytes", cache_bytes, 0, 1 << 32)?,
            registries,
        })
    }

    fn registry(&self, index: usize, raw: raw::Registry) -> Result<Registry, Error> {
        let key = |name: &str| format!("resolve.registries[{index}].{name}");
        if raw.host.is_empty() || raw.host.contains('/') {
            return Err(self.value(key("host"), "write host or host:port, without scheme and path"));
        }
        if raw.endpoint.as_ref().is_some_and(|endpoint| endpoint.is_empty() || endpoint.contains('/')) {
            return Err(self.value(key("endpoint"), "write host or host:port, without scheme and path"));
        }
        if raw.plain_http && raw.ca_file.is_some() {
            return Err(self.value(key("caFile"), "has no effect with plainHttp: remove one of them"));
        }
        let login = match (raw.username, raw.password_file) {
            (Some(name), Some(file)) => Some((name, self.folder.join(file))),
            (None, None) => None,
            (Some(_), None) => return Err(self.value(key("passwordFile"), "is needed beside username")),
            (None, Some(_)) => return Err(self.value(key("username"), "is needed beside passwordFile")),
        };
        let ca_file = raw.ca_file.map(|path| self.folder.join(path));
        Ok(Registry { host: raw.host, endpoint: raw.endpoint, plain_http: raw.plain_http, ca_file, login })
    }

    fn watch(&self, raw: &raw::Watch) -> Result<Watch, Error> {
        let watch = Watch {
            transport: raw.transport,
            resource: raw.resource,
            relist_interval: self.positive("watch.relistInterval", raw.relist_interval, defaults::RELIST_INTERVAL)?,
            server_timeout: self.positive("watch.serverTimeout", raw.server_timeout, defaults::SERVER_TIMEOUT)?,
            silence_limit: self.positive("watch.silenceLimit", raw.silence_limit, defaults::SILENCE_LIMIT)?,
            backoff_initial: self.positive("watch.backoff.initial", raw.backoff.initial, defaults::BACKOFF_INITIAL)?,
            backoff_max: self.positive("watch.backoff.max", raw.backoff.max, defaults::BACKOFF_MAX)?,
        };
        if watch.server_timeout < Duration::from_secs(1) {
            return Err(self.value("watch.serverTimeout", "is sent in whole seconds: write at least 1s"));
        }
        if watch.backoff_initial > watch.backoff_max {
            return Err(self.value("watch.backoff.initial", "is longer than watch.backoff.max"));
        }
        Ok(watch)
    }

    fn reconcile(&self, raw: raw::Reconcile) -> Result<Reconcile, Error> {
        let workers = raw.workers.unwrap_or(defaults::WORKERS);
        self.within("reconcile.workers", workers as u64, 1, 256)?;
        let retries = match raw.retries {
            Some(retries) => retries.into_iter().map(|span| span.0).collect(),
            None => defaults::RETRIES.to_vec(),
        };
        self.within("reconcile.retries", retries.len() as u64, 0, 100)?;
        Ok(Reconcile { queue: raw.queue, workers, retries })
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
