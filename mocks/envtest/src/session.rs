//! The settings that `longhaul envtest` passes to the programs that a suite starts.
//!
//! Owns the format of the file that the environment variable [`SESSION`] names. If the variable is not set, a control
//! plane has no faults and keeps no record.

use std::path::PathBuf;

use mock_faults::Fault;
use serde::{Deserialize, Serialize};

use super::chaos::Drawn;

/// The environment variable with the path of the session file.
pub const SESSION: &str = "LONGHAUL_ENVTEST";

/// The settings for one run of a test suite.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Session {
    /// The folder for the records of every control plane.
    pub runs: Option<PathBuf>,
    /// The faults at fixed times, which count from the moment at which the API server is ready.
    pub faults: Vec<Fault>,
    /// The sorts of faults that are drawn for single requests, in addition to `faults`.
    #[serde(default)]
    pub drawn: Drawn,
    /// The seed of drawn faults and of probabilities.
    pub seed: u64,
    /// The manager under test, whose requests faults may hit.
    pub manager: Manager,
    /// Milliseconds until workloads become ready; if absent, they never become ready, as in a real envtest.
    pub workloads_ms: Option<u64>,
    /// The path of the real kubectl, which runs all commands of `kubectl`.
    pub kubectl: Option<PathBuf>,
}

/// How requests of the manager under test are distinguished from those of the suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Manager {
    /// A text that the manager's user agent contains.
    pub agent: Option<String>,
    /// The manager's user: the common name of its certificate.
    pub user: Option<String>,
}

impl Manager {
    /// Whether the manager's requests can be distinguished.
    pub fn is_known(&self) -> bool {
        self.agent.is_some() || self.user.is_some()
    }
}

impl Session {
    /// Reads the session of this process; returns the default session if the variable [`SESSION`] is not set.
    pub(crate) fn of_environment() -> Result<Self, String> {
        let Some(path) = std::env::var_os(SESSION).filter(|path| !path.is_empty()) else { return Ok(Self::default()) };
        let path = PathBuf::from(path);
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("failed to read {}: {error}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} is no session of this version: {error}", path.display()))
    }
}
