//! Runs the tasks of one watched resource: driver, store, diagnostics and witness.
//!
//! This module starts and ends the tasks of one watch. [`Start::sink`] gets the events of the watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::diagnostics::Diagnostics;
use super::driver::{Driver, Parts, Sink};
use super::object::{Key, Kind, Object};
use super::source::Source;
use super::store::Store;
use super::witness::{TargetError, Witness};
use crate::config;
use service_core::edge::Probe;
use service_core::kube::Client;
use service_core::watches::Metrics;

/// Longest time for which the ending process waits until the witness has taken all queued observations.
const DELIVER_MAX: Duration = Duration::from_secs(3);

pub struct Start<'a, K> {
    pub source: Source,
    pub settings: &'a config::Watch,
    pub client: Arc<Client>,
    pub metrics: &'a Metrics,
    pub witness_url: Option<&'a str>,
    /// The function that takes every accepted event.
    pub sink: Sink<K>,
}

pub struct Informer<K> {
    view: View<K>,
    driver: JoinSet<()>,
    delivery: JoinSet<()>,
}

/// Read access to the existing objects of an informer. Clones of a [`View`] share the objects.
pub struct View<K> {
    store: Store<K>,
    diagnostics: Arc<Diagnostics<K>>,
    changes: channel::Receiver<u64>,
}

impl<K> Clone for View<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), diagnostics: Arc::clone(&self.diagnostics), changes: self.changes.clone() }
    }
}

impl<K: Kind> Informer<K> {
    pub fn start(start: Start<'_, K>) -> Result<Self, TargetError> {
        Self::start_with(start, Store::default())
    }

    /// Like [`Self::start`], with a `store` that decides which part of each object is kept.
    pub fn start_with(start: Start<'_, K>, store: Store<K>) -> Result<Self, TargetError> {
        let settings = start.settings;
        // A stream may be silent for its limit, then back off, then open and list: after that nothing is under way.
        let stall_limit = settings.silence_limit + settings.server_timeout + settings.backoff_max;
        let mut delivery = JoinSet::new();
        let witness = match start.witness_url {
            None => Witness::absent(),
            Some(url) => {
                let (witness, end) = Witness::new(&start.source.resource, url)?;
                delivery.spawn(end.run());
                witness
            }
        };
        let diagnostics = Diagnostics::new(start.source.clone(), store.clone(), start.metrics.clone(), stall_limit);
        let (changed, changes) = channel::channel(0);
        let sink = start.sink;
        let parts = Parts {
            source: start.source,
            settings: settings.clone(),
            client: start.client,
            store: store.clone(),
            diagnostics: Arc::clone(&diagnostics),
            witness,
            sink: Box::new(move |event| {
                let room = sink(event);
                changed.send_modify(|count| *count += 1);
                room
            }),
        };
        let mut driver = JoinSet::new();
        driver.spawn(Driver::new(parts).run());
        Ok(Self { view: View { store, diagnostics, changes }, driver, delivery })
    }

    pub fn view(&self) -> &View<K> {
        &self.view
    }

    pub fn probe(&self) -> Arc<dyn Probe> {
        Arc::clone(&self.view.diagnostics) as _
    }

    pub async fn broken(&mut self) -> String {
        let (name, ended) = tokio::select! {
            Some(ended) = self.driver.join_next() => ("a driver", ended),
            Some(ended) = self.delivery.join_next() => ("the witness", ended),
            else => return std::future::pending().await,
        };
        match ended {
            Ok(()) => format!("{name} ended by itself"),
            Err(error) => format!("{name}: {error}"),
        }
    }

    /// Stops the watch. [`Self::delivered`] still delivers queued observations.
    pub async fn stop(&mut self) {
        self.driver.shutdown().await;
    }

    /// Waits until the witness has taken the queued observations, but at most three seconds.
    pub async fn delivered(mut self) {
        // The driver held the queue's last sender, so the delivery ends when the queue is empty.
        if timeout(DELIVER_MAX, async { while self.delivery.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!(name: crate::events::WITNESS_LEFT, "the witness did not take the last observations in time");
        }
    }
}

impl<K: Kind> View<K> {
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    pub fn diagnostics(&self) -> &Arc<Diagnostics<K>> {
        &self.diagnostics
    }

    /// Waits until `wanted` accepts the object at `key` (or its absence); returns false if `deadline` passes first.
    pub async fn until(&self, key: &Key, deadline: Instant, wanted: impl Fn(Option<&Object<K>>) -> bool) -> bool {
        let mut changes = self.changes.clone();
        loop {
            // Marked as seen before the check, so that a change in between is not lost.
            changes.borrow_and_update();
            if wanted(self.store.object(key).as_deref()) {
                return true;
            }
            match timeout_at(deadline, changes.changed()).await {
                Ok(Ok(())) => {}
                // Out of time, or the watch has ended.
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }
}
