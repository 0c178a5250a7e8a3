//! The section of a scenario for calls of an API that scales Deployments, with the checks of its values before the run
//! starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Rate, Span};

use super::Error;
use crate::Arrivals;

/// The highest rate of one worker; a higher rate is a typing error.
const HIGHEST_RATE: f64 = 20_000.0;
/// Maximum number of Deployments. Creating more Deployments would take longer than a short run.
const DEPLOYMENTS_MAX: u32 = 100_000;
/// The default number of Deployments: so few that each is read often.
const DEFAULT_DEPLOYMENTS: u32 = 50;
/// The default timeout of a call, as in kubectl.
const DEFAULT_TIMEOUT: Span = Span::from_secs(10);

/// Calls of an API that scales Deployments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Calls per second, including those of other clients and of unauthorised callers.
    pub rate: Rate,
    /// How calls are distributed over time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The number of Deployments that exist before the subject starts, 1 to 100,000. The calls read and set the replica
    /// counts of these Deployments.
    #[serde(default = "default_deployments")]
    pub deployments: u32,
    /// The relative weights of the operations; operations without a weight do not happen.
    #[serde(default = "default_mix")]
    pub mix: Mix,
    /// The timeout of a call.
    #[serde(default = "default_timeout")]
    pub timeout: Span,
}

/// The relative weights of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mix {
    /// The replica count of one Deployment is read.
    pub get: u32,
    /// The replica count of a Deployment is set through the subject.
    pub set: u32,
    /// All replica counts are listed, in pages of at most a thousand.
    pub list: u32,
    /// Another client sets the replica count directly in the control plane.
    pub other: u32,
    /// A call that must be refused: without a certificate, or with one that was revoked, has expired, is not valid yet,
    /// is not for clients, or is from another authority.
    pub intruder: u32,
}

/// The default weights: mostly reads, like a client that watches many Deployments and scales some.
const DEFAULT_MIX: Mix = Mix { get: 20, set: 2, list: 1, other: 2, intruder: 0 };

impl Mix {
    pub(super) fn weights(self) -> [u32; 5] {
        [self.get, self.set, self.list, self.other, self.intruder]
    }
}

impl Config {
    pub(super) fn check(&self) -> Result<(), Error> {
        let bad = |key, problem: String| Err(Error::Config { key, problem });
        let rate = self.rate.as_per_second();
        if !(rate > 0.0 && rate <= HIGHEST_RATE) {
            return bad("rate", format!("{} is out of range: above 0 and at most {HIGHEST_RATE}/s", self.rate));
        }
        if !(1..=DEPLOYMENTS_MAX).contains(&self.deployments) {
            return bad("deployments", format!("{} is out of range: 1 to {DEPLOYMENTS_MAX}", self.deployments));
        }
        let Mix { get, list, .. } = self.mix;
        if get == 0 && list == 0 {
            return bad("mix", "there are no calls: write for example {get: 20, set: 2}".to_owned());
        }
        if self.timeout.0.is_zero() {
            return bad("timeout", "must be longer than zero".to_owned());
        }
        Ok(())
    }
}

fn default_deployments() -> u32 {
    DEFAULT_DEPLOYMENTS
}

fn default_mix() -> Mix {
    DEFAULT_MIX
}

fn default_timeout() -> Span {
    DEFAULT_TIMEOUT
}
