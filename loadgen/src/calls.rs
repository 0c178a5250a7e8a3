//! Load on an API over Deployments: counts are read and set through the subject, and by other clients past it, in the
//! open loop.
//!
//! The path of a call: [`Plan`] makes an exact stream of (time, operation); a pacing thread hands each over when it is
//! due; a worker makes the call with its certificate. The right answer comes from the control plane alone. An [`Audit`]
//! of the Deployments reports every committed count and its time, and an oracle compares each answer with it. So no
//! report of the subject is trusted, and only its HTTP interface is needed.
//!
//! Every written count is unique, so an answer shows which write it has seen.

mod config;
mod interval;
mod oracle;
mod plan;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::audit::{self, Audit};
use crate::churn::{self, Api};
use crate::open_loop::{Counts as Paced, Engine};
use interval::Recorder;
use worker::{Settle, Worker};

pub use config::{Config, Mix};
pub use interval::{Counts, Interval};
pub use plan::Plan;

/// The subject's address, and its callers.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address, such as `https://127.0.0.1:8444`.
    pub url: String,
    /// The CA certificates of the server's certificate, PEM.
    pub ca_pem: String,
    /// The permitted caller: chain and key, PEM.
    pub client: Identity,
    /// Callers that must be refused.
    pub intruders: Vec<Intruder>,
}

/// A certificate with its key, PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    pub certificate_pem: String,
    pub key_pem: String,
}

/// A caller that must be refused.
#[derive(Debug, Clone)]
pub struct Intruder {
    /// The fault of its certificate: `revoked`.
    pub name: String,
    /// Its certificate, if it shows one.
    pub identity: Option<Identity>,
}

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address or the certificates.
    #[error("start the calls: {problem}")]
    Target {
        /// The fault, and what to write instead.
        problem: String,
    },
    /// A key of the section.
    #[error("api.{key}: {problem}")]
    Config {
        key: &'static str,
        /// The fault, and what to write instead.
        problem: String,
    },
    /// The Deployments could not be made.
    #[error("make the deployments that are called for: {problem}")]
    Fill { problem: String },
    /// The control plane could not be watched.
    #[error(transparent)]
    Audit(#[from] audit::Error),
    /// The operating system refused a thread or a runtime.
    #[error("start the threads of the calls: {0}")]
    Thread(#[from] std::io::Error),
}

/// Calls in progress. Dropping it ends them; the Deployments stay.
#[derive(Debug)]
pub struct Load {
    engine: Engine<Worker>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    paced: Arc<Paced>,
    recorder: Mutex<Recorder>,
}

/// The existing, watched Deployments, before the first call.
#[derive(Debug)]
pub struct Filled {
    plan: Plan,
    api: Api,
    audit: Audit,
}

impl Load {
    /// Makes the Deployments of the plan and begins to watch them.
    pub async fn fill(plan: Plan, api: &Api) -> Result<Filled, Error> {
        worker::fill(&plan, api).await.map_err(|problem| Error::Fill { problem })?;
        let mut config = audit::Config::new(api.clone(), plan::RESOURCE);
        config.fields = vec!["/spec/replicas".to_owned()];
        let audit = Audit::start(config).await?;
        Ok(Filled { plan, api: api.clone(), audit })
    }

    /// Makes the planned calls from `begin` on.
    pub fn begin(filled: Filled, target: &Target, begin: Instant) -> Result<Self, Error> {
        let Filled { plan, api, audit } = filled;
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(&plan, target, &api, audit, Arc::clone(&shared))?;
        let mut engine = Engine::start("calls", worker, Arc::clone(&shared.paced))?;
        engine.go(plan.operations(), begin)?;
        Ok(Self { engine, shared })
    }

    /// The counts and measurements since the last call. Cheap: recorders are swapped.
    pub fn take(&self) -> Interval {
        let full = std::mem::take(&mut *self.shared.recorder.lock());
        full.finish(self.shared.paced.take())
    }

    /// Plans no further call, waits `drain` for calls to end, and closes all connections. Answers are still judged.
    pub async fn stop(&mut self, drain: Duration) {
        // None means that the worker has ended, here and below: its panic has been printed.
        let _ = self.engine.stop(drain).await;
    }

    /// Judges all answers after the calls have stopped. Takes seconds if answers contain unknown counts. Take the last
    /// interval afterwards.
    pub async fn settle(&self) {
        let _ = self.engine.ask(Settle).await;
    }
}

impl From<churn::Error> for Error {
    fn from(error: churn::Error) -> Self {
        Self::Target { problem: error.to_string() }
    }
}
