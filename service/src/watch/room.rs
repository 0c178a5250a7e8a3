//! The watch room put together: client, drivers, witness, reconciler, and their end.
//!
//! Owns the tasks of this room.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::diagnostics::{Diagnostics, Metrics};
use super::driver::{self, Driver};
use super::lease::{Elector, Tenure};
use super::object::Package;
use super::reconcile::{self, Applied, Inbox, Term};
use super::store::Store;
use super::witness::{TargetError, Witness};
use crate::config::{self, Config};
use crate::edge::Probe;
use crate::kube::{Client, Cluster, KubeconfigError};

/// How long workers may finish what they hold at the end.
const FINISH_MAX: Duration = Duration::from_secs(3);
/// Why the reconciler ends when it is told to.
const STOPPED: &str = "the reconciler was stopped";
/// How long the witness may take its queue at the end.
const DELIVER_MAX: Duration = Duration::from_secs(3);

/// What the environment, not the configuration, decides.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where accepted events are posted.
    pub witness_url: Option<String>,
    /// A planted bug.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<crate::planted::Bug>,
}

/// Why the room does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No way to the API server.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// An election without a place for its lease.
    #[error("reconcile.lease.namespace: is needed beside `enabled: true` outside of a pod")]
    LeaseNamespace,
    /// The witness is no address.
    #[error(transparent)]
    Witness(#[from] TargetError),
}

/// The running watch.
pub struct Room {
    packages: Arc<Diagnostics<Package>>,
    policies: Arc<Diagnostics<Applied>>,
    drivers: JoinSet<()>,
    reconciliation: JoinSet<String>,
    delivery: JoinSet<()>,
    follower: JoinSet<()>,
    stop: CancellationToken,
}

/// The reconciler and what decides when it works.
struct Reconciliation {
    parts: reconcile::Parts,
    packages: Arc<Diagnostics<Package>>,
    policies: Arc<Diagnostics<Applied>>,
    elector: Option<Elector>,
    stop: CancellationToken,
}

impl Room {
    /// Starts to list and watch.
    pub fn start(config: &Config, options: &Options, registry: &mut Registry) -> Result<Self, Error> {
        let config::Resource::Packages = config.watch.resource;
        let cluster = Cluster::find(config.kubeconfig.as_deref())?;
        let pod_namespace = cluster.namespace.clone();
        let client = Arc::new(Client::new(cluster, config.watch.transport));
        let metrics = Metrics::register(registry);
        let settings = &config.watch;
        // A stream may be silent for its limit, then back off, then open and list: beyond that nothing is under way.
        let stall_limit = settings.silence_limit + settings.server_timeout + settings.backoff_max;
        let mut delivery = JoinSet::new();
        let witness = match &options.witness_url {
            None => Witness::absent(),
            Some(url) => {
                let (witness, end) = Witness::new(url)?;
                delivery.spawn(end.run());
                witness
            }
        };
        let (package_store, policy_store) = (Store::default(), Store::default());
        let packages = Diagnostics::new(package_store.clone(), metrics.clone(), stall_limit);
        let policies = Diagnostics::new(policy_store.clone(), metrics.clone(), stall_limit);
        let inbox = Arc::new(Inbox::default());
        let mut drivers = JoinSet::new();
        let to_inbox = Arc::clone(&inbox);
        let driver = Driver::new(driver::Parts {
            settings: settings.clone(),
            client: Arc::clone(&client),
            store: package_store.clone(),
            diagnostics: Arc::clone(&packages),
            witness,
            sink: Box::new(move |event| to_inbox.package(event)),
        });
        #[cfg(feature = "planted-bugs")]
        let driver = driver.with_planted(options.planted);
        drivers.spawn(driver.run());
        let to_inbox = Arc::clone(&inbox);
        let driver = Driver::new(driver::Parts {
            settings: settings.clone(),
            client: Arc::clone(&client),
            store: policy_store.clone(),
            diagnostics: Arc::clone(&policies),
            // Who asks for a witness judges the view of packages; policies are our own affair.
            witness: Witness::absent(),
            sink: Box::new(move |event| to_inbox.policy(event)),
        });
        drivers.spawn(driver.run());
        let stop = CancellationToken::new();
        let mut follower = JoinSet::new();
        follower.spawn(Arc::clone(&client).follow_files());
        let elector = elector(&config.reconcile.lease, pod_namespace, &client)?;
        let parts = reconcile::Parts {
            settings: config.reconcile.clone(),
            client,
            packages: package_store,
            policies: policy_store,
            inbox,
            metrics,
            #[cfg(feature = "planted-bugs")]
            planted: options.planted,
        };
        let work = Reconciliation {
            parts,
            packages: Arc::clone(&packages),
            policies: Arc::clone(&policies),
            elector,
            stop: stop.clone(),
        };
        let mut reconciliation = JoinSet::new();
        reconciliation.spawn(work.run());
        Ok(Self { packages, policies, drivers, reconciliation, delivery, follower, stop })
    }

    /// What the watches say about themselves.
    pub fn probes(&self) -> [Arc<dyn Probe>; 2] {
        [Arc::clone(&self.packages) as Arc<dyn Probe>, Arc::clone(&self.policies) as Arc<dyn Probe>]
    }

    /// Waits until a task ends that never should; answers why.
    pub async fn broken(&mut self) -> String {
        let (name, ended) = tokio::select! {
            Some(ended) = self.drivers.join_next() => ("a driver", ended),
            Some(ended) = self.reconciliation.join_next() => match ended {
                Ok(why) => return why,
                Err(error) => ("the reconciler", Err(error)),
            },
            Some(ended) = self.delivery.join_next() => ("the witness", ended),
            Some(ended) = self.follower.join_next() => ("the reader of the connection's files", ended),
        };
        match ended {
            Ok(()) => format!("{name} ended by itself"),
            Err(error) => format!("{name}: {error}"),
        }
    }

    /// Stops watching, lets the workers finish what they hold, and delivers the last observations.
    pub async fn stop(mut self) {
        self.drivers.shutdown().await;
        self.stop.cancel();
        while self.reconciliation.join_next().await.is_some() {}
        // The driver held the last entrance to the queue, so the delivery ends when it is empty.
        if timeout(DELIVER_MAX, async { while self.delivery.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("the witness did not take the last observations in time");
        }
    }
}

impl Reconciliation {
    /// Reconciles until it is told to stop; answers why it ended.
    async fn run(mut self) -> String {
        let stop = self.stop.clone();
        // Before both lists are done, what is missing cannot be told from what was not listed yet.
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

    /// Reconciles whenever the lease is ours.
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
                    tracing::warn!(why, "this replica does not lead any more");
                }
                () = self.stop.cancelled() => {
                    // Nobody else may begin before the last write is done: the lease is given back after it.
                    term.finish(FINISH_MAX.min(elector.tenure().left())).await;
                    elector.release().await;
                    return STOPPED.into();
                }
            }
        }
    }
}

/// The replica's part in the election, when there is one.
fn elector(
    settings: &config::Lease,
    pod_namespace: Option<String>,
    client: &Arc<Client>,
) -> Result<Option<Elector>, Error> {
    let namespace = settings.namespace.clone().or(pod_namespace);
    match (settings.enabled, namespace) {
        (Some(false), _) | (None, None) => Ok(None),
        (Some(true), None) => Err(Error::LeaseNamespace),
        (_, Some(namespace)) => Ok(Some(Elector::new(settings.clone(), &namespace, Arc::clone(client)))),
    }
}
