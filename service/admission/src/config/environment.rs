//! Settings of Connaisseur that it takes from the environment, here with a prefix: they overrule the file.

use std::time::Duration;

use service_core::config::{Environment, Error};

use super::policy::{Mode, Policy, Recheck, Resources};

/// Lays what `environment` says over `policy`.
pub(super) fn overrule(policy: &mut Policy, environment: &Environment<'_>) -> Result<(), Error> {
    if let Some(on) = environment.flag("AUTOMATIC_CHILD_APPROVAL")? {
        policy.child_approval = on;
    }
    if let Some(on) = environment.flag("AUTOMATIC_UNCHANGED_APPROVAL")? {
        let recheck = if on { Recheck::Changed } else { Recheck::Always };
        for rule in policy.rules.iter_mut().filter(|rule| rule.mode != Mode::Skip) {
            rule.recheck = recheck;
        }
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
        policy.verdicts.ttl = Duration::from_secs(value.parse::<u32>().map_err(wrong)?.into());
    }
    Ok(())
}
