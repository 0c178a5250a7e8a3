//! The control plane of a run: the mock inside this process, or a real one of programs, alone or with a node.
//!
//! Facts that only the mock has (its traffic, the sender of each request) are absent for a real one, and judges and
//! reports handle that. No other part of the run knows which of the two it is.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mock_faults::Faults;

mod real;

use super::account::Account;
use super::install::{self, Api};
use crate::scenario::{ControlPlaneKind, Scenario};

/// Interval of a real server's bookmarks.
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// The most versions that the mock keeps. A hundred hours never need more than the newest few.
const HISTORY_EVENTS_MAX: usize = 100_000;

pub(super) use real::Real;

/// The user of load and churn.
pub(super) const HARNESS: &str = "harness";

/// The server of the Kubernetes API.
pub(super) enum Plane {
    /// Inside this process, with faults and an inside view.
    Mock(Box<Mock>),
    /// Real programs on this machine, and the subject's account there.
    Real(Real, Account),
}

/// The mock and its settings.
pub(super) struct Mock {
    pub(super) server: mock_kube::Server,
    /// The subject's own endpoint: connection faults act on it alone.
    endpoint: mock_kube::Replica,
    /// Zero of the mock's times.
    pub(super) epoch: Instant,
    ca_pem: String,
    harness_token: String,
    account: Account,
}

impl Plane {
    /// Starts the control plane that the scenario names; a real one leaves its logs in `logs`. `names` are further
    /// addresses for the mock's certificate: those of proxies in front of it.
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

    /// The subject's user. Faults, gaps and traffic are kept by user, and only the subject has this one.
    pub(super) fn subject(&self) -> &str {
        &self.account().user
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Mock(mock) => mock.server.url(),
            Self::Real(real, _) => real.provider().url(),
        }
    }

    /// The authority of its certificate.
    pub(super) fn ca_pem(&self) -> &str {
        match self {
            Self::Mock(mock) => &mock.ca_pem,
            Self::Real(real, _) => real.provider().ca_pem(),
        }
    }

    /// The token of the harness itself.
    pub(super) fn harness_token(&self) -> &str {
        match self {
            Self::Mock(mock) => &mock.harness_token,
            Self::Real(real, _) => real.token(HARNESS),
        }
    }

    /// The address that the subject connects to.
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

    /// The label, key and value, that all created objects must have.
    pub(super) fn mark(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().mark(),
        }
    }

    /// Its programs, if they are separate processes.
    pub(super) fn machinery(&self) -> Option<kind::machinery::Machinery> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().machinery(),
        }
    }

    /// Its control planes, if one can be stopped.
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

    /// A kubeconfig for a user of a real control plane.
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

    /// Its faults, if it can play them.
    pub(super) fn faults(&self) -> Option<&Faults> {
        self.mock().map(|mock| mock.server.faults())
    }

    /// The mock, for facts that only it has.
    pub(super) fn mock(&self) -> Option<&Mock> {
        match self {
            Self::Mock(mock) => Some(mock),
            Self::Real(..) => None,
        }
    }

    /// The reason why a real control plane is gone, if it is.
    pub(super) fn ended(&self) -> Option<String> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().ended(),
        }
    }

    /// The path of a real control plane's audit log.
    pub(super) fn audit_log(&self) -> Option<PathBuf> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().audit_log(),
        }
    }

    /// The folder of its logs, if it writes any.
    pub(super) fn logs(&self) -> Option<PathBuf> {
        match self {
            Self::Mock(_) => None,
            Self::Real(real, _) => real.provider().logs(),
        }
    }

    /// Writes the logs of a cluster that keeps them elsewhere.
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

/// The file with the subject's token, if a fault replaces it while the subject runs.
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
    // The scenario's interval is mostly less than a server's minute already.
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

/// A token for this run. It only protects loopback ports from mistakes: the process ID keeps two runs on one machine
/// apart.
pub(crate) fn token(seed: u64, user: &str) -> String {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(format!("{seed}/{user}/{}", std::process::id()));
    hex::encode(&digest[..16])
}
