//! The reload of the configuration while the process runs: the replaceable parts are swapped as a whole.
//!
//! Each role and section says which of its settings take effect at once; work under way uses the former ones to its end.
//! Other changes are named and wait for a restart. An unusable file changes nothing and is named once.

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

/// How often the file is read, even if it looks unchanged.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
/// How often the files of the configuration are compared: a key that is no longer trusted must be refused within a
/// second.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The metrics of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    generation: Gauge,
    last_succeeded: Gauge,
    last_success_s: Gauge,
    needs_restart: Gauge,
}

impl Metrics {
    /// Registers the metrics, with the first generation just loaded.
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

/// The trouble with the file, for the health page.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<Option<String>>);

impl Probe for Trouble {
    fn name(&self) -> &'static str {
        "config"
    }

    /// Only a note: the former configuration works, and all replicas read the same file. A failure here would turn a
    /// typing mistake into an outage of the whole webhook.
    fn note(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

pub struct Reloader {
    pub path: PathBuf,
    pub running: Config,
    pub reloads: Vec<Reload>,
    pub metrics: Metrics,
    /// The note on the health page.
    pub trouble: Arc<Trouble>,
}

impl Reloader {
    /// Reads the file at each turn, soon when it or a file that it names looks different, and at once when `look`
    /// changes, until dropped.
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

    /// Applies the changes that need no restart; returns the sections that need one.
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

    /// Keeps `note`; returns whether it is new.
    fn note(&self, note: Option<String>) -> bool {
        let mut known = self.trouble.0.lock();
        let new = note.is_some() && *known != note;
        *known = note;
        new
    }
}
