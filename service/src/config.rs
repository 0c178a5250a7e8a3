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

use crate::roles::{ROLES, SHARED};
#[cfg(feature = "admission")]
pub use import::{Imported, connaisseur};
pub use migrate::migrate;
pub use show::show;

/// Every section, once.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let mut kinds = vec![kind::<Health>()];
    for section in ROLES.iter().flat_map(|role| role.about().sections).chain(SHARED) {
        if !kinds.contains(section) {
            kinds.push(*section);
        }
    }
    kinds.extend([kind::<Log>(), kind::<Shutdown>()]);
    kinds
});

/// Whether the file may have `key` at its top.
fn is_known(key: &str) -> bool {
    key == "version" || KINDS.iter().any(|kind| kind.has(key))
}

/// Reads and checks the file at `path`; environment variables overrule it.
pub fn load(path: &Path) -> Result<Config, Error> {
    Config::load(path, &KINDS)
}

/// Checks `text` as if it had been read from `path`.
pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
    Config::parse(text, path, &KINDS)
}

#[cfg(test)]
#[cfg(all(feature = "admission", feature = "packages", feature = "replicas"))]
mod tests;
