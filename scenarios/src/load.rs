//! Load without a scenario: `longhaul load` against any webhook.
//!
//! Owns the check of the target, the measurement, its limits, and the output. `loadgen` makes and sends the requests.
//! Needs no API server.

pub(crate) mod capacity;
pub(crate) mod descriptors;
pub(crate) mod hlog;
pub(crate) mod limits;
pub(crate) mod live;
pub(crate) mod measure;
pub(crate) mod pressure;
pub(crate) mod probe;
pub(crate) mod report;
#[cfg(test)]
pub(crate) mod schema;
pub(crate) mod summary;
pub(crate) mod workers;

use std::time::Duration;

use loadgen::admission::{Config, Error, Image, Plan, Target};
use serde::{Deserialize, Serialize};

/// All settings of a load: requests, times and target. Equal jobs give equal loads in any process. Of a recorded load,
/// each worker process reads the file itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) config: Config,
    pub(crate) seed: u64,
    /// Length of the load in nanoseconds, so that every process reads exactly the same value.
    pub(crate) length_ns: u64,
    pub(crate) to: Webhook,
    /// The images in reviews, with the right decision for each. With `None`, images are invented and every valid answer
    /// is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) images: Option<Vec<Image>>,
}

/// The webhook under load, as it is passed to other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    pub(crate) server_name: String,
    pub(crate) ca_pem: String,
    /// The client certificate, if the server asks for one. Never printed.
    pub(crate) client_certificate: Option<Identity>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) chain_pem: String,
    pub(crate) key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Job {
    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.length_ns)
    }

    /// Creates the payloads, or reads the payloads of a recorded file.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        match &self.images {
            Some(images) => Plan::build(&self.config, self.seed, self.length(), images),
            None => Plan::for_any_webhook(&self.config, self.seed, self.length()),
        }
    }
}

impl Webhook {
    pub(crate) fn target(&self) -> Target {
        let certificate = self.client_certificate.clone();
        let client_certificate = certificate
            .map(|Identity { chain_pem, key_pem }| loadgen::admission::ClientCertificate { chain_pem, key_pem });
        Target {
            url: self.url.clone(),
            server_name: self.server_name.clone(),
            ca_pem: self.ca_pem.clone(),
            client_certificate,
            pace: None,
        }
    }
}
