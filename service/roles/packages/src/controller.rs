//! The controller of Packages: starts and ends client, watches, witness and reconciler.
//!
//! This module owns the tasks of the Package controller.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use service_watch::config::{Lease, Resource, Watch};
use service_watch::{Diagnostics, Elector, Informer, Metrics, Package, Start, TargetError, Tenure};

use crate::config::Packages;
use crate::reconcile::{self, Applied, Inbox, Term};
use service_core::config::Kubernetes;
use service_core::edge::Probe;
use service_core::kube::{Client, Cluster, KubeconfigError};

/// Time that workers get to finish their objects when the process ends.
const FINISH_MAX: Duration = Duration::from_secs(3);
/// The reason that is reported if the reconciler was stopped on purpose.
const STOPPED: &str = "the reconciler was stopped";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration of the API server connection cannot be read.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error("packages.lease.namespace: is needed beside `enabled: true` outside of a pod")]
    LeaseNamespace,
    #[error(transparent)]
    Witness(#[from] TargetError),
}

pub struct Controller {
    packages: Informer<Package>,
    policies: Informer<Applied>,
    reconciliation: JoinSet<String>,
    follower: JoinSet<()>,
    stop: CancellationToken,
}

/// The reconciler, and the leader election that decides when it runs.
struct Reconciliation {
    parts: reconcile::Parts,
    packages: Arc<Diagnostics<Package>>,
    policies: Arc<Diagnostics<Applied>>,
    elector: Option<Elector>,
    stop: CancellationToken,
}

impl Controller {
    pub fn start(start: &mut service_core::role::Start<'_>, metrics: &Metrics) -> Result<Self, Error> {
        let (settings, reconcile) = (start.config.of::<Watch>(), start.config.of::<Packages>());
        let Resource::Packages = settings.resource;
        let cluster = Cluster::find(start.config.of::<Kubernetes>().kubeconfig.as_deref())?;
        let pod_namespace = cluster.namespace.clone();
        let client = Arc::new(Client::new(cluster, settings.transport));
        let inbox = Arc::new(Inbox::default());
        let to_inbox = Arc::clone(&inbox);
        let packages = Informer::start(Start {
            source: Package::SOURCE,
            settings,
            client: Arc::clone(&client),
            metrics,
            witness_url: start.witness_url.take(),
            sink: Box::new(move |event| {
                to_inbox.package(event);
                None
            }),
        })?;
        let to_inbox = Arc::clone(&inbox);
        let policies = Informer::start(Start {
            source: Applied::source(),
            settings,
            client: Arc::clone(&client),
            metrics,
            // A witness judges the view of packages; policies are internal.
            witness_url: None,
            sink: Box::new(move |event| {
                to_inbox.policy(event);
                None
            }),
        })?;
        let stop = CancellationToken::new();
        let mut follower = JoinSet::new();
        follower.spawn(Arc::clone(&client).follow_files());
        let elector = elector(&reconcile.lease, pod_namespace, &client)?;
        let parts = reconcile::Parts {
            settings: reconcile.clone(),
            client,
            packages: packages.view().store().clone(),
            policies: policies.view().store().clone(),
            inbox,
            metrics: metrics.clone(),
        };
        let work = Reconciliation {
            parts,
            packages: Arc::clone(packages.view().diagnostics()),
            policies: Arc::clone(policies.view().diagnostics()),
            elector,
            stop: stop.clone(),
        };
        let mut reconciliation = JoinSet::new();
        reconciliation.spawn(work.run());
        Ok(Self { packages, policies, reconciliation, follower, stop })
    }

    pub fn probes(&self) -> [Arc<dyn Probe>; 2] {
        [self.packages.probe(), self.policies.probe()]
    }

    pub async fn broken(&mut self) -> String {
        let (name, ended) = tokio::select! {
            why = self.packages.broken() => return why,
            why = self.policies.broken() => return why,
            Some(ended) = self.reconciliation.join_next() => match ended {
                Ok(why) => return why,
                Err(error) => ("the reconciler", Err(error)),
            },
            Some(ended) = self.follower.join_next() => ("the reader of the connection's files", ended),
        };
        match ended {
            Ok(()) => format!("{name} ended by itself"),
            Err(error) => format!("{name}: {error}"),
        }
    }

    /// Stops the watches, lets workers finish their objects, and delivers the last observations.
    pub async fn stop(mut self) {
        self.packages.stop().await;
        self.policies.stop().await;
        self.stop.cancel();
        while self.reconciliation.join_next().await.is_some() {}
        self.packages.delivered().await;
    }
}

impl Reconciliation {
    /// Reconciles until stopped; returns the reason why it ended.
    async fn run(mut self) -> String {
        let stop = self.stop.clone();
        // Before both lists are done, missing objects cannot be distinguished from unlisted ones.
        let listed = async {
            self.packages.first_list().await;
            self.policies.first_list().await;
        };
        tokio::select! {
            () = listed => {}
            () = stop.cancelled() => return STOPPED.into(),
        }
        if let Some(elector) = self.elector.take() {
            return self.elected(elector).await;
        }
        let mut term = Term::start(&self.parts, Tenure::default());
        tokio::select! {
            why = term.broken() => return why,
            () = stop.cancelled() => {}
        }
        term.finish(FINISH_MAX).await;
        STOPPED.into()
    }

    /// Reconciles while this replica holds the Lease.
    async fn elected(self, mut elector: Elector) -> String {
        loop {
            tokio::select! {
                () = elector.acquire() => {}
                () = self.stop.cancelled() => return STOPPED.into(),
            }
            let mut term = Term::start(&self.parts, elector.tenure());
            tokio::select! {
                why = term.broken() => return why,
                why = elector.hold() => {
                    term.cut().await;
                    tracing::warn!(name: service_watch::events::LEASE_LOST, why, "this replica does not lead any more");
                }
                () = self.stop.cancelled() => {
                    // No other replica may begin before the last write is done: the lease is given back after it.
                    term.finish(FINISH_MAX.min(elector.tenure().left())).await;
                    elector.release().await;
                    return STOPPED.into();
                }
            }
        }
    }
}

/// The replica's participation in the leader election; `None` if the configuration has no election.
fn elector(settings: &Lease, pod_namespace: Option<String>, client: &Arc<Client>) -> Result<Option<Elector>, Error> {
    let namespace = settings.namespace.clone().or(pod_namespace);
    match (settings.enabled, namespace) {
        (Some(false), _) | (None, None) => Ok(None),
        (Some(true), None) => Err(Error::LeaseNamespace),
        (_, Some(namespace)) => Ok(Some(Elector::new(settings.clone(), &namespace, Arc::clone(client)))),
    }
}
