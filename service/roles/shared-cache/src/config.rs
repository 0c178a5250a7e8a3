//! The section `sharedCache`: the Redis server, and the credentials for it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use service_core::authority::Authority;
use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Kind, Section, YamlError, kind, yaml};
use service_core::wire::keeps_secrets;

pub const KINDS: &[Kind] = &[kind::<SharedCache>()];
/// Default time limit of an answer from Redis. A near Redis answers in less than a millisecond. A longer limit would
/// gain little, because some registries answer in less than 50 ms.
const TIMEOUT: Duration = Duration::from_millis(50);
/// Longest configurable time limit of an answer from Redis, because a review has only seconds.
const TIMEOUT_MAX: Duration = Duration::from_secs(5);
const PORT: u16 = 6379;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCache {
    pub host: String,
    pub port: u16,
    /// Whether the connection to Redis uses no TLS.
    pub plain: bool,
    /// PEM file with the authorities that are trusted for the server instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The name expected in the server's certificate; `None` means the server's host name.
    pub server_name: Option<String>,
    /// The user in Redis' access control list.
    pub user: Option<String>,
    pub password_file: Option<PathBuf>,
    /// The file with the secret key that authenticates stored values. All processes of a service must have the same
    /// key.
    pub key_file: PathBuf,
    /// Time limit of an answer from Redis.
    pub timeout: Duration,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawFile {
    shared_cache: Option<Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Raw {
    address: Option<String>,
    plain: bool,
    ca_file: Option<PathBuf>,
    server_name: Option<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    timeout: Option<Span>,
}

impl Section for SharedCache {
    const KEYS: &'static [&'static str] = &["sharedCache"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let Some(raw) = raw.shared_cache else { return Ok(None) };
        let missing = |key: &str, how: &str| check.value(format!("sharedCache.{key}"), format!("is missing: {how}"));
        let address = raw.address.ok_or_else(|| missing("address", "write the host and port of Redis"))?;
        let authority = Authority::parse(&address)
            .map_err(|error| check.value("sharedCache.address", format!("{error}: write it as redis.example:6379")))?;
        let key_file = raw.key_file.ok_or_else(|| {
            missing("keyFile", "write a file with a secret that only the processes of this service have")
        })?;
        if raw.plain && (raw.ca_file.is_some() || raw.server_name.is_some()) {
            return Err(check.value("sharedCache.plain", "stands beside keys of TLS: remove it or them"));
        }
        if raw.user.is_some() && raw.password_file.is_none() {
            return Err(missing("passwordFile", "a `user` has one"));
        }
        if raw.password_file.is_some() && !keeps_secrets(!raw.plain, &authority.host) {
            let what = format!("would show the password to everybody on the way to {}: remove it", authority.host);
            return Err(check.value("sharedCache.plain", what));
        }
        let timeout = check.positive("sharedCache.timeout", raw.timeout, TIMEOUT)?;
        if timeout > TIMEOUT_MAX {
            return Err(check.value("sharedCache.timeout", "is longer than 5s, which is what an image has in all"));
        }
        Ok(Some(Self {
            host: authority.host,
            port: authority.port.unwrap_or(PORT),
            plain: raw.plain,
            ca_file: raw.ca_file.map(|path| check.folder.join(path)),
            server_name: raw.server_name,
            user: raw.user,
            password_file: raw.password_file.map(|path| check.folder.join(path)),
            key_file: check.folder.join(key_file),
            timeout,
        }))
    }
}
