//! The control plane of a run: the mock in this process, or a real control plane (separate programs, with or without a
//! node).
//!
//! Only the mock knows its traffic and the sender of each request. For a real control plane, traffic and senders are
//! unknown, which judges and reports must handle. No other module of the run distinguishes mock and real control
//! planes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mock_faults::Faults;

mod real;

use super::account::Account;
use super::install::{self, Api};
use crate::scenario::{ControlPlaneKind, Scenario};

/// Interval of bookmarks of a real API server.
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// Maximum number of versions that the mock keeps. Even a run of a hundred hours needs only the newest few versions.
const HISTORY_EVENTS_MAX: usize = 100_000;

pub(super) use real::Real;

/// The user that sends load and churn.
pub(super) const HARNESS: &str = "harness";

/// The control plane, which serves the Kubernetes API.
pub(super) enum Plane {
    /// The mock in this process, which can inject faults and shows its traffic.
    Mock(Box<Mock>),
    /// A real control plane, and the account of the subject at this control plane.
    Real(Real, Account),
}

pub(super) struct Mock {
    pub(super) server: mock_kube::Server,
    /// The endpoint that only the subject uses, so that connection faults hit no other client.
    endpoint: mock_kube::Replica,
    /// The moment from which the mock counts its times.
    pub(super) epoch: Instant,
    ca_pem: String,
    harness_token: String,
    account: Account,
}

impl Plane {
    /// Starts the control plane that the scenario names. A real control plane writes its logs into `logs`. The mock's
    /// certificate also has `names`, the addresses of proxies in front of the mock.
    pub(super) async fn start(
        scenario: &Scenario,
        authority: &mock_pki::Authority,
        directory: &Path,
        names: Vec<String>,
        pace: Option<go_rules::tls::Pace>,
    ) -> Result<Self> {
        let account = Account::of(scenario)?;
        let mut plane = match scenario.control_plane.kind {
            ControlPlaneKind::Mock => {
                Self::Mock(Box::new(Box::pin(mock(scenario, authority, directory, names, (account, pace))).await?))
            }
            _ => Self::Real(Box::pin(Real::start(&scenario.control_plane, directory, &account)).await?, account),
        };
        let url = plane.url();
        let api = Api { url: &url, ca_pem: plane.ca_pem(), token: plane.harness_token(), mark: plane.mark() };
        plane.account().apply(&api).await.context("failed to give the subject its rights")?;
        // The mock serves a resource once its definition is answered; a real server writes into the definition for a
        // while.
        let quiet = if plane.mock().is_some() { Duration::ZERO } else { install::QUIET };
        let manifests = scenario.control_plane.manifests().map_err(anyhow::Error::msg)?;
        super::manifests::apply(&api, &manifests, quiet).await?;
        if plane.mark().is_none() {
            super::manifests::apply(&api, &super::registration::named(scenario)?, Duration::ZERO).await?;
        }
        if let Self::Real(real, account) = &mut plane {
            real.admit(&account.user).await?;
        }
        Ok(plane)
    }

    fn account(&self) -> &Account {
        match self {
            Self::Mock(mock) => &mock.account,
            Self::Real(_, account) => account,
        }
    }

