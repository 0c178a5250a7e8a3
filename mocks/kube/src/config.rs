//! The configuration of an API server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::authorization::Authorization;

/// Default interval of bookmarks: a real server sends about one a minute.
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// Default maximum number of events in the history: at most 100 MiB with objects of 1 KiB, and enough for some minutes
/// at hundreds of writes a second.
const HISTORY_MAX_EVENTS: usize = 100_000;

#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen at; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Additional DNS names and IP addresses in the certificate: those of proxies in front of the server.
    pub names: Vec<String>,
    /// The zero point of all times that the server reports.
    pub epoch: Instant,
    /// `CustomResourceDefinition` objects that exist from the start.
    pub crds: Vec<Value>,
    /// Users with a token. The server also accepts client certificates that its certificate authority signed.
    pub users: Vec<User>,
    /// The token file of each user. The server writes the token into the file at the start and after each rotation.
    pub token_files: BTreeMap<String, PathBuf>,
    /// The issuer and the key of the tokens of service accounts.
    pub service_accounts: ServiceAccounts,
    pub bookmarks_every: Duration,
    /// Maximum number of events that are kept for watches that resume.
    pub history_max_events: usize,
    /// The fields in which each object shows the progress of its controller: see [`super::tail::Entry::progress`].
    pub looks: facts::Looks,
    /// Whether RBAC decides about requests, or whether all known users may do everything.
    pub authorization: Authorization,
    /// Whether every namespace gets the service account `default` and the config map `kube-root-ca.crt`, as in a real
    /// cluster. The default is false, so that a test finds only its own objects.
    pub furnished_namespaces: bool,
    /// Whether no controller manager runs, as in a test suite that starts only a kube-apiserver. If true, the server
    /// collects no garbage and empties no namespaces. Requests without a token have the user `system:anonymous`. With
    /// RBAC, the server has the default roles of kube-apiserver.
    pub alone: bool,
    /// The feature gates of kube-apiserver that are on in addition to its defaults. A gate also turns on the API
    /// versions that it needs. Only the gate `MutatingAdmissionPolicy` has an effect.
    pub feature_gates: Vec<String>,
    /// How workloads become ready, as with the scheduler, kubelets and controllers of a real cluster. If absent,
    /// workloads stay as clients create them.
    pub workloads: Option<Workloads>,
    /// The seed of uids, generated names and the faults' probabilities.
    pub seed: u64,
    /// The factor by which the lifetimes of watches, requested tokens, history and idle connections are shortened. The
    /// server's answers contain the unshortened lifetimes. The interval of bookmarks is not shortened.
    pub compress: u32,
    /// The clock for checking webhooks' certificates, if webhooks use a clock that runs faster than the machine's.
    pub webhook_clock: Option<mock_pki::Pace>,
    /// The limits of queues, sizes and times.
    pub limits: Limits,
}

/// How simulated workloads become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workloads {
    /// Time until a scheduled Pod is ready, until a claim is bound, and until a load balancer has an address.
    pub ready_after: Duration,
    /// How long a Pod runs if its `restartPolicy` lets it end and no Job owns it; `None` means for ever.
    pub ends_after: Option<Duration>,
    /// Number of nodes that are made at the start, `node-1` and so on, if the cluster has none.
    pub nodes: u32,
}

impl Default for Workloads {
    /// The default time is long enough to expose a controller that does not wait for workloads, and short enough for
    /// runs of a minute.
    fn default() -> Self {
        Self { ready_after: Duration::from_millis(200), ends_after: None, nodes: 1 }
    }
}

/// The issuer and key of service account tokens, which a kube-apiserver gets as flags.
#[derive(Clone, Default)]
pub struct ServiceAccounts {
    /// `--service-account-issuer`; the default is kubeadm's issuer. The issuer is also the default audience of tokens.
    pub issuer: Option<String>,
    /// `--service-account-signing-key-file`: an RSA or P-256 key as PEM; if absent, the server makes a key at the
    /// start.
    pub key_pem: Option<String>,
}

impl std::fmt::Debug for ServiceAccounts {
    /// Prints no key, because `Debug` output of a configuration ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name, such as `subject`.
    pub name: String,
    /// The groups of the user, in addition to `system:authenticated`.
    pub groups: Vec<String>,
    pub token: String,
}

/// The certificate of an endpoint and the authorities of its clients, which a kube-apiserver gets as files.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The server certificate with its key (`--tls-cert-file`, `--tls-private-key-file`).
    pub serving: mock_pki::Pair,
    /// The certificate authorities of clients, PEM (`--client-ca-file`); if absent, clients need not send a
    /// certificate.
    pub clients_ca_pem: Option<String>,
}

/// The limits of queues, sizes and times. Every limit has a default that fits a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body; the limit of kube-apiserver is 3 MiB.
    pub body_max_bytes: usize,
    /// Longest time for a request body to arrive.
    pub body_timeout: Duration,
    /// Longest time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Longest time for request headers, which also limits idle HTTP/1.1 connections. kube-apiserver keeps idle
    /// connections for 90 s.
    pub header_timeout: Duration,
    /// How long a client may stop reading before the server closes its connection.
    pub write_timeout: Duration,
    /// Maximum number of open connections; further connections wait in the kernel.
    pub connections_max: usize,
    /// Maximum number of HTTP/2 streams on one connection; kube-apiserver allows 100.
    pub streams_max: u32,
    /// Maximum number of requests that the server remembers for reports.
    pub requests_max: usize,
    /// Maximum number of commits that a [`super::Tail`] may be behind.
    pub commits_max: usize,
    /// Maximum number of bytes of the history, in addition to the limit [`Config::history_max_events`].
    pub history_max_bytes: usize,
    /// Greatest age of an event that is kept; a real cluster compacts etcd every 5 minutes.
    pub history_max_age: Duration,
}

impl Config {
    /// The configuration of a server on a free port of 127.0.0.1 without users; its times count from now.
    pub fn new() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            names: Vec::new(),
            epoch: Instant::now(),
            crds: Vec::new(),
            users: Vec::new(),
            token_files: BTreeMap::new(),
            service_accounts: ServiceAccounts::default(),
            bookmarks_every: BOOKMARKS_EVERY,
            history_max_events: HISTORY_MAX_EVENTS,
            looks: facts::Looks::default(),
            authorization: Authorization::default(),
            furnished_namespaces: false,
            alone: false,
            feature_gates: Vec::new(),
            workloads: None,
            seed: 0,
            compress: 1,
            webhook_clock: None,
            limits: Limits::default(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl User {
    /// A user with the groups of an administrator.
    pub fn admin(name: &str, token: &str) -> Self {
        Self { name: name.to_owned(), groups: vec!["system:masters".to_owned()], token: token.to_owned() }
    }
}

impl Limits {
    /// The limits for a server whose lifetimes are shortened by this factor.
    pub(crate) fn compressed(self, compress: u32) -> Self {
        let shorter = |time: Duration| time / compress.max(1);
        Self { header_timeout: shorter(self.header_timeout), history_max_age: shorter(self.history_max_age), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_max_bytes: 3 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_mins(2),
            write_timeout: Duration::from_mins(1),
            connections_max: 20_000,
            streams_max: 250,
            requests_max: 16_384,
            commits_max: 262_144,
            history_max_bytes: 256 * 1024 * 1024,
            history_max_age: Duration::from_mins(5),
        }
    }
}
