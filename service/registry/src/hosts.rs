//! The registries that the client may contact: address, trust and credentials of each host.
//!
//! This module owns one pooled client for each host, made at first use and limited in number. The module also decides
//! about other hosts that a registry names: the permitted addresses of such a host, and whether it gets the registry's
//! credentials. Rotated authorities and passwords take effect without a restart.

mod files;
mod limiters;
mod pool;
mod route;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;

use super::keychain::{Credential, Proof};
use super::limiter::Limiter;
use super::metrics::Metrics;
use super::url::Url;
use super::wanted::Wanted;
use crate::config;
use crate::reference::FullName;
use crate::verdicts::{Class, Failure};
use files::{Authorities, DockerConfig, LockFile, Look, Password};
use limiters::Limiters;
use pool::{Key, Pool};
pub use route::Stop;
use service_core::authority::{Authority, OneName};
use service_core::share::Share;
use service_core::wire::{self, Client, Origin, Proxies, Reach, Trust, is_inside, keeps_secrets};

/// Docker Hub's canonical name, and the host that serves Docker Hub's images.
const DOCKER_HUB: (&str, &str) = ("index.docker.io", "registry-1.docker.io");
/// Registries whose token service has another known host, with that host.
const KNOWN_REALMS: [(&str, &str); 2] = [(DOCKER_HUB.0, "auth.docker.io"), ("registry.gitlab.com", "gitlab.com")];

/// Why the registries of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {}: {what}", path.display())]
pub struct HostsError {
    key: String,
    path: PathBuf,
    what: String,
}

struct Entry {
    index: usize,
    settings: config::Registry,
    authorities: Option<Authorities>,
    password: Password,
}

pub struct Hosts {
    entries: BTreeMap<OneName, Entry>,
    docker_config: Option<DockerConfig>,
    lock: Option<LockFile>,
    /// TLS settings with the system's authorities. The settings are made at first use, because they cost more than a
    /// megabyte.
    system_tls: OnceLock<Arc<ClientConfig>>,
    pool: Pool,
    limiters: Limiters,
    metrics: Arc<Metrics>,
}

pub struct Upstream<'h> {
    hosts: &'h Hosts,
    host: Authority,
    entry: Option<&'h Entry>,
    pub client: Arc<Client>,
    pub limiter: Arc<Limiter>,
}

/// A host that a registry named, and whether the host gets the registry's credentials.
pub struct Target {
    pub client: Arc<Client>,
    pub trusted: bool,
}

/// How a host is related to the registry that named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Own,
    /// The configuration lists the host in the registry's entry.
    Named,
    /// The host is known to be the registry's token service.
    Known,
    Stranger,
}

impl Hosts {
    /// Reads the authorities of the configured registries, and the docker configuration.
    pub fn new(resolve: &config::Resolve, proxies: Proxies, metrics: Arc<Metrics>) -> Result<Self, HostsError> {
        let mut entries = BTreeMap::new();
        for (index, settings) in resolve.registries.iter().enumerate() {
            let key = format!("resolve.registries[{index}].caFile");
            let load =
                |path: &PathBuf| Authorities::load(path).map_err(|what| HostsError { key, path: path.clone(), what });
            let authorities = settings.ca_file.as_ref().map(load).transpose()?;
            let entry = Entry { index, settings: settings.clone(), authorities, password: Password::default() };
            entries.insert(settings.host.clone(), entry);
        }
        let load = |path: &PathBuf| {
            let key = "resolve.keychain.dockerConfig".to_owned();
            DockerConfig::load(path).map_err(|what| HostsError { key, path: path.clone(), what })
        };
        let docker_config = resolve.keychain.docker_config.as_ref().map(load).transpose()?;
        let limiters = Limiters::new(&resolve.registries, Arc::clone(&metrics));
        let load = |path: &PathBuf| {
            let key = "resolve.lock".to_owned();
            LockFile::load(path).map_err(|what| HostsError { key, path: path.clone(), what })
        };
        let lock = resolve.lock.as_ref().map(load).transpose()?;
        let (system_tls, pool) = (OnceLock::new(), Pool::new(proxies));
        Ok(Self { entries, docker_config, lock, system_tls, pool, limiters, metrics })
    }

    /// Limits the memory for answers to the registries' part of `share`.
    #[must_use]
    pub fn within(mut self, share: &Share) -> Self {
        self.pool.holding(Arc::clone(share.answers()));
        self
    }

