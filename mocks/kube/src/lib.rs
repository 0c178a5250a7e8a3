//! The mock Kubernetes API server: real TLS, HTTP/1.1 and HTTP/2, and answers that unmodified clients accept.
//!
//! Owns [`Server`], its [`Config`], and the data that a harness needs about the server. The data are every commit
//! ([`Tail`]), the deliveries to each user ([`Delivery`], [`Gap`]), and the requests of each user ([`Traffic`],
//! [`RequestRecord`]). The crates `mock-store` and `mock-objects` own the store, the catalogue, selectors and patches.
//! The module `listen` owns the sockets. This crate must not know runs or verdicts.
//!
//! With the kubeconfig from [`Server::kubeconfig`], `kubectl` works as in a cluster without nodes. The only controllers
//! are the garbage collector and the deletion of namespaces. With [`Config::workloads`], workloads also become ready.

mod addresses;
mod admin;
mod admission;
mod aggregation;
mod answer;
mod audit;
mod authentication;
mod authorization;
mod body;
mod bootstrap;
mod broken;
mod call;
mod cluster;
mod config;
mod connection;
mod conversion;
mod discovery;
mod disruption;
mod followed;
mod framed;
mod handler;
mod health;
mod impersonation;
mod inject;
mod inside;
mod janitor;
mod listen;
mod path;
mod payload;
mod policy;
mod pretty;
mod protobuf;
mod quota;
mod rbac;
mod reach;
mod replica;
mod represent;
mod reserved;
mod serving;
mod signing;
mod tail;
mod tokens;
mod type_check;
mod users;
mod verbs;
mod wall;
mod watch;
mod webhooks;
mod websocket;
mod workloads;
mod written;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mock_faults::{Faults, Newer, View, Watches};

pub use audit::{
    About, Delivery, EndedBy, Gap, RequestFact, RequestParameters, RequestRecord, Said, Sending, Shown, ShownBy,
    Traffic, Wanted, WireLine, Written,
};
pub use authorization::{Authorization, Permission};
pub use config::{Config, Identity, Limits, ServiceAccounts, User, Workloads};
pub use mock_store::{RewindError, Rewound};
pub use replica::Replica;
pub use tail::{Entry, Overrun, Tail};

use call::App;
use cluster::{Cluster, Setup};
use listen::{Certificates, EndpointIdentity, Listening};
use users::Users;

pub use mock_objects::VERSION;
pub use mock_objects::builtin::{DEFAULT as DEFAULT_RELEASE, ReleaseError, choose as choose_release, release};

/// The name of the authority that signs certificate requests.
const SIGNER: &str = "kubernetes-signer";

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address to listen at is in use, or the process may not use it.
    #[error("failed to listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to prepare the API server's certificate")]
    Certificate(#[from] mock_pki::Error),
    /// A definition in [`Config::crds`] is invalid.
    #[error("failed to define `{name}`: {why}")]
    Definition {
        name: String,
        /// The message that a client gets if it creates this definition.
        why: String,
    },
    /// The users are invalid: two users share a token, a user has no name or no token, or a token file cannot be
    /// written.
    #[error("failed to set up the users")]
    Users(#[source] users::Error),
}

/// The `apiVersion`, kind and scope of the objects of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindOf {
    /// The `apiVersion` of the stored version.
    pub api_version: String,
    pub kind: String,
    pub is_namespaced: bool,
    /// The `CustomResourceDefinition` of the resource; none for a built-in resource.
    pub definition: Option<serde_json::Value>,
}

/// A running API server. Dropping a `Server` stops it at once; [`Server::shutdown`] lets open requests finish.
#[derive(Debug)]
pub struct Server {
    cluster: Arc<Cluster>,
    users: Arc<Users>,
    listening: Listening,
    ca_pem: String,
    certificates: Arc<Certificates>,
    /// The number of the next endpoint.
    endpoints: AtomicU32,
    limits: Limits,
}

impl Server {
    /// Number of kinds that the server serves, including custom resources.
    pub fn kinds(&self) -> usize {
        self.cluster.catalogue().originals().count()
    }

