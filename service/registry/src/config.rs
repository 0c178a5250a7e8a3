//! The section `resolve` with the lookup of image digests and the settings of registries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use service_core::authority::{Authority, OneName};
use service_core::config::quantity::{Size, Span};
use service_core::config::{Checker, Config, Error, Kind, Section, YamlError, kind, yaml};
use service_core::wire::keeps_secrets;

/// Default time limit for the lookup of one image: half of a webhook's default timeout of 10 s, so that a denial with a
/// reason arrives in time.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Default lifetime of a digest in the cache: long enough for a rollout, short enough that a moved tag is noticed soon.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// Default size of the digest cache: about 15,000 images at some 280 bytes each.
const CACHE_BYTES: u64 = 4 << 20;
/// Default limit of requests to one registry at one time: with it, a hundred images take two round trips.
pub const MAX_CONCURRENT: usize = 64;
/// Maximum number of mirrors of one registry, because all mirrors share the time for one image.
const MIRRORS_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// Images whose text starts with one of these prefixes are not changed.
    pub skip_prefixes: Vec<String>,
    /// Longest time for the lookup of one image.
    pub timeout: Duration,
    /// Time for which a digest in the cache may be used.
    pub cache_ttl: Duration,
    /// Size limit of the digest cache, in bytes.
    pub cache_max_bytes: usize,
    /// Registries that need settings other than anonymous HTTPS.
    pub registries: Vec<Registry>,
    /// Sources of credentials besides the entries of registries.
    pub keychain: Keychain,
    /// The lock file with digests of images; no registry is asked about these images.
    pub lock: Option<PathBuf>,
}

/// Sources of credentials besides the entries of registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keychain {
    /// A docker configuration file, such as `config.json`.
    pub docker_config: Option<PathBuf>,
    /// Whether the pull secrets of pods and their service accounts are read.
    pub pull_secrets: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// The registry's canonical name; images may spell it differently.
    pub host: OneName,
    /// Host and port to which requests for this registry are really sent, such as a mirror in the cluster. The endpoint
    /// does not change the names of images.
    pub endpoint: Option<Authority>,
    /// Whether the registry speaks HTTP without TLS.
    pub plain_http: bool,
    /// PEM file with the authorities that are trusted for the registry instead of the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// The user name for the registry, and the file with the password.
    pub login: Option<(String, PathBuf)>,
    /// Mirrors that are asked before the registry, in the order of the list.
    pub mirrors: Vec<Location>,
    /// Repositories that are served by another registry or path.
    pub rewrite: Vec<Rewrite>,
    /// Maximum number of requests to the registry at one time.
    pub max_concurrent: usize,
    /// Maximum number of requests to the registry per second; `None` means unlimited.
    pub max_per_second: Option<u32>,
    /// Token services that get the registry's credentials and may have internal addresses. A token service without a
    /// port matches every port.
    pub realms: Vec<Authority>,
}

/// A registry and a path at it, written `host[:port][/path]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The registry, spelled as in its entry.
    pub host: Authority,
    /// The prefix of repository names, without `/` at either end; may be empty.
    pub path: String,
}

/// A prefix of repositories, and the location that serves them instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The prefix of repositories in whole path components, without `/` at either end; empty means all repositories.
    pub from: String,
    pub to: Location,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawResolve {
    pub skip_prefixes: Vec<String>,
    pub timeout: Option<Span>,
    pub cache: RawCache,
    pub registries: Vec<RawRegistry>,
    pub keychain: RawKeychain,
    pub lock: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawKeychain {
    pub docker_config: Option<PathBuf>,
    /// Whether the pull secrets of Pods and service accounts are read. The default is false: a webhook should be able
    /// to read a cluster's Secrets only if it needs them.
    pub pull_secrets: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawCache {
    pub ttl: Option<Span>,
    pub max_bytes: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawRegistry {
    pub host: String,
    pub endpoint: Option<String>,
    #[serde(default)]
    pub plain_http: bool,
    pub ca_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    #[serde(default)]
    pub realms: Vec<String>,
    #[serde(default)]
    pub mirrors: Vec<String>,
    #[serde(default)]
    pub rewrite: BTreeMap<String, String>,
    pub max_concurrent: Option<u64>,
    pub max_per_second: Option<u32>,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    resolve: RawResolve,
}

impl Resolve {
    /// The checked section `resolve` of `text`, which must be valid and have no other section.
    #[doc(hidden)]
    pub fn of(text: &str) -> Self {
        const KINDS: &[Kind] = &[kind::<Resolve>()];
        let config = Config::parse(text, Path::new("test.yaml"), KINDS).unwrap_or_else(|error| panic!("{error}"));
        config.of::<Self>().clone()
    }
}

impl Section for Resolve {
    const KEYS: &'static [&'static str] = &["resolve"];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let raw = raw.resolve;
        if raw.skip_prefixes.iter().any(String::is_empty) {
            return Err(check.value("resolve.skipPrefixes", "an empty prefix would skip every image: remove it"));
        }
        if let Some(open) = raw.skip_prefixes.iter().find(|prefix| !prefix.contains('/')) {
            let what = format!("`{open}` would skip `{open}.evil.example/x` as well: write `{open}/`");
            return Err(check.value("resolve.skipPrefixes", what));
        }
        let cache_bytes = raw.cache.max_bytes.map_or(CACHE_BYTES, |size| size.0);
        let mut registries = Vec::<Registry>::with_capacity(raw.registries.len());
        for (index, raw) in raw.registries.into_iter().enumerate() {
            let registry = registry(check, index, raw)?;
            if let Some(first) = registries.iter().position(|other| other.host == registry.host) {
                let what = format!("is the host of resolve.registries[{first}] already: one host has one entry");
                return Err(check.value(format!("resolve.registries[{index}].host"), what));
            }
            registries.push(registry);
        }
        Ok(Some(Self {
            skip_prefixes: raw.skip_prefixes,
            timeout: check.positive("resolve.timeout", raw.timeout, RESOLVE_TIMEOUT)?,
            cache_ttl: raw.cache.ttl.map_or(CACHE_TTL, |span| span.0),
            cache_max_bytes: check.within("resolve.cache.maxBytes", cache_bytes, 0, 1 << 32)?,
            registries,
            keychain: Keychain {
                docker_config: raw.keychain.docker_config.map(|path| check.folder.join(path)),
                pull_secrets: raw.keychain.pull_secrets,
            },
            lock: raw.lock.map(|path| check.folder.join(path)),
        }))
    }

    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        if self == fresh {
            return Vec::new();
        }
        self.clone_from(fresh);
        vec!["resolve"]
    }
}