    /// Reads the files with authorities and the docker configuration again. After a change of authorities, requests use
    /// only new connections to the registries. Returns whether the docker configuration has changed.
    pub fn look_at_files(&self) -> bool {
        for entry in self.entries.values() {
            let Some(authorities) = &entry.authorities else { continue };
            let file = authorities.path().display();
            match authorities.look() {
                Look::Same => {}
                Look::Replaced => {
                    self.pool.forget(entry.index);
                    self.metrics.replaced();
                    tracing::info!(name: crate::events::AUTHORITIES_REPLACED, %file, registry = %entry.settings.host, "authorities replaced");
                }
                Look::Refused(what) => {
                    self.metrics.refused();
                    tracing::warn!(name: crate::events::AUTHORITIES_KEPT, %file, registry = %entry.settings.host, what, "authorities not replaced");
                }
            }
        }
        if let Some(lock) = &self.lock {
            let file = lock.path().display();
            match lock.look() {
                Look::Same => {}
                Look::Replaced => {
                    self.metrics.replaced();
                    tracing::info!(name: crate::events::LOCK_REPLACED, %file, "digest lock replaced");
                }
                Look::Refused(what) => {
                    self.metrics.refused();
                    tracing::warn!(name: crate::events::LOCK_KEPT, %file, what, "digest lock not replaced");
                }
            }
        }
        let Some(docker_config) = &self.docker_config else { return false };
        let file = docker_config.path().display();
        match docker_config.look() {
            Look::Same => false,
            Look::Replaced => {
                self.metrics.replaced();
                tracing::info!(name: crate::events::DOCKER_REPLACED, %file, "docker configuration replaced");
                true
            }
            Look::Refused(what) => {
                self.metrics.refused();
                tracing::warn!(name: crate::events::DOCKER_KEPT, %file, what, "docker configuration not replaced");
                false
            }
        }
    }

    /// The digest of an image in the lock file; `None` if the image is not locked.
    pub fn locked(&self, name: &FullName) -> Option<String> {
        Some(self.lock.as_ref()?.value().get(name)?.digest.clone())
    }

    #[cfg(test)]
    pub fn upstream(&self, host: &str) -> Result<Upstream<'_>, Failure> {
        Ok(self.upstream_at(parsed(host)?))
    }

    /// The registries and repositories to ask for `repository` at `host`, in order; the list is never empty.
    pub fn route(&self, host: &str, repository: &str) -> Result<Vec<Stop>, Failure> {
        let host = parsed(host)?;
        Ok(route::route(&host, repository, self.entry(&host).map(|entry| &entry.settings)))
    }

    pub fn upstream_at(&self, host: Authority) -> Upstream<'_> {
        let entry = self.entry(&host);
        let (plain, place) = place(&host, entry);
        let client = self.client(plain, &place, Reach::Anywhere, entry);
        let name = entry.map_or_else(|| OneName::of(&host), |entry| entry.settings.host.clone());
        let limiter = self.limiters.limiter(&name);
        Upstream { hosts: self, host, entry, client, limiter }
    }

    fn entry(&self, host: &Authority) -> Option<&Entry> {
        let plain = || self.entries.get(&OneName::of_plain(host)).filter(|entry| entry.settings.plain_http);
        self.entries.get(&OneName::of(host)).or_else(plain)
    }

    fn client(&self, plain: bool, place: &Authority, reach: Reach, trust: Option<&Entry>) -> Arc<Client> {
        let trust = trust.filter(|entry| !plain && entry.authorities.is_some());
        let port = place.port.unwrap_or(if plain { 80 } else { 443 });
        let key = Key { plain, host: place.host.clone(), port, reach, trust: trust.map(|entry| entry.index) };
        self.pool.client(key, || {
            let tls = (!plain).then(|| {
                trust.and_then(|entry| entry.authorities.as_ref()).map_or_else(|| self.system_tls(), Authorities::value)
            });
            Origin { host: place.host.clone(), port, tls, server_name: None }
        })
    }

    fn system_tls(&self) -> Arc<ClientConfig> {
        let make =
            || Arc::new(wire::client_config(Trust::System, None).expect("system trust without identity is valid"));
        Arc::clone(self.system_tls.get_or_init(make))
    }
}

