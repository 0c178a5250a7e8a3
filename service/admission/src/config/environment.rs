//! Environment variables that replace settings of the policy. The names are those of Connaisseur, with a prefix.

use std::time::Duration;

use service_core::config::quantity::Span;
use service_core::config::{Environment, Error};

use super::policy::{RawPolicy, Recheck, Resources};

/// Replaces settings in `policy`, read from a file, with those of `environment`.
pub(super) fn overrule(policy: &mut RawPolicy, environment: &Environment<'_>) -> Result<(), Error> {
    if let Some(on) = environment.flag("AUTOMATIC_CHILD_APPROVAL")? {
        policy.automatic_child_approval = on;
    }
    if let Some(on) = environment.flag("AUTOMATIC_UNCHANGED_APPROVAL")? {
        policy.recheck_of_all = Some(if on { Recheck::Changed } else { Recheck::Always });
    }
    if let Some(on) = environment.flag("DETECTION_MODE")? {
        policy.detection = on;
    }
    if let Some(value) = environment.read("RESOURCE_VALIDATION_MODE") {
        policy.resources = match value.as_str() {
            "all" => Resources::All,
            "podsOnly" => Resources::PodsOnly,
            other => return Err(Environment::wrong("RESOURCE_VALIDATION_MODE", other, "all, podsOnly")),
        };
    }
    if let Some(value) = environment.read("CACHE_EXPIRY_SECONDS") {
        let wrong = |_| Environment::wrong("CACHE_EXPIRY_SECONDS", &value, "whole seconds");
        policy.cache.ttl = Some(Span(Duration::from_secs(value.parse::<u32>().map_err(wrong)?.into())));
    }
    Ok(())
}