    /// The user name of the subject. Faults, gaps and traffic are recorded by user, and only the subject has this name.
    pub(super) fn subject(&self) -> &str {
        &self.account().user
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Mock(mock) => mock.server.url(),
            Self::Real(real, _) => real.provider().url(),
        }
    }

    /// The CA certificate of the control plane, as PEM.
    pub(super) fn ca_pem(&self) -> &str {
        match self {
            Self::Mock(mock) => &mock.ca_pem,
            Self::Real(real, _) => real.provider().ca_pem(),
        }
    }

    pub(super) fn harness_token(&self) -> &str {
        match self {
            Self::Mock(mock) => &mock.harness_token,
            Self::Real(real, _) => real.token(HARNESS),
        }
    }

    pub(super) fn subject_address(&self) -> SocketAddr {
        match self {
            Self::Mock(mock) => mock.endpoint.address(),
            Self::Real(real, _) => real.provider().address(),
        }
    }

    pub(super) fn nodes(&self) -> Option<kind::provider::Nodes<'_>> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().nodes(),
        }
    }

    /// Key and value of the label that all created objects must have; `None` if no label is needed.
    pub(super) fn mark(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().mark(),
        }
    }

    /// The programs of the control plane, if they are separate processes.
    pub(super) fn machinery(&self) -> Option<kind::machinery::Machinery> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().machinery(),
        }
    }

    /// The cluster's control planes, if it has several and one can be stopped.
    pub(super) fn leaders(&self) -> Option<kind::leaders::Leaders> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().leaders(),
        }
    }

    /// The address at which the control plane reaches listeners on this machine.
    pub(super) fn machine(&self) -> Ipv4Addr {
        match self {
            Self::Mock(_) => Ipv4Addr::LOCALHOST,
            Self::Real(real, _) => real.provider().machine(),
        }
    }

    pub(super) fn kubeconfig(&self) -> Option<String> {
        match self {
            Self::Mock(mock) => mock.endpoint.kubeconfig(self.subject()),
            Self::Real(real, _) => real.provider().kubeconfig(self.subject()),
        }
    }

    /// A kubeconfig for a user of a real control plane; `None` for the mock.
    pub(super) fn kubeconfig_of(&self, user: &str) -> Option<String> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().kubeconfig(user),
        }
    }

    /// The version of a real control plane.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Mock(_) => "mock".to_owned(),
            Self::Real(real, _) => real.describe(),
        }
    }

    /// The faults of the control plane, if it can inject any.
    pub(super) fn faults(&self) -> Option<&Faults> {
        self.mock().map(|mock| mock.server.faults())
    }

    /// The mock; `None` for a real control plane.
    pub(super) fn mock(&self) -> Option<&Mock> {
        match self {
            Self::Mock(mock) => Some(mock),
            Self::Real(..) => None,
        }
    }

    /// The reason why a real control plane has ended, if it has.
    pub(super) fn ended(&self) -> Option<String> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().ended(),
        }
    }

    pub(super) fn audit_log(&self) -> Option<PathBuf> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().audit_log(),
        }
    }

    /// The folder with the control plane's logs, if it writes any.
    pub(super) fn logs(&self) -> Option<PathBuf> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().logs(),
        }
    }

    /// Copies the logs of a cluster into this folder, if the cluster keeps its logs elsewhere.
    pub(super) async fn keep_logs(&self, folder: &Path) -> Result<()> {
        match self {
            Self::Mock(_) => Ok(()),
            Self::Real(real, _) => Ok(real.provider().keep_logs(folder).await?),
        }
    }

    pub(super) async fn stop(self) {
        match self {
            Self::Mock(mock) => {
                mock.endpoint.shutdown().await;
                mock.server.shutdown().await;
            }
            Self::Real(real, _) => real.stop().await,
        }
    }
}

/// The file name of the subject's token, if a fault replaces the token during the run.
const TOKEN_FILE: &str = "token";

async fn mock(
    scenario: &Scenario,
    authority: &mock_pki::Authority,
    directory: &Path,
    names: Vec<String>,
    (account, pace): (Account, Option<go_rules::tls::Pace>),
) -> Result<Mock> {
    let epoch = Instant::now();
    let (subject_token, harness_token) = (token(scenario.seed, &account.user), token(scenario.seed, HARNESS));
    let mut config = mock_kube::Config::new();
    config.names = names;
    config.epoch = epoch;
    config.compress = scenario.compression();
    config.webhook_clock = pace;
    let every = scenario.control_plane.bookmarks_every.0;
    // The scenario's interval is mostly shorter than a real server's minute.
    config.bookmarks_every = if config.compress > 1 { every.min(BOOKMARKS_EVERY / config.compress) } else { every };
    config.history_max_events = HISTORY_EVENTS_MAX;
    config.seed = scenario.seed;
    config.workloads =
        scenario.control_plane.workloads.map(|crate::scenario::Workloads { ready_after, ends_after, nodes }| {
            mock_kube::Workloads { ready_after: ready_after.0, ends_after: ends_after.map(|after| after.0), nodes }
        });
    if let Some(looks) = scenario.looks() {
        config.looks = looks;
    }
    config.crds = vec![kind::manifests::package_crd().context("failed to read the Package CRD")?];
    let subject = mock_kube::User { name: account.user.clone(), groups: account.groups.clone(), token: subject_token };
    config.users = vec![subject, mock_kube::User::admin(HARNESS, &harness_token)];
    if account.is_limited() {
        config.authorization = mock_kube::Authorization::Rbac;
    }
    // Otherwise the token lies in the kubeconfig: kopf reads no token file.
    if scenario.faults.iter().any(|fault| fault.name == mock_faults::Name::TokenRotated) {
        config.token_files.insert(account.user.clone(), directory.join(TOKEN_FILE));
    }
    let server = mock_kube::Server::start(config, authority).await.context("failed to start the mock API server")?;
    server.faults().target_users([account.user.as_str()]);
    server.follow_requests(&account.user);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = server.endpoint(address, scenario.control_plane.http.alpn()).await;
    let endpoint = endpoint.context("failed to start the subject's endpoint of the mock API server")?;
    server.faults().target_endpoints([endpoint.number()]);
    Ok(Mock { server, endpoint, epoch, ca_pem: authority.ca_pem().to_owned(), harness_token, account })
}

/// A token for this run. The token only protects ports on loopback from mistakes. The process ID in the token separates
/// two runs on one machine.
pub(crate) fn token(seed: u64, user: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(format!("{seed}/{user}/{}", std::process::id()));
    hex::encode(&digest[..16])
}
