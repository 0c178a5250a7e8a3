//! The configuration of an API server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::authorization::Authorization;

/// Real servers send about one bookmark a minute; tests of minutes need to see them.
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// At 1 KiB an object 100 MiB at the most, and minutes of history at hundreds of writes a second.
const HISTORY_MAX_EVENTS: usize = 100_000;

#[derive(Debug, Clone)]
pub struct Config {
    /// Port 0 takes a free port.
    pub listen: SocketAddr,
    /// DNS names and IP addresses in the certificate besides the server's own: those of proxies in front of it.
    pub names: Vec<String>,
    /// Zero of all times that the server reports.
    pub epoch: Instant,
    /// `CustomResourceDefinition` objects that exist from the start.
    pub crds: Vec<Value>,
    /// Users with a token. Client certificates of the authority are accepted as well.
    pub users: Vec<User>,
    /// Files of tokens by user: the server writes a user's token there, and again when the token is rotated.
    pub token_files: BTreeMap<String, PathBuf>,
    /// The issuer of the tokens of service accounts.
    pub service_accounts: ServiceAccounts,
    /// How often a watch with bookmarks gets one.
    pub bookmarks_every: Duration,
    /// Events that are kept for watches that resume.
    pub history_max_events: usize,
    /// Where each object reports the progress of its controller: see [`super::tail::Entry::progress`].
    pub looks: facts::Looks,
    /// Whether RBAC decides.
    pub authorization: Authorization,
    /// Whether every namespace gets the service account `default` and the config map `kube-root-ca.crt`, as from the
    /// controllers of a real cluster. Off by default, so that a test finds only its own objects.
    pub furnished_namespaces: bool,
    /// Whether no controller manager runs, as in a test suite that starts a kube-apiserver alone. Then no object is
    /// garbage-collected and no namespace is emptied, requests without a token are `system:anonymous`, and the roles
    /// exist that a real server makes for itself.
    pub alone: bool,
    /// The feature gates of kube-apiserver that are on besides its defaults, with the versions of the API that they need.
    /// `MutatingAdmissionPolicy` is the only one with an effect.
    pub feature_gates: Vec<String>,
    /// Whether workloads become ready, as with a scheduler, kubelets and the controllers of a real cluster. If absent,
    /// they stay as created.
    pub workloads: Option<Workloads>,
    /// Decides uids, generated names and the faults' probabilities.
    pub seed: u64,
    /// Factor by which lifetimes are shortened: of watches, requested tokens, history and idle connections. Answers
    /// name the lifetimes of a real server. Bookmarks have [`Self::bookmarks_every`].
    pub compress: u32,
    /// The clock for checking the certificates of webhooks: their own clock, if it runs faster than the machine's.
    pub webhook_clock: Option<mock_pki::Pace>,
    /// The bounds of everything that could grow or hang.
    pub limits: Limits,
}

/// How workloads become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workloads {
    /// Time from scheduling to ready of a Pod, to bound of a claim, and to the address of a load balancer.
    pub ready_after: Duration,
    /// How long a Pod runs that may end and belongs to no Job; `None` means for ever.
    pub ends_after: Option<Duration>,
    /// Nodes that are made at the start, `node-1` and so on, if there are none.
    pub nodes: u32,
}

impl Default for Workloads {
    /// Long enough to expose a controller that does not wait, short enough for runs of a minute.
    fn default() -> Self {
        Self { ready_after: Duration::from_millis(200), ends_after: None, nodes: 1 }
    }
}

/// The issuer and key of service account tokens, which a kube-apiserver gets as flags.
#[derive(Clone, Default)]
pub struct ServiceAccounts {
    /// `--service-account-issuer`; kubeadm's if absent. It is also the default audience.
    pub issuer: Option<String>,
    /// `--service-account-signing-key-file`: PEM, an RSA or P-256 key; if absent, a key is made at the start.
    pub key_pem: Option<String>,
}

impl std::fmt::Debug for ServiceAccounts {
    /// Prints no key, because a `Debug` line of a configuration ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name, for example `subject`.
    pub name: String,
    /// Its groups, besides `system:authenticated`.
    pub groups: Vec<String>,
    pub token: String,
}

/// The certificate of an endpoint and its trusted client authorities, which a kube-apiserver gets as files.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The server certificate with its key (`--tls-cert-file`, `--tls-private-key-file`).
    pub serving: mock_pki::Pair,
    /// The authorities of client certificates, PEM (`--client-ca-file`); if absent, no client certificate is requested.
    pub clients_ca_pem: Option<String>,
}

/// The bounds of queues, sizes and times. Every bound has a default that fits a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body; kube-apiserver's own limit is 3 MiB.
    pub body_max_bytes: usize,
    /// Longest time for a request body to arrive.
    pub body_timeout: Duration,
    /// Longest time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Longest time for request headers, which bounds idle HTTP/1.1 connections too. kube-apiserver keeps those 90 s.
    pub header_timeout: Duration,
    /// How long a client may stop reading before its connection is cut.
    pub write_timeout: Duration,
    /// Most connections at a time; further ones wait in the kernel.
    pub connections_max: usize,
    /// Most HTTP/2 streams on one connection; kube-apiserver allows 100.
    pub streams_max: u32,
    /// Requests that the ring remembers.
    pub requests_max: usize,
    /// How many commits a [`super::Tail`] may fall behind.
    pub commits_max: usize,
    /// Most bytes of history, besides [`Config::history_max_events`].
    pub history_max_bytes: usize,
    /// Oldest event that is kept; etcd is compacted every 5 minutes in a real cluster.
    pub history_max_age: Duration,
}

impl Config {
    /// A server on a free port of 127.0.0.1 with no users, whose times start now.
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
    /// A user with an administrator's groups.
    pub fn admin(name: &str, token: &str) -> Self {
        Self { name: name.to_owned(), groups: vec!["system:masters".to_owned()], token: token.to_owned() }
    }
}

impl Limits {
    /// The limits of a server whose lifetimes are shortened by this factor.
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