    /// Starts a server with a certificate from `authority`, whose client certificates the server also accepts.
    pub async fn start(config: Config, authority: &mock_pki::Authority) -> Result<Self, Error> {
        let limits = config.limits.compressed(config.compress);
        let users =
            Arc::new(Users::new(&config.users, &config.token_files, &config.service_accounts).map_err(Error::Users)?);
        let signer = config.workloads.map(|_| mock_pki::Authority::generate(SIGNER)).transpose()?;
        let cluster = Cluster::new(
            Setup {
                users: users.clone(),
                epoch: config.epoch,
                seed: config.seed,
                limits: mock_store::Limits {
                    history_max_events: config.history_max_events.max(1),
                    history_max_bytes: limits.history_max_bytes,
                    history_max_age_us: u64::try_from(limits.history_max_age.as_micros()).unwrap_or(u64::MAX),
                    commits_max: limits.commits_max,
                },
                requests_max: limits.requests_max,
                compress: config.compress,
                bookmarks_every: config.bookmarks_every,
                looks: config.looks,
                authorization: config.authorization,
                alone: config.alone,
                signer,
                feature_gates: config.feature_gates.clone(),
                root_ca: config.furnished_namespaces.then(|| authority.ca_pem().to_owned()),
            },
            bootstrap::namespace,
        );
        if config.alone && config.authorization == Authorization::Rbac {
            policy::seed(&cluster);
        }
        if let Some(pace) = config.webhook_clock {
            cluster.webhooks.client.keep_time(pace);
        }
        for crd in &config.crds {
            cluster.seed(crd.clone()).map_err(|failure| Error::Definition {
                name: mock_objects::object::meta(crd, "name").to_owned(),
                why: failure.message,
            })?;
        }
        let address = config.listen;
        let ip = address.ip().to_string();
        let mut names = vec!["localhost", "kubernetes", "kubernetes.default.svc", "127.0.0.1", "::1"];
        if !address.ip().is_unspecified() && !names.contains(&ip.as_str()) {
            names.push(&ip);
        }
        names.extend(config.names.iter().map(String::as_str));
        let certificates = Arc::new(Certificates::new(authority, cluster.signer.as_ref(), &names)?);
        let app = App::new(&cluster, &users, limits, View::live());
        let door = EndpointIdentity { address, certificates: certificates.clone(), number: 0 };
        let mut listening = Listening::start(door, app).await.map_err(|source| Error::Listen { address, source })?;
        if let Some(wanted) = config.workloads {
            let app = App::new(&cluster, &users, limits, View::live());
            listening.help(workloads::run(Arc::new(app), workloads::machine(wanted, config.seed)));
        }
        let ca_pem = authority.ca_pem().to_owned();
        Ok(Self {
            cluster,
            users,
            listening,
            ca_pem,
            certificates,
            endpoints: AtomicU32::new(1),
            limits: config.limits,
        })
    }

    /// Creates an object without a request, and returns its uid. Applies defaults, but neither validation nor
    /// admission. The error is the message that a client would get.
    pub fn preload(&self, object: serde_json::Value) -> Result<String, String> {
        let made = self.cluster.seed(object).map_err(|failure| failure.message)?;
        Ok(made.version.identity.uid.to_string())
    }

    /// The kind of a resource (`packages.longhaul.dev`), if the server serves the resource.
    pub fn kind_of(&self, resource: &str) -> Option<KindOf> {
        let catalogue = self.cluster.catalogue();
        let found = catalogue.by_full_name(resource)?;
        let definitions = catalogue.by_full_name("customresourcedefinitions.apiextensions.k8s.io");
        let definitions = definitions.and_then(|definitions| self.cluster.get(definitions, "", resource));
        Some(KindOf {
            api_version: found.storage_version().api_version.to_string(),
            kind: found.kind.to_string(),
            is_namespaced: found.namespaced,
            definition: definitions.filter(|_| found.custom).map(|version| version.value()),
        })
    }

    /// The URL of the server: `https://127.0.0.1:6443`.
    pub fn url(&self) -> String {
        url(self.address())
    }

    /// Starts another endpoint of this cluster that can lag, like another API server of the same control plane.
    pub async fn replica(&self, address: SocketAddr) -> Result<Replica, Error> {
        self.endpoint(address, &["h2", "http/1.1"]).await
    }

    /// Starts another endpoint that offers the protocols in `alpn` through ALPN (RFC 7301); the preferred protocol is
    /// first.
    ///
    /// If the subject has its own endpoint, put the endpoint's [`Replica::number`] into [`Faults::target_endpoints`].
    /// Faults of connections then hit the subject from its first byte on, and no other client.
    pub async fn endpoint(&self, address: SocketAddr, alpn: &[&str]) -> Result<Replica, Error> {
        let app = App::new(&self.cluster, &self.users, self.limits, View::live());
        let view = app.view.clone();
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        let door = EndpointIdentity { address, certificates: Arc::new(self.certificates.with_alpn(alpn)), number };
        let listening = Listening::start(door, app).await.map_err(|source| Error::Listen { address, source })?;
        let (cluster, users, ca_pem) = (self.cluster.clone(), self.users.clone(), self.ca_pem.clone());
        Ok(Replica { cluster, users, view, listening, ca_pem, number })
    }

