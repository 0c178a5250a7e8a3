//! The section `resolve`: how images become digests, and the registries that need more than anonymous HTTPS.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::quantity::{Size, Span};
use super::{Checker, Error};
use crate::authority::Authority;

/// Half of the 10 s that a webhook gets by default, so that a denial with a reason still arrives in time.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Long enough to serve a rollout from memory, short enough that a moved tag is noticed soon.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// About 15,000 images at some 280 bytes each.
const CACHE_BYTES: u64 = 4 << 20;

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
    pub host: Authority,
    /// Host and port that requests for it really go to, such as a mirror inside the cluster. Images keep their spelling.
    pub endpoint: Option<Authority>,
    /// Whether it speaks HTTP without TLS.
    pub plain_http: bool,
    /// PEM file of the authorities trusted for it, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// User name and the file that holds the password.
    pub login: Option<(String, PathBuf)>,
    /// Hosts of token services that get the credentials and may be inside; without a port, at any port.
    pub realms: Vec<Authority>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawResolve {
    pub skip_prefixes: Vec<String>,
    pub timeout: Option<Span>,
    pub cache: RawCache,
    pub registries: Vec<RawRegistry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RawCache {
    pub ttl: Option<Span>,
    pub max_bytes: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRegistry {
    pub host: String,
    pub endpoint: Option<String>,
    #[serde(default)]
    pub plain_http: bool,
    pub ca_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    #[serde(default)]
    pub realms: Vec<String>,
}

impl Checker<'_> {
    pub(super) fn resolve(&self, raw: RawResolve) -> Result<Resolve, Error> {
        if raw.skip_prefixes.iter().any(String::is_empty) {
            return Err(self.value("resolve.skipPrefixes", "an empty prefix would skip every image: remove it"));
        }
        let cache_bytes = raw.cache.max_bytes.map_or(CACHE_BYTES, |size| size.0);
        let mut registries = Vec::<Registry>::with_capacity(raw.registries.len());
        for (index, registry) in raw.registries.into_iter().enumerate() {
            let registry = self.registry(index, registry)?;
            if let Some(first) = registries.iter().position(|other| other.host == registry.host) {
                let what = format!("is the host of resolve.registries[{first}] already: one host has one entry");
                return Err(self.value(format!("resolve.registries[{index}].host"), what));
            }
            registries.push(registry);
        }
        Ok(Resolve {
            skip_prefixes: raw.skip_prefixes,
            timeout: self.positive("resolve.timeout", raw.timeout, RESOLVE_TIMEOUT)?,
            cache_ttl: raw.cache.ttl.map_or(CACHE_TTL, |span| span.0),
            cache_max_bytes: self.within("resolve.cache.maxBytes", cache_bytes, 0, 1 << 32)?,
            registries,
        })
    }

    fn registry(&self, index: usize, raw: RawRegistry) -> Result<Registry, Error> {
        let key = |name: &str| format!("resolve.registries[{index}].{name}");
        let place = |name: &str, text: &str| {
            Authority::parse(text).map_err(|error| {
                self.value(key(name), format!("`{text}`: {error}; write host or host:port, without scheme and path"))
            })
        };
        let host = place("host", &raw.host)?;
        let endpoint = raw.endpoint.as_deref().map(|text| place("endpoint", text)).transpose()?;
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
        let realm = |(at, text): (usize, &String)| place(&format!("realms[{at}]"), text);
        let realms = raw.realms.iter().enumerate().map(realm).collect::<Result<_, _>>()?;
        let host = canonical(host, raw.plain_http);
        Ok(Registry { host, endpoint, plain_http: raw.plain_http, ca_file, login, realms })
    }
}

/// One spelling for a host: Docker Hub has three names, and the scheme's own port need not be written.
pub fn canonical(mut host: Authority, plain_http: bool) -> Authority {
    if matches!(host.host.as_str(), "index.docker.io" | "registry-1.docker.io") {
        "docker.io".clone_into(&mut host.host);
    }
    host.port = host.port.filter(|&port| port != if plain_http { 80 } else { 443 });
    host
}
