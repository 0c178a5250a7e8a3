//! The hosts that images name: where to connect, whom to trust, and with which credentials.
//!
//! Owns one pooled client for each host, made at first use and bounded in number. Password files are read when needed,
//! so that a rotated password is picked up without a restart.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustls::ClientConfig;

use crate::config;
use crate::verdicts::{Class, Failure};
use crate::wire::{self, Client, Limits, Origin, Protocol, Trust};

/// Hosts with a client at one time. Images name hosts, so without a bound anybody could make this grow.
const CLIENTS_MAX: usize = 64;
/// Requests in flight to one host, and idle connections kept: a burst of a hundred distinct images stays one round trip.
const LIMITS: Limits = Limits { open_max: 64, idle_max: 8 };
/// Where Docker Hub's images really are.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// Why the registries of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("resolve.registries[{index}].caFile: {}: {what}", path.display())]
pub struct HostsError {
    index: usize,
    path: PathBuf,
    what: String,
}

struct Host {
    index: usize,
    endpoint: Option<String>,
    plain_http: bool,
    tls: Option<Arc<ClientConfig>>,
    login: Option<(String, PathBuf)>,
}

/// Every registry that can be reached.
pub struct Hosts {
    configured: BTreeMap<String, Host>,
    /// Made at first need: the system's authorities cost more than a megabyte.
    system_tls: OnceLock<Arc<ClientConfig>>,
    clients: Mutex<BTreeMap<String, Arc<Client>>>,
}

impl Hosts {
    /// Reads the authorities of the configured registries.
    pub fn new(registries: &[config::Registry]) -> Result<Self, HostsError> {
        let mut configured = BTreeMap::new();
        for (index, registry) in registries.iter().enumerate() {
            let tls = match &registry.ca_file {
                None => None,
                Some(path) => {
                    let fail = |what: String| HostsError { index, path: path.clone(), what };
                    let pem = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
                    let tls = wire::client_config(Trust::Pem(&pem), None).map_err(|error| fail(error.to_string()))?;
                    Some(Arc::new(tls))
                }
            };
            let host = Host {
                index,
                endpoint: registry.endpoint.clone(),
                plain_http: registry.plain_http,
                tls,
                login: registry.login.clone(),
            };
            configured.insert(registry.host.clone(), host);
        }
        Ok(Self { configured, system_tls: OnceLock::new(), clients: Mutex::new(BTreeMap::new()) })
    }

    /// The client for `host` as written in an image or a token realm.
    pub fn client(&self, host: &str, plain_http: Option<bool>) -> Result<Arc<Client>, Failure> {
        let known = self.configured.get(host);
        let plain_http = plain_http.unwrap_or_else(|| known.is_some_and(|host| host.plain_http));
        let key = format!("{}{host}", if plain_http { "http://" } else { "https://" });
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(Arc::clone(client));
        }
        let tls = (!plain_http).then(|| known.and_then(|host| host.tls.clone()).unwrap_or_else(|| self.system_tls()));
        let address = known.and_then(|host| host.endpoint.as_deref()).unwrap_or(host);
        let origin = origin(address, tls)?;
        if clients.len() >= CLIENTS_MAX {
            // Any one will do: it is made again when needed, and users of it keep their own handle.
            clients.pop_first();
        }
        let client = Arc::new(Client::new(origin, Protocol::Http1, LIMITS));
        clients.insert(key, Arc::clone(&client));
        Ok(client)
    }

    fn system_tls(&self) -> Arc<ClientConfig> {
        let make =
            || Arc::new(wire::client_config(Trust::System, None).expect("system trust without identity is valid"));
        Arc::clone(self.system_tls.get_or_init(make))
    }

    /// User name and password for `host`, when the configuration has them.
    pub fn login(&self, host: &str) -> Result<Option<(String, String)>, Failure> {
        let Some((name, path)) = self.configured.get(host).and_then(|host| host.login.as_ref()) else {
            return Ok(None);
        };
        match std::fs::read_to_string(path) {
            Ok(password) => Ok(Some((name.clone(), password.trim_end_matches(['\r', '\n']).to_owned()))),
            Err(error) => {
                let key = self.key(host, "passwordFile");
                Err(Failure::new(Class::Misconfigured, format!("{key} {}: {error}", path.display())))
            }
        }
    }

    /// How the configuration calls a setting of `host`.
    pub fn key(&self, host: &str, name: &str) -> String {
        match self.configured.get(host) {
            Some(host) => format!("resolve.registries[{}].{name}", host.index),
            None => format!("resolve.registries (no entry for {host})"),
        }
    }
}

fn origin(host: &str, tls: Option<Arc<ClientConfig>>) -> Result<Origin, Failure> {
    let host = if host == DOCKER_HUB.0 { DOCKER_HUB.1 } else { host };
    let authority: http::uri::Authority =
        host.parse().map_err(|_| Failure::new(Class::Misconfigured, format!("`{host}` is not a registry host")))?;
    let port = authority.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Origin { host, port, tls, server_name: None })
}