fn registry(check: &Checker<'_>, index: usize, raw: RawRegistry) -> Result<Registry, Error> {
    let key = |name: &str| format!("resolve.registries[{index}].{name}");
    let authority = |name: &str, text: &str| {
        Authority::parse(text).map_err(|error| {
            check.value(key(name), format!("`{text}`: {error}; write host or host:port, without scheme and path"))
        })
    };
    let host = authority("host", &raw.host)?;
    let endpoint = raw.endpoint.as_deref().map(|text| authority("endpoint", text)).transpose()?;
    if raw.plain_http && raw.ca_file.is_some() {
        return Err(check.value(key("caFile"), "has no effect with plainHttp: remove one of them"));
    }
    let login = match (raw.username, raw.password_file) {
        (Some(name), Some(file)) => Some((name, check.folder.join(file))),
        (None, None) => None,
        (Some(_), None) => return Err(check.value(key("passwordFile"), "is needed beside username")),
        (None, Some(_)) => return Err(check.value(key("username"), "is needed beside passwordFile")),
    };
    let asked = &endpoint.as_ref().unwrap_or(&host).host;
    if login.is_some() && !keeps_secrets(!raw.plain_http, asked) {
        let what = format!(
            "would show the password to everybody on the way to {asked}: remove it, or username and passwordFile"
        );
        return Err(check.value(key("plainHttp"), what));
    }
    let ca_file = raw.ca_file.map(|path| check.folder.join(path));
    let realm = |(at, text): (usize, &String)| authority(&format!("realms[{at}]"), text);
    let realms = raw.realms.iter().enumerate().map(realm).collect::<Result<_, _>>()?;
    let host = if raw.plain_http { OneName::of_plain(&host) } else { OneName::of(&host) };
    let mirrors = mirrors(check, &host, &raw.mirrors, &key)?;
    let mut rewrite = Vec::with_capacity(raw.rewrite.len());
    for (from, to) in &raw.rewrite {
        let key = || format!("{}.`{from}`", key("rewrite"));
        let from = path(from).ok_or_else(|| check.value(key(), "is not the beginning of a repository's name"))?;
        rewrite.push(Rewrite { from, to: place(check, &key, to)? });
    }
    if let Some(one) = rewrite.windows(2).find(|pair| pair[0].from == pair[1].from) {
        return Err(check.value(key("rewrite"), format!("says two things about `{}`: keep one", one[0].from)));
    }
    let most = MAX_CONCURRENT as u64;
    let max_concurrent = check.within(&key("maxConcurrent"), raw.max_concurrent.unwrap_or(most), 1, most)?;
    if raw.max_per_second == Some(0) {
        return Err(check.value(key("maxPerSecond"), "would let no question through: leave it out for no limit"));
    }
    let (plain_http, max_per_second) = (raw.plain_http, raw.max_per_second);
    Ok(Registry {
        host,
        endpoint,
        plain_http,
        ca_file,
        login,
        mirrors,
        rewrite,
        max_concurrent,
        max_per_second,
        realms,
    })
}

fn mirrors(
    check: &Checker<'_>,
    host: &OneName,
    raw: &[String],
    key: &dyn Fn(&str) -> String,
) -> Result<Vec<Location>, Error> {
    if raw.len() > MIRRORS_MAX {
        return Err(check.value(key("mirrors"), format!("are too many: at most {MIRRORS_MAX}")));
    }
    let mirror = |(at, text): (usize, &String)| {
        let key = || key(&format!("mirrors[{at}]"));
        let place = place(check, &key, text)?;
        let itself = place.path.is_empty() && [OneName::of(&place.host), OneName::of_plain(&place.host)].contains(host);
        if itself { Err(check.value(key(), "is the registry itself: remove it")) } else { Ok(place) }
    };
    raw.iter().enumerate().map(mirror).collect()
}

fn place(check: &Checker<'_>, key: &dyn Fn() -> String, text: &str) -> Result<Location, Error> {
    let (host, rest) = text.split_once('/').unwrap_or((text, ""));
    let host = Authority::parse(host)
        .map_err(|error| check.value(key(), format!("`{text}`: {error}; write host, host:port or host:port/path")))?;
    let path = path(rest).ok_or_else(|| {
        check.value(key(), format!("`{text}`: what follows the host is not the beginning of a repository's name"))
    })?;
    Ok(Location { host, path })
}

/// Checks the path components of a repository name; the name must not end with `/`.
fn path(text: &str) -> Option<String> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let part = |part: &str| part.starts_with(|char: char| char.is_ascii_alphanumeric()) && part.bytes().all(allowed);
    (text.is_empty() || text.split('/').all(part)).then(|| text.to_owned())
}