impl Upstream<'_> {
    pub fn count(&self, wanted: Wanted<'_>) {
        self.hosts.metrics.request(wanted);
    }

    pub fn host(&self) -> &Authority {
        &self.host
    }

    /// The credentials for `repository` in the docker configuration, the best credential first.
    pub fn docker_config(&self, repository: &str) -> Vec<Arc<Credential>> {
        let Some(file) = &self.hosts.docker_config else { return Vec::new() };
        file.value().fitting(&self.host, repository).cloned().collect()
    }

    /// User name and password from the entry of this registry; `None` if the entry has none.
    pub fn login(&self) -> Result<Option<Arc<Credential>>, Failure> {
        let Some(entry) = self.entry else { return Ok(None) };
        let Some((name, path)) = &entry.settings.login else { return Ok(None) };
        match entry.password.read(path) {
            Ok((password, lost)) => {
                if let Some(error) = lost {
                    self.hosts.metrics.refused();
                    tracing::warn!(name: crate::events::PASSWORD_KEPT, file = %path.display(), %error, "password not read; the last one is used");
                }
                let source = format!("user {name} of {}", self.key("username")).into();
                let proof = Proof::Password(password.to_string());
                Ok(Some(Arc::new(Credential { user: name.clone(), proof, source })))
            }
            Err(error) => {
                let what = format!("{} {}: {error}", self.key("passwordFile"), path.display());
                Err(Failure::new(Class::Misconfigured, what))
            }
        }
    }

    /// Whether credentials that are sent to this registry cannot be read by others.
    pub fn keeps_secrets(&self) -> bool {
        let (plain, place) = place(&self.host, self.entry);
        keeps_secrets(!plain, &place.host)
    }

    /// The configuration key of this registry's setting `name`.
    pub fn key(&self, name: &str) -> String {
        match self.entry {
            Some(entry) => format!("resolve.registries[{}].{name}", entry.index),
            None => format!("resolve.registries (no entry for {})", self.host),
        }
    }

    /// The part of a message that says how to allow a registry without TLS.
    pub fn plain_http_remedy(&self) -> String {
        match self.entry {
            Some(entry) => format!("set resolve.registries[{}].plainHttp: true", entry.index),
            None => format!(
                "add {{host: \"{}\", plainHttp: true}} to resolve.registries (registries[].plainHttp)",
                self.host
            ),
        }
    }

    /// The token service at `url` that this registry named, and how requests to the token service are sent.
    pub fn realm(&self, url: &Url) -> Result<Target, Failure> {
        let plain_allowed = self.entry.is_some_and(|entry| entry.settings.plain_http);
        if url.plain && !plain_allowed {
            let what = format!("{} names a token service without TLS at {}", self.host, url.authority);
            return Err(Failure::new(Class::Misconfigured, what));
        }
        // A login never goes in clear to another machine.
        let is_safe = keeps_secrets(!url.plain, &url.authority.host);
        Ok(match self.relation(url) {
            // The login does not come here if this registry itself is in clear on another machine.
            Relation::Own => Target { client: Arc::clone(&self.client), trusted: true },
            // A named realm shares the trust in the registry's authorities.
            Relation::Named => Target {
                client: self.hosts.client(url.plain, &url.authority, Reach::Anywhere, self.trust_of(url)),
                trusted: is_safe,
            },
            relation @ (Relation::Known | Relation::Stranger) => Target {
                client: self.hosts.client(url.plain, &url.authority, Reach::Outside, self.hosts.entry(&url.authority)),
                trusted: relation == Relation::Known && is_safe,
            },
        })
    }

    /// The host of `url`, to which this registry redirects directly or indirectly, and how requests to the host are
    /// sent.
    pub fn redirect(&self, url: &Url) -> Target {
        let relation = self.relation(url);
        if relation == Relation::Own {
            return Target { client: Arc::clone(&self.client), trusted: true };
        }
        // A configured internal registry may redirect to its neighbours; one that a stranger named may not.
        let inside = self.entry.is_some() && self.client.peer().is_some_and(is_inside);
        let reach = if relation == Relation::Named || inside { Reach::Anywhere } else { Reach::Outside };
        Target { client: self.hosts.client(url.plain, &url.authority, reach, self.trust_of(url)), trusted: false }
    }

    fn trust_of(&self, url: &Url) -> Option<&Entry> {
        self.hosts.entry(&url.authority).or(self.entry.filter(|_| self.relation(url) == Relation::Named))
    }

    fn relation(&self, url: &Url) -> Relation {
        let (plain, place) = place(&self.host, self.entry);
        let port = |authority: &Authority| authority.port.unwrap_or(if plain { 80 } else { 443 });
        let own = |authority: &Authority| authority.host == url.authority.host && port(authority) == url.port();
        if plain == url.plain && (own(&self.host) || own(&place)) {
            return Relation::Own;
        }
        let named = self.entry.map_or(&[][..], |entry| &entry.settings.realms);
        let is_named =
            |realm: &Authority| realm.host == url.authority.host && realm.port.is_none_or(|port| port == url.port());
        if named.iter().any(is_named) {
            return Relation::Named;
        }
        let host = OneName::of(&self.host);
        let known = |(registry, realm): &(&str, &str)| *registry == host.as_str() && *realm == url.authority.host;
        let known = KNOWN_REALMS.iter().any(known);
        if known && url.port() == 443 { Relation::Known } else { Relation::Stranger }
    }
}

fn parsed(host: &str) -> Result<Authority, Failure> {
    Authority::parse(host)
        .map_err(|error| Failure::new(Class::Misconfigured, format!("`{host}` is no registry host: {error}")))
}

/// Whether requests for `host` use plain HTTP, and the address that receives the requests.
fn place(host: &Authority, entry: Option<&Entry>) -> (bool, Authority) {
    let mut place = entry.and_then(|entry| entry.settings.endpoint.clone()).unwrap_or_else(|| host.clone());
    if OneName::of(&place).as_str() == DOCKER_HUB.0 {
        DOCKER_HUB.1.clone_into(&mut place.host);
    }
    (entry.is_some_and(|entry| entry.settings.plain_http), place)
}

#[cfg(test)]
mod tests;
