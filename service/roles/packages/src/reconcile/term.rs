//! A term: the time during which this process reconciles, from its election (or start) to the loss of the Lease (or the
//! end).
//!
//! This module owns the tasks of the reconciler during a term. The reconciler's memory is dropped at the end of the
//! term, because another process may reconcile next.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Reconciler;
use super::api::Api;
use super::inbox::Inbox;
use super::orphans::Orphans;
use super::policies::Applied;
use crate::config;

use service_core::kube::Client;
use service_watch::Store;
use service_watch::Tenure;
use service_watch::{Metrics, Queue};

pub struct Parts {
    /// Settings of the reconciler: workers, retries and grouping of packages.
    pub settings: config::Packages,
    pub client: Arc<Client>,
    pub packages: Store,
    pub policies: Store<Applied>,
    /// The inbox that receives the events of the watches.
    pub inbox: Arc<Inbox>,
    pub metrics: Metrics,
}

pub struct Term<'a> {
    parts: &'a Parts,
    reconciler: Arc<Reconciler>,
    workers: JoinSet<()>,
    sweeper: JoinSet<()>,
}

impl<'a> Term<'a> {
    /// Starts to reconcile all existing objects while `tenure` is valid.
    pub fn start(parts: &'a Parts, tenure: Tenure) -> Self {
        let reconciler = Arc::new(Reconciler {
            retries: parts.settings.retries.clone(),
            api: Api::new(Arc::clone(&parts.client)),
            store: parts.packages.clone(),
            policies: parts.policies.clone(),
            owners: Arc::clone(&parts.inbox.owners),
            queue: Queue::new(parts.settings.queue, parts.metrics.queued.clone()),
            orphans: Orphans::default(),
            tenure,
            memos: Mutex::default(),
            results: parts.metrics.reconciles.clone(),
        });
        let (mut workers, mut sweeper) = (JoinSet::new(), JoinSet::new());
        for _ in 0..parts.settings.workers {
            workers.spawn(Arc::clone(&reconciler).work());
        }
        sweeper.spawn(Arc::clone(&reconciler).sweep());
        parts.inbox.open(&reconciler);
        parts.metrics.leader.set(1);
        Self { parts, reconciler, workers, sweeper }
    }

    pub async fn broken(&mut self) -> String {
        let ended = tokio::select! {
            Some(ended) = self.workers.join_next() => ended,
            Some(ended) = self.sweeper.join_next() => ended,
        };
        ended.map_or_else(|error| format!("a worker: {error}"), |()| "a worker ended by itself".into())
    }

    /// Lets the workers finish their objects, for at most `max`.
    pub async fn finish(mut self, max: Duration) {
        self.parts.inbox.close();
        self.reconciler.queue.close();
        self.sweeper.shutdown().await;
        if timeout(max, async { while self.workers.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!(name: crate::events::RECONCILE_CUT, "the reconciler was stopped with work under way");
        }
        self.cut().await;
    }

    /// Stops the workers at once, even during a write, because another replica may lead from now on.
    pub async fn cut(mut self) {
        self.parts.inbox.close();
        self.workers.shutdown().await;
        self.sweeper.shutdown().await;
        self.parts.metrics.queued.set(0);
        self.parts.metrics.leader.set(0);
    }
}
