//! Settings of Connaisseur that it takes from the environment, here with a prefix: they overrule the file.
//!
//! Pure: the environment is passed in. A value that means nothing is refused as one of the file would be.

use std::time::Duration;

use super::policy::{Mode, Recheck, Resources};
use super::{Config, Error, Level, LogFormat};

/// What every name begins with: `LOG_LEVEL` alone is everybody's.
const PREFIX: &str = "LONGHAUL_";

impl Config {
    /// Lays what `environment` says over the configuration.
    pub(super) fn overruled(mut self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let read = |name: &str| environment(&format!("{PREFIX}{name}")).filter(|value| !value.is_empty());
        let wrong = |name: &str, value: &str, known: &str| Error::Value {
            path: "the environment".into(),
            key: format!("{PREFIX}{name}"),
            what: format!("unknown value `{value}`; use one of {known}"),
        };
        let flag = |name: &str| {
            let parse = |value: String| match value.as_str() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                other => Err(wrong(name, other, "true, false")),
            };
            read(name).map(parse).transpose()
        };
        if let Some(on) = flag("AUTOMATIC_CHILD_APPROVAL")? {
            self.policy.child_approval = on;
        }
        if let Some(on) = flag("AUTOMATIC_UNCHANGED_APPROVAL")? {
            let recheck = if on { Recheck::Changed } else { Recheck::Always };
            for rule in self.policy.rules.iter_mut().filter(|rule| rule.mode != Mode::Skip) {
                rule.recheck = recheck;
            }
        }
        if let Some(on) = flag("DETECTION_MODE")? {
            self.policy.detection = on;
        }
        if let Some(value) = read("RESOURCE_VALIDATION_MODE") {
            self.policy.resources = match value.as_str() {
                "all" => Resources::All,
                "podsOnly" => Resources::PodsOnly,
                other => return Err(wrong("RESOURCE_VALIDATION_MODE", other, "all, podsOnly")),
            };
        }
        if let Some(value) = read("CACHE_EXPIRY_SECONDS") {
            let seconds = value.parse::<u32>().map_err(|_| wrong("CACHE_EXPIRY_SECONDS", &value, "whole seconds"))?;
            self.policy.verdicts.ttl = Duration::from_secs(seconds.into());
        }
        if let Some(value) = read("LOG_LEVEL") {
            self.log_level = match value.as_str() {
                "trace" => Level::Trace,
                "debug" => Level::Debug,
                "info" => Level::Info,
                "warn" | "warning" => Level::Warn,
                "error" => Level::Error,
                other => return Err(wrong("LOG_LEVEL", other, "trace, debug, info, warn, error")),
            };
        }
        if let Some(value) = read("LOG_FORMAT") {
            self.log_format = match value.as_str() {
                "text" | "plain" => LogFormat::Text,
                "json" => LogFormat::Json,
                other => return Err(wrong("LOG_FORMAT", other, "text, json")),
            };
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn overruled(values: &[(&str, &str)]) -> Result<Config, Error> {
        let config = Config::parse("policy: {rules: [{pattern: a}, {pattern: b/c, mode: skip}]}", Path::new("x.yaml"));
        let find = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        config.unwrap().overruled(&find)
    }

    #[test]
    fn the_environment_overrules_the_file() {
        let config = overruled(&[
            ("LONGHAUL_AUTOMATIC_CHILD_APPROVAL", "true"),
            ("LONGHAUL_AUTOMATIC_UNCHANGED_APPROVAL", "false"),
            ("LONGHAUL_DETECTION_MODE", "1"),
            ("LONGHAUL_RESOURCE_VALIDATION_MODE", "podsOnly"),
            ("LONGHAUL_CACHE_EXPIRY_SECONDS", "7"),
            ("LONGHAUL_LOG_LEVEL", "debug"),
            ("LONGHAUL_LOG_FORMAT", "json"),
        ]);
        let config = config.unwrap();
        assert!(config.policy.child_approval && config.policy.detection);
        assert_eq!(
            (config.policy.rules[0].recheck, config.policy.rules[1].recheck),
            (Recheck::Always, Recheck::Changed)
        );
        assert_eq!((config.policy.resources, config.policy.verdicts.ttl.as_secs()), (Resources::PodsOnly, 7));
        assert_eq!((config.log_level, config.log_format), (Level::Debug, LogFormat::Json));
        let same = overruled(&[("LOG_LEVEL", "debug"), ("LONGHAUL_LOG_LEVEL", "")]).unwrap();
        assert_eq!(same.log_level, Level::Info, "an empty variable is an unset one, and others' are not ours");
    }

    #[test]
    fn a_value_that_means_nothing_is_refused() {
        let error = overruled(&[("LONGHAUL_DETECTION_MODE", "yes")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the environment: LONGHAUL_DETECTION_MODE: unknown value `yes`; use one of true, false"
        );
    }
}
