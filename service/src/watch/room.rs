//! The watch room put together: client, driver, witness, reconciler, and their end.
//!
//! Owns the tasks of this room.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::diagnostics::{Diagnostics, Metrics};
use super::driver::{Driver, Parts};
use super::queue::Queue;
use super::reconcile::Reconciler;
use super::store::Store;
use super::witness::{TargetError, Witness};
use crate::config::{self, Config};
use crate::kube::{Client, Cluster, KubeconfigError};

/// Where the resource is.
const PACKAGES_PATH: &str = "/apis/longhaul.dev/v1alpha1/packages";
/// Its name in observations and on pages.
const PACKAGES: &str = "packages.longhaul.dev";
/// How long workers may finish what they hold, and the witness its queue, at the end.
const STOP_MAX: Duration = Duration::from_secs(3);

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
    /// The witness is no address.
    #[error(transparent)]
    Witness(#[from] TargetError),
}

/// The running watch.
pub struct Room {
    diagnostics: Arc<Diagnostics>,
    queue: Arc<Queue>,
    driver: JoinSet<()>,
    workers: JoinSet<()>,
    delivery: JoinSet<()>,
}

impl Room {
    /// Starts to list and watch.
    pub fn start(config: &Config, options: &Options, registry: &mut Registry) -> Result<Self, Error> {
        let config::Resource::Packages = config.watch.resource;
        let cluster = Cluster::find(config.kubeconfig.as_deref())?;
        let client = Arc::new(Client::new(cluster, config.watch.transport));
        let store = Store::default();
        let metrics = Metrics::register(registry);
        let settings = &config.watch;
        // A stream may be silent for its limit, then back off, then open and list: beyond that nothing is under way.
        let stall_limit = settings.silence_limit + settings.server_timeout + settings.backoff_max;
        let diagnostics = Diagnostics::new(PACKAGES, store.clone(), metrics.clone(), stall_limit);
        let queue = Arc::new(Queue::new(config.reconcile.queue, metrics.queued.clone()));
        let mut delivery_task = JoinSet::new();
        let witness = match &options.witness_url {
            None => Witness::absent(),
            Some(url) => {
                let (witness, delivery) = Witness::new(url)?;
                delivery_task.spawn(delivery.run());
                witness
            }
        };
        let mut workers = JoinSet::new();
        let reconciler = Reconciler::new(
            config.reconcile.retries.clone(),
            Arc::clone(&client),
            store.clone(),
            Arc::clone(&queue),
            metrics.reconciles,
        );
        let reconciler = Arc::new(reconciler);
        for _ in 0..config.reconcile.workers {
            workers.spawn(Arc::clone(&reconciler).work());
        }
        let driver = Driver::new(Parts {
            settings: settings.clone(),
            path: PACKAGES_PATH,
            resource: PACKAGES,
            client,
            store,
            diagnostics: Arc::clone(&diagnostics),
            witness,
            queue: Arc::clone(&queue),
        });
        #[cfg(feature = "planted-bugs")]
        let driver = driver.with_planted(options.planted);
        let mut driver_task = JoinSet::new();
        driver_task.spawn(driver.run());
        Ok(Self { diagnostics, queue, driver: driver_task, workers, delivery: delivery_task })
    }

    /// What the watch says about itself.
    pub fn diagnostics(&self) -> &Arc<Diagnostics> {
        &self.diagnostics
    }

    /// Waits until a task ends that never should; answers why.
    pub async fn broken(&mut self) -> String {
        let (name, ended) = tokio::select! {
            Some(ended) = self.driver.join_next() => ("the driver", ended),
            Some(ended) = self.workers.join_next() => ("a worker", ended),
            Some(ended) = self.delivery.join_next() => ("the witness", ended),
        };
        match ended {
            Ok(()) => format!("{name} ended by itself"),
            Err(error) => format!("{name}: {error}"),
        }
    }

    /// Stops watching, lets the workers finish what they hold, and delivers the last observations.
    pub async fn stop(mut self) {
        self.driver.shutdown().await;
        self.queue.close();
        let finish = async {
            while self.workers.join_next().await.is_some() {}
            // The driver held the last entrance to the queue, so the delivery ends when it is empty.
            while self.delivery.join_next().await.is_some() {}
        };
        if timeout(STOP_MAX, finish).await.is_err() {
            tracing::warn!("the watch was stopped with work under way");
        }
    }
}
