//! The configuration file of this program: the sections of the process and those of its roles.

#[cfg(feature = "admission")]
mod import;
mod migrate;
mod show;

use std::path::Path;
use std::sync::LazyLock;

#[cfg(feature = "admission")]
use service_core::config::parse_error;
pub use service_core::config::{Config, Error};
use service_core::config::{Health, Kind, Log, Shutdown, VERSION, is_empty, kind};

use crate::roles::{self, SHARED};
#[cfg(feature = "admission")]
pub use import::{Imported, connaisseur};
pub use migrate::migrate;
pub use show::show;

/// The descriptions of all sections that this program knows.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let mut kinds = vec![kind::<Health>()];
    for section in roles::all().iter().flat_map(|role| role.about().sections).chain(SHARED) {
        if !kinds.contains(section) {
            kinds.push(*section);
        }
    }
    kinds.extend([kind::<Log>(), kind::<Shutdown>()]);
    kinds
});

/// Sections that need a Cargo feature: the section's name, its former name and the feature.
const FEATURES: [(&str, &str, &str); 5] = [
    ("alerting", "alerts", "alerting"),
    ("replicas", "", "replicas"),
    ("sharedCache", "", "shared-cache"),
    ("validator", "", "validator"),
    ("watcher", "", "watcher"),
];

/// Adds the name of the missing Cargo feature to an error about a section that this program was built without.
fn with_feature(error: Error, is_known: impl Fn(&str) -> bool) -> Error {
    let Error::Parse { path, at, what, hint } = error else { return error };
    let is_meant = |key: &str| !key.is_empty() && what == format!("unknown key `{key}`");
    let missing = FEATURES.iter().find(|(key, former, _)| (is_meant(key) || is_meant(former)) && !is_known(key));
    let hint = match missing {
        Some((key, _, feature)) => {
            format!(": the section `{key}` needs the feature `{feature}`, and this program was built without it")
        }
        None => hint,
    };
    Error::Parse { path, at, what, hint }
}

/// Whether `key` is a known top-level key of the file.
fn is_known(key: &str) -> bool {
    key == "version" || KINDS.iter().any(|kind| kind.has(key))
}

/// Reads and checks the file at `path`. Environment variables replace settings of the configuration file.
pub fn load(path: &Path) -> Result<Config, Error> {
    Config::load(path, &KINDS).map_err(|error| with_feature(error, is_known))
}

pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
    Config::parse(text, path, &KINDS).map_err(|error| with_feature(error, is_known))
}

#[cfg(test)]
#[cfg(all(feature = "admission", feature = "packages", feature = "replicas"))]
mod tests;

#[cfg(test)]
mod feature_tests {
    use super::*;

    #[test]
    fn a_section_that_was_not_built_names_its_feature() {
        static FEW: LazyLock<Vec<Kind>> = LazyLock::new(|| vec![kind::<Health>()]);
        let error = |text: &str, is_built: bool| {
            let error = Config::parse(text, Path::new("a.yaml"), &FEW).unwrap_err();
            with_feature(error, |_| is_built).to_string()
        };
        for text in ["alerting: {}", "alerts: {}"] {
            let told = error(text, false);
            assert!(told.contains("the section `alerting` needs the feature `alerting`"), "{told}");
        }
        assert!(error("sharedCache: {}", false).contains("the feature `shared-cache`"));
        assert!(!error("replicas: {}", true).contains("feature"));
        assert!(!error("other: {}", false).contains("feature"));
    }
}