    /// Starts another endpoint of the same cluster with the certificate and the client authorities of `identity`, like
    /// a kube-apiserver that gets them as files.
    pub async fn endpoint_as(&self, address: SocketAddr, identity: &Identity) -> Result<Replica, Error> {
        let app = App::new(&self.cluster, &self.users, self.limits, View::live());
        let view = app.view.clone();
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        let door = EndpointIdentity { address, certificates: Arc::new(Certificates::of(identity)?), number };
        let listening = Listening::start(door, app).await.map_err(|source| Error::Listen { address, source })?;
        let (cluster, users) = (self.cluster.clone(), self.users.clone());
        Ok(Replica { cluster, users, view, listening, ca_pem: identity.serving.certificate_pem.clone(), number })
    }

    /// The address at which the server listens, with the real port if the configuration has port 0.
    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// A kubeconfig file (YAML) for one configured user, which contains the authority's certificate and the user's
    /// token.
    pub fn kubeconfig(&self, user: &str) -> Option<String> {
        self.users.kubeconfig(user, &self.url(), &self.ca_pem)
    }

    /// A cursor over the commits of all resources from now on.
    pub fn tail(&self) -> Tail {
        Tail::new(self.cluster.clone())
    }

    pub fn faults(&self) -> &Faults {
        &self.cluster.faults
    }

    /// The counters of a user; all are zero for a user that the server has never seen.
    pub fn traffic(&self, user: &str) -> Traffic {
        self.cluster.audit.find(user).map(|audit| audit.traffic(self.cluster.now_us())).unwrap_or_default()
    }

    /// The permissions that a user's requests needed, sorted, at most 4096: the rules of the user's minimal Role.
    pub fn permissions(&self, user: &str) -> Vec<Permission> {
        self.cluster.permissions.of(user)
    }

    /// The permissions that [`Authorization::Rbac`] refused to a user, with their counts; at most 4096.
    pub fn refused(&self, user: &str) -> BTreeMap<Permission, u64> {
        self.cluster.permissions.refused(user)
    }

    /// All users that the server has seen, sorted; at most 1024.
    pub fn users(&self) -> Vec<String> {
        self.cluster.permissions.users()
    }

    /// The minimal roles and bindings of all users that the server has seen, as YAML.
    pub fn least_roles(&self) -> String {
        admin::least_roles(&self.cluster)
    }

