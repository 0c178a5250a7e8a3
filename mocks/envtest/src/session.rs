//! The settings that `longhaul envtest` passes to the programs that the suite starts.
//!
//! Owns the file that the variable [`SESSION`] names. Without it a control plane has no faults and keeps no record.

use std::path::PathBuf;

use mock_faults::Fault;
use serde::{Deserialize, Serialize};

use super::chaos::Drawn;

/// The variable with the file's path.
pub const SESSION: &str = "LONGHAUL_ENVTEST";

/// One run of a suite.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Session {
    /// The folder for the records of every control plane.
    pub runs: Option<PathBuf>,
    /// The faults; times count from the moment at which the API server is ready.
    pub faults: Vec<Fault>,
    /// The faults that are drawn beside them, request by request.
    #[serde(default)]
    pub drawn: Drawn,
    /// Decides draws and probabilities.
    pub seed: u64,
    /// The manager whose requests faults may touch.
    pub manager: Manager,
    /// Milliseconds until workloads become ready; if absent they never do, as in a real envtest.
    pub workloads_ms: Option<u64>,
    /// The real kubectl, for all commands that this one does not have.
    pub kubectl: Option<PathBuf>,
}

/// How the requests of the manager under test are distinguished from those of the suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Manager {
    /// A part of its user agent.
    pub agent: Option<String>,
    /// Its user: the common name of its certificate.
    pub user: Option<String>,
}

impl Manager {
    /// Whether the manager can be distinguished.
    pub fn is_known(&self) -> bool {
        self.agent.is_some() || self.user.is_some()
    }
}

impl Session {
    /// The session of this process; the default one if no variable names a file.
    pub(crate) fn of_environment() -> Result<Self, String> {
        let Some(path) = std::env::var_os(SESSION).filter(|path| !path.is_empty()) else { return Ok(Self::default()) };
        let path = PathBuf::from(path);
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("failed to read {}: {error}", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} is no session of this version: {error}", path.display()))
    }
}
