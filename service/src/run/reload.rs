//! The reload of the configuration in a running process.
//!
//! Each role and section decides which settings take effect at once; requests that already started keep the former
//! settings. Changes of other settings are logged and wait for a restart. An unusable configuration file changes
//! nothing and is logged once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as MetricsRegistry;
use service_core::config::Config;
use service_core::edge::Probe;
use service_core::role::Reload;
use tokio::sync::watch as channel;

use super::followed::Followed;
use crate::config;

/// Time between two reads of the configuration file, even if its metadata is unchanged.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two comparisons of the metadata of all files. A key that is no longer trusted must be refused within a
/// second.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Default)]
pub struct Metrics {
    generation: Gauge,
    last_succeeded: Gauge,
    last_success_s: Gauge,
    needs_restart: Gauge,
}

impl Metrics {
    /// Registers the metrics of the reload. The configuration at the start counts as a reload.
    pub fn register(registry: &mut MetricsRegistry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_config");
        let Self { generation, last_succeeded, last_success_s, needs_restart } = &metrics;
        sub.register("generation", "Configurations that came into effect, including the first", generation.clone());
        sub.register("last_reload_successful", "1 if the file was valid at the last check", last_succeeded.clone());
        sub.register(
            "last_reload_success_timestamp_seconds",
            "Time at which the last configuration came into effect, seconds since 1970",
            last_success_s.clone(),
        );
        sub.register("restart_needed", "1 if the file has changes that need a restart", needs_restart.clone());
        metrics.taken();
        metrics
    }

    fn taken(&self) {
        self.generation.inc();
        self.last_succeeded.set(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_success_s.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }
}

/// The error of the last reload, for the health endpoint.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<Option<String>>);

impl Probe for Trouble {
    fn name(&self) -> &'static str {
        "config"
    }

    /// An unusable file only causes a note and no failure, because the former configuration still works. All replicas
    /// read the same file, so a failure would turn a typing mistake into an outage of the whole webhook.
    fn note(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

pub struct Reloader {
    pub path: PathBuf,
    pub running: Config,
    pub reloads: Vec<Reload>,
    pub metrics: Metrics,
    pub trouble: Arc<Trouble>,
}

impl Reloader {
    /// Reads the file at every interval, soon after the metadata of a named file changes, and at once when `look`
    /// changes. Runs until dropped.
    pub async fn follow(mut self, mut look: channel::Receiver<u64>) {
        let mut followed = Followed::of(&self.path, &self.running);
        loop {
            let turn = tokio::time::Instant::now() + RELOAD_INTERVAL;
            while tokio::time::Instant::now() < turn && !followed.changed() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                    Ok(()) = look.changed() => break,
                }
            }
            // Compared before they are read, so that a change in between counts as another change.
            followed = Followed::of(&self.path, &self.running);
            self.turn();
            let now = Followed::of(&self.path, &self.running);
            if !now.is_of_the_same_files(&followed) {
                followed = now;
            }
        }
    }

    fn turn(&mut self) {
        match config::load(&self.path).map_err(anyhow::Error::from).and_then(|fresh| self.take(&fresh)) {
            Ok(waiting) => {
                self.metrics.last_succeeded.set(1);
                self.metrics.needs_restart.set(i64::from(!waiting.is_empty()));
                let sections = waiting.join(", ");
                let note = || format!("changed in the file and waiting for a restart: {sections}");
                if self.note((!waiting.is_empty()).then(note)) {
                    tracing::warn!(name: crate::events::CONFIG_WAITS, sections, "the configuration has changes that need a restart");
                }
            }
            Err(error) => {
                self.metrics.last_succeeded.set(0);
                if self.note(Some(format!("the file is refused, the old configuration stays: {error:#}"))) {
                    tracing::error!(name: crate::events::CONFIG_REFUSED, error = format!("{error:#}"), "configuration not replaced");
                }
            }
        }
    }

    /// Applies the changes that need no restart; returns the changed sections that need a restart.
    fn take(&mut self, fresh: &Config) -> anyhow::Result<Vec<&'static str>> {
        let mut new = Vec::new();
        for reload in &mut self.reloads {
            new.extend(reload(fresh)?);
        }
        new.extend(self.running.take(fresh));
        if !new.is_empty() {
            self.metrics.taken();
            let generation = self.metrics.generation.get();
            tracing::info!(
                name: crate::events::CONFIG_REPLACED, generation, sections = new.join(", "), "configuration replaced"
            );
        }
        Ok(self.running.differences(fresh))
    }

    /// Stores `note` for the health endpoint; returns whether the note is new.
    fn note(&self, note: Option<String>) -> bool {
        let mut known = self.trouble.0.lock();
        let new = note.is_some() && *known != note;
        *known = note;
        new
    }
}
