//! The list of roles, and the parts that they share. A new role is a crate, and a line here.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use service_core::alert::AlertSink;
use service_core::config::{Config, Kind};
use service_core::known::Knowledge;
use service_core::role::Role;

pub type Roles = &'static [&'static dyn Role];

/// The built-in roles. Order matters: lenders come first.
pub const ROLES: Roles = &[
    #[cfg(feature = "manager")]
    &service_admission::Manager,
    #[cfg(feature = "validator")]
    &service_validator::Validating,
    #[cfg(feature = "alerts")]
    &service_alerting::Telling,
    // Before the other watchers, because it takes the witness: its observations are those of its actions.
    #[cfg(feature = "watcher")]
    &service_watcher::Watching,
    #[cfg(feature = "watch")]
    &service_packages::Packages,
    #[cfg(feature = "replicas")]
    &service_replicas::Replicas,
];

/// The sections of the shared parts.
pub const SHARED: &[Kind] = &[
    #[cfg(feature = "alerts")]
    service_core::config::kind::<service_alerting::Alerts>(),
    #[cfg(feature = "shared-cache")]
    service_core::config::kind::<service_shared_cache::SharedCache>(),
];

/// The sink of alerts, if the configuration names a receiver.
pub fn alerts(config: &Config, metrics: &mut Registry) -> anyhow::Result<Option<Arc<dyn AlertSink>>> {
    #[cfg(feature = "alerts")]
    if let Some(settings) = config.find::<service_alerting::Alerts>() {
        return Ok(Some(service_alerting::Desk::open(settings, metrics)?));
    }
    let _ = (config, metrics);
    Ok(None)
}

/// The cache of values shared with other processes, if the configuration names one.
pub fn known(config: &Config, metrics: &mut Registry) -> anyhow::Result<Option<Arc<dyn Knowledge>>> {
    #[cfg(feature = "shared-cache")]
    if let Some(settings) = config.find::<service_shared_cache::SharedCache>() {
        return Ok(Some(service_shared_cache::Cache::open(settings, metrics)?));
    }
    let _ = (config, metrics);
    Ok(None)
}
