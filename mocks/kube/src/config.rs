//! What an API server is started with.

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

/// Everything a server needs to know before it starts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// DNS names and IP addresses that the certificate names besides its own: those of proxies in front of it.
    pub names: Vec<String>,
    /// Zero of all times that the server reports.
    pub epoch: Instant,
    /// `CustomResourceDefinition` objects that exist from the start.
    pub crds: Vec<Value>,
    /// Who may come in with a token. Client certificates of the authority come in as well.
    pub users: Vec<User>,
    /// Users who read their token from a file: it is written there, and again when the token is rotated.
    pub token_files: BTreeMap<String, PathBuf>,
    /// Who issues the tokens of service accounts.
    pub service_accounts: ServiceAccounts,
    /// How often a watch that allows bookmarks gets one.
    pub bookmarks_every: Duration,
    /// How many events are kept for watches that resume.
    pub history_max_events: usize,
    /// Where in each object a controller tells how far it has come: see [`super::tail::Entry::progress`].
    pub looks: facts::Looks,
    /// Whether roles decide who may do what.
    pub authorization: Authorization,
    /// Whether every namespace gets the service account `default` and the config map `kube-root-ca.crt`, as the
    /// controllers of a real cluster see to. Off, so that what a test finds is what it made.
    pub furnished_namespaces: bool,
    /// Whether there is no controller manager beside it, as where a test-suite starts a kube-apiserver alone: nothing is
    /// collected or emptied, requests without a token are somebody's (`system:anonymous`), and the roles are there that a real
    /// server makes for itself.
    pub alone: bool,
    /// Whether workloads become ready, as with a scheduler, kubelets and the controllers of a real cluster; absent, they stay as they are made.
    pub workloads: Option<Workloads>,
    /// Decides uids, generated names and the faults' probabilities.
    pub seed: u64,
    /// How many times shorter everything lives that a server lets live for a while: watches, tokens that are asked for, history, idle
    /// connections. Answers name the lifetimes that a real server would have. Bookmarks have [`Self::bookmarks_every`].
    pub compress: u32,
    /// The clock by which certificates of webhooks are looked at: theirs, where it goes faster than the machine's.
    pub webhook_clock: Option<mock_pki::Pace>,
    /// The bounds of everything that could grow or hang.
    pub limits: Limits,
}

/// How workloads become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workloads {
    /// How long a Pod takes from its node to being ready, a claim until it is bound, and a load balancer until it has an address.
    pub ready_after: Duration,
    /// How long a Pod runs that may end and belongs to no Job; none for ever.
    pub ends_after: Option<Duration>,
    /// Nodes that are made at the start, `node-1` and so on, where there are none.
    pub nodes: u32,
}

impl Default for Workloads {
    /// Long enough to show a controller that does not wait, short enough for runs of a minute.
    fn default() -> Self {
        Self { ready_after: Duration::from_millis(200), ends_after: None, nodes: 1 }
    }
}

/// Who issues the tokens of service accounts, as kube-apiserver is told by flags.
#[derive(Clone, Default)]
pub struct ServiceAccounts {
    /// `--service-account-issuer`; kubeadm's when absent. It is also whom tokens are for when nobody says.
    pub issuer: Option<String>,
    /// `--service-account-signing-key-file`, PEM, an RSA key or one of P-256; one that is made at the start when absent.
    pub key_pem: Option<String>,
}

impl std::fmt::Debug for ServiceAccounts {
    /// Shows no key: a `Debug` line of a configuration ends up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccounts").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// A user with a bearer token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name, for example `subject`.
    pub name: String,
    /// Its groups, besides `system:authenticated`.
    pub groups: Vec<String>,
    /// The bearer token.
    pub token: String,
}

/// Whom an endpoint is taken for, and whom it believes; what a kube-apiserver is given as files.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate that it shows, with its key (`--tls-cert-file`, `--tls-private-key-file`).
    pub serving: mock_pki::Pair,
    /// The authorities of client certificates, PEM (`--client-ca-file`); without them no client certificate is asked for.
    pub clients_ca_pem: Option<String>,
}

/// The bounds of everything that could grow or hang. Every one has a default that fits a soak.
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
    /// How long a client may refuse to read before its connection is cut.
    pub write_timeout: Duration,
    /// Most connections at a time; further ones wait in the kernel.
    pub connections_max: usize,
    /// Most HTTP/2 streams on one connection; kube-apiserver allows 100.
    pub streams_max: u32,
    /// How many requests the ring remembers.
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
    /// A user with the groups that an administrator has.
    pub fn admin(name: &str, token: &str) -> Self {
        Self { name: name.to_owned(), groups: vec!["system:masters".to_owned()], token: token.to_owned() }
    }
}

impl Limits {
    /// The limits of a server on which everything lives so many times shorter.
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
