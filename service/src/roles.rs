//! The list of roles, and the services that roles share. A new role needs a crate and an entry in this list.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use service_core::alert::AlertSink;
use service_core::config::{Config, Kind};
use service_core::known::Knowledge;
use service_core::logs::names::{self, Names};
use service_core::role::Role;

pub type Roles = Arc<[Arc<dyn Role>]>;

/// The built-in roles of the service. Order matters: a role comes after the roles whose functions it uses.
pub fn all() -> Roles {
    Arc::new([
        #[cfg(feature = "admission")]
        Arc::new(service_admission::AdmissionRole),
        #[cfg(feature = "validator")]
        Arc::new(service_validator::ValidatorRole),
        #[cfg(feature = "alerting")]
        Arc::new(service_alerting::AlertingRole),
        // Before the other watchers, because it takes the witness: its observations are those of its actions.
        #[cfg(feature = "watcher")]
        Arc::new(service_watcher::WatcherRole),
        #[cfg(feature = "packages")]
        Arc::new(service_packages::PackagesRole),
        #[cfg(feature = "replicas")]
        Arc::new(service_replicas::ReplicasRole),
    ])
}

/// The configuration sections that belong to no single role: `alerting` and `sharedCache`.
pub const SHARED: &[Kind] = &[
    #[cfg(feature = "alerting")]
    service_core::config::kind::<service_alerting::Alerting>(),
    #[cfg(feature = "shared-cache")]
    service_core::config::kind::<service_shared_cache::SharedCache>(),
];

/// Names of log events, by crate. A log line with any other name is a defect.
pub const EVENTS: Names = &[
    names::ALL,
    crate::events::ALL,
    #[cfg(feature = "admission")]
    service_admission::events::ALL,
    #[cfg(feature = "admission")]
    service_registry::events::ALL,
    #[cfg(feature = "own-certificates")]
    service_own_certificates::events::ALL,
    service_watch::events::ALL,
    service_contract::events::ALL,
    #[cfg(feature = "alerting")]
    service_alerting::events::ALL,
    #[cfg(feature = "watcher")]
    service_watcher::events::ALL,
    #[cfg(feature = "packages")]
    service_packages::events::ALL,
    #[cfg(feature = "replicas")]
    service_replicas::events::ALL,
    #[cfg(feature = "shared-cache")]
    service_shared_cache::events::ALL,
];

/// The sink of alerts; `None` if the configuration names no receiver.
pub fn alerts(config: &Config, metrics: &mut Registry) -> anyhow::Result<Option<Arc<dyn AlertSink>>> {
    #[cfg(feature = "alerting")]
    if let Some(settings) = config.find::<service_alerting::Alerting>() {
        return Ok(Some(service_alerting::Receivers::open(settings, metrics)?));
    }
    let _ = (config, metrics);
    Ok(None)
}

/// The cache that several processes share; `None` if the configuration names no cache.
pub fn known(config: &Config, metrics: &mut Registry) -> anyhow::Result<Option<Arc<dyn Knowledge>>> {
    #[cfg(feature = "shared-cache")]
    if let Some(settings) = config.find::<service_shared_cache::SharedCache>() {
        return Ok(Some(service_shared_cache::Cache::open(settings, metrics)?));
    }
    let _ = (config, metrics);
    Ok(None)
}