    /// The newest requests of all users, oldest first; at most [`Limits::requests_max`].
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.cluster.audit.requests.snapshot()
    }

    /// Returns the total number of answered requests so far; of the requests after the first `seen`, the number of
    /// dropped requests; and the other requests in the order of their answers.
    pub fn requests_since(&self, seen: u64) -> (u64, u64, Vec<RequestRecord>) {
        self.cluster.audit.requests.since(seen)
    }

    /// Begins to record the state that the server shows to caches, for [`Server::take_shown`].
    pub fn follow_shown(&self) {
        self.cluster.audit.shown.follow();
    }

    /// The changes of the state that the server showed to caches since the last call, oldest first, and the number of
    /// lost changes. The newest 65,536 changes are kept. A cache is a watch that asks for bookmarks and for all objects
    /// of a kind.
    pub fn take_shown(&self) -> (Vec<Shown>, u64) {
        self.cluster.audit.shown.take()
    }

    /// Records the writes of users that faults may affect from now on, for [`Server::take_writes`].
    pub fn note_writes(&self) {
        self.cluster.audit.writes.follow();
    }

    /// The recorded writes since the last call, in the order of their answers, and the number of lost writes. The
    /// newest 16,384 writes are kept.
    pub fn take_writes(&self) -> (Vec<Written>, u64) {
        self.cluster.audit.writes.take()
    }

    /// Calls `look` with every stored object of every resource, ordered by the resource's name.
    pub fn each_object(&self, mut look: impl FnMut(&str, serde_json::Value)) {
        let catalogue = self.cluster.catalogue();
        let names: BTreeMap<String, _> =
            catalogue.originals().map(|resource| (resource.full_name.to_string(), resource.id)).collect();
        for (name, id) in names {
            let page = self.cluster.read(|store| store.list(id, None, store.revision(), None, usize::MAX, |_| true));
            for version in page.map(|page| page.items).unwrap_or_default() {
                look(&name, version.value());
            }
        }
    }

    /// Keeps every request of a user from now on, for [`Self::take_requests`].
    pub fn follow_requests(&self, user: &str) {
        self.cluster.audit.of(&Arc::from(user)).log.follow();
    }

    /// Whether a followed user has requested a resource (`packages.longhaul.dev`), even if no answer was sent.
    pub fn asked_for(&self, user: &str, resource: &str) -> bool {
        self.cluster.audit.find(user).is_some_and(|audit| audit.log.asked_for(resource))
    }

    /// The requests of a followed user since the last call, in the order of the answers, and the number of lost
    /// requests. At most 16,384 requests are kept. A watch appears when it is answered and again when it ends.
    pub fn take_requests(&self, user: &str) -> (Vec<RequestFact>, u64) {
        self.cluster.audit.find(user).map(|audit| audit.log.take()).unwrap_or_default()
    }

    /// The gaps in a user's streams that relists closed since the last call.
    pub fn gaps(&self, user: &str) -> Vec<Gap> {
        self.cluster.audit.find(user).map(|audit| audit.take_gaps()).unwrap_or_default()
    }

    /// How the server delivered one version of an object to one user.
    pub fn delivery(&self, user: &str, resource: &str, revision: u64) -> Delivery {
        let catalogue = self.cluster.catalogue();
        match (self.cluster.audit.find(user), catalogue.by_full_name(resource)) {
            (Some(audit), Some(resource)) => audit.delivery(resource.id, revision),
            _ => Delivery::NotSent,
        }
    }

    /// The deliveries to one user since `since_us` (microseconds since the epoch) of the versions in `revisions`
    /// (ascending), oldest first. The audit remembers a limited number, and returns at most 8 deliveries per version.
    pub fn sendings(&self, user: &str, resource: &str, revisions: &[u64], since_us: u64) -> Vec<Sending> {
        let catalogue = self.cluster.catalogue();
        match (self.cluster.audit.find(user), catalogue.by_full_name(resource)) {
            (Some(audit), Some(resource)) => audit.sendings(resource.id, revisions, since_us),
            _ => Vec::new(),
        }
    }

    /// The lines of a watch around one version: `around` lines before and after that version. Each line is cut around
    /// the object's name and revision.
    pub fn wire(&self, user: &str, wanted: &Wanted<'_>, around: usize) -> Vec<WireLine> {
        self.cluster.audit.find(user).map(|audit| audit.wire(wanted, around)).unwrap_or_default()
    }

    /// Gives a user a new token, writes the token to the user's file in [`Config::token_files`], and refuses the old
    /// token from now on. Returns the new token, or `None` if the user does not exist.
    pub fn rotate_token(&self, user: &str) -> Option<String> {
        self.cluster.rotate_token(user, Duration::ZERO).map(|(token, _)| token)
    }

    /// Lets the times that the server writes into objects jump ahead.
    pub fn jump(&self, by: Duration) {
        self.cluster.wall.jump(by);
    }

    /// Drops the history up to and including `revision`: a watch that resumes from an older revision gets 410.
    pub fn compact(&self, revision: u64) {
        self.cluster.compact(revision);
    }

    /// Restores the state at revision `to`, like an older backup, and sets the revision counter to `to`.
    ///
    /// `newer` and `watches` decide how the server treats clients that know revisions newer than `to`. A list with a
    /// `resourceVersion` beyond the restored state is refused with 504. The restore affects all clients, including the
    /// harness.
    pub fn rewind(&self, to: u64, newer: Newer, watches: Watches) -> Result<Rewound, RewindError> {
        self.cluster.rewind(to, newer, watches)
    }

    /// The newest restores, oldest first, at most 256. Commits after the n-th restore have the timeline n.
    pub fn rewinds(&self) -> Vec<Rewound> {
        self.cluster.rewinds()
    }

    /// The newest revision of the store.
    pub fn revision(&self) -> u64 {
        self.cluster.revision()
    }

    pub fn object_count(&self) -> usize {
        self.cluster.read(mock_store::Store::object_count)
    }

    /// Stops the server: it accepts no new connections, open requests get two seconds, watches end cleanly, then all
    /// connections are closed.
    pub async fn shutdown(self) {
        self.listening.shutdown().await;
    }
}

fn url(address: SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_unspecified() => format!("https://127.0.0.1:{}", address.port()),
        _ => format!("https://{address}"),
    }
}
