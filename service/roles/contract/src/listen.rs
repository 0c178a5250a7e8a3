//! The listener of a role that other processes call: its keys, its certificate, and the permitted callers.
//!
//! This module owns the configuration keys that the sections `validator` and `alerting` share, with defaults and
//! reasons, and makes a listener from them. Every caller of the listener needs a certificate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use service_core::config::quantity::{Size, Span};
use service_core::config::{Checker, Error};
use service_core::edge::{Files, Handler, Labels, Limits, Listener, Probe, Protocols, Rules, ServerTls, serve};
use service_core::logs::names;
use service_core::role::{Running, Start, Started};

use crate::endpoint::{Bounds, Endpoint, Internal};

/// Default limit of open connections: enough for the processes of a cluster, each with one or two HTTP/2 connections.
const MAX_CONNECTIONS: u64 = 256;
/// Default limit of calls that are being answered at one time. More than 512 calls mean overload, because a check of an
/// image that is not in the cache waits for a registry and uses some kilobytes.
const MAX_IN_FLIGHT: u64 = 512;
/// Default time limit of a call: kube-apiserver's longest timeout for a webhook.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    pub listen: SocketAddr,
    /// PEM file of the listener's certificate chain.
    pub certificate: PathBuf,
    /// PEM file of the listener's private key.
    pub key: PathBuf,
    /// PEM files with the authorities of client certificates, at least one.
    pub client_ca: Vec<PathBuf>,
    /// Accepted names in client certificates. If `client_names` is empty, any certificate of the authorities is
    /// accepted.
    pub client_names: Vec<String>,
    /// PEM files of revocation lists for client certificates.
    pub crl: Vec<PathBuf>,
    pub max_connections: usize,
    /// Maximum number of calls that are being answered at one time; further calls get status 429.
    pub max_in_flight: usize,
    pub max_body_bytes: usize,
    pub timeout: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RawListen {
    listen: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    #[serde(rename = "clientCA")]
    client_ca: Vec<PathBuf>,
    #[serde(default)]
    client_names: Vec<String>,
    #[serde(default)]
    crl: Vec<PathBuf>,
    max_connections: Option<u64>,
    max_in_flight: Option<u64>,
    max_body_bytes: Option<Size>,
    timeout: Option<Span>,
}

impl Listen {
    /// Checks the keys of the section `key`; `body_bytes` is the default size limit of bodies.
    pub fn check(raw: RawListen, key: &str, body_bytes: usize, check: &Checker<'_>) -> Result<Self, Error> {
        let of = |name: &str| format!("{key}.{name}");
        if raw.client_ca.is_empty() {
            return Err(check.value(of("clientCA"), "needs at least one file, because callers need a certificate"));
        }
        let joined = |paths: Vec<PathBuf>| paths.into_iter().map(|path| check.folder.join(path)).collect();
        let body = raw.max_body_bytes.map_or(body_bytes as u64, |size| size.0);
        let (connections, calls) =
            (raw.max_connections.unwrap_or(MAX_CONNECTIONS), raw.max_in_flight.unwrap_or(MAX_IN_FLIGHT));
        Ok(Self {
            listen: raw.listen,
            certificate: check.folder.join(raw.certificate),
            key: check.folder.join(raw.key),
            client_ca: joined(raw.client_ca),
            client_names: raw.client_names,
            crl: joined(raw.crl),
            max_connections: check.within(&of("maxConnections"), connections, 4, 10_000)?,
            max_in_flight: check.within(&of("maxInFlight"), calls, 1, 10_000)?,
            max_body_bytes: check.within(&of("maxBodyBytes"), body, 1 << 10, 8 << 20)?,
            timeout: check.positive(&of("timeout"), raw.timeout, TIMEOUT)?,
        })
    }

    /// Binds a listener that answers with `endpoint`, for a role without tasks of its own.
    pub async fn open<D: Endpoint>(
        &self,
        labels: Labels,
        endpoint: D,
        start: &mut Start<'_>,
    ) -> anyhow::Result<Started> {
        let name = endpoint.name();
        let files = Files {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            handed: None,
            client_cas: self.client_ca.clone(),
            client_names: self.client_names.clone(),
            revoked: self.crl.clone(),
            rules: Rules { tls13_only: true, private_key: true, ..Rules::default() },
        };
        let tls = ServerTls::load(files, labels, start.certificates.clone());
        let tls = tls.with_context(|| format!("failed to load {name}.certificate, key, clientCA and crl"))?;
        let edge = start.edge.of(name);
        let listener = Listener::bind(self.listen, Protocols::Tls(Arc::clone(&tls)), edge).await;
        let listener = listener.with_context(|| format!("failed to listen on {} ({name}.listen)", self.listen))?;
        let listener = listener.checked_as(endpoint.listener()).known_to_its_clients().with_limits(Limits {
            connections: self.max_connections,
            connections_per_peer: self.max_connections,
            handshakes_per_peer: self.max_connections.div_ceil(4),
        });
        let address = listener.address().with_context(|| format!("failed to read the address of {name}"))?;
        let memory = Arc::clone(start.calls);
        let body_bytes = self.max_body_bytes.min(memory.body_max());
        let bounds = Bounds { in_flight: self.max_in_flight, body_bytes, memory, time: self.timeout };
        let internal = Arc::new(Internal::new(bounds, endpoint, start.metrics));
        let probes = vec![Arc::clone(&tls) as Arc<dyn Probe>, Arc::clone(listener.heartbeat()) as _];
        start.background.spawn(tls.follow_files(start.look.subscribe()));
        let handler: Handler = Arc::new(move |request, peer| serve(Arc::clone(&internal), request, peer).boxed());
        tracing::info!(name: names::SERVED, listener = name, %address, "other processes are answered");
        Ok(Started { served: Some((listener, handler)), probes, reload: None, running: Box::new(Idle) })
    }
}

struct Idle;

impl Running for Idle {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        std::future::pending().boxed()
    }

    fn leave(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn checked(text: &str) -> Result<Listen, String> {
        let raw: RawListen = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let check = Checker { path: Path::new("/c/f"), folder: Path::new("/c") };
        Listen::check(raw, "validator", 1 << 16, &check).map_err(|error| error.to_string())
    }

    #[test]
    fn nobody_calls_without_a_certificate() {
        let good = "{listen: '127.0.0.1:0', certificate: c, key: k, clientCA: [ca]}";
        let listen = checked(good).unwrap();
        assert_eq!((listen.client_ca[0].as_path(), listen.max_body_bytes), (Path::new("/c/ca"), 1 << 16));
        assert!(
            checked(&good.replace("[ca]", "[]")).unwrap_err().contains("validator.clientCA: needs at least one file")
        );
        assert!(
            checked(&good.replace("clientCA: [ca]", "clientCA: [ca], maxInFlight: 0"))
                .unwrap_err()
                .contains("1 to 10000")
        );
        assert!(checked(&good.replace("key: k", "key: k, kee: k")).unwrap_err().contains("kee"));
    }
}
