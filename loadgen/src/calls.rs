//! Load on an API that scales Deployments, as an open loop. Replica counts are read and set through the subject, and
//! set by other clients directly in the control plane.
//!
//! The path of a call: [`Plan`] makes an exact stream of (time, operation). A pacing thread passes each operation at
//! its planned time to a worker, which makes the call with a certificate. The control plane alone decides the right
//! answer: an [`Audit`] of the Deployments reports every committed count with its time, and an oracle compares each
//! answer with these counts. No report of the subject is trusted, and only its HTTP interface is needed.
//!
//! Every written count is unique, so an answer shows which write it is based on.

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

/// The subject's address, and the certificates of its callers.
#[derive(Debug, Clone)]
pub struct Target {
    /// The URL of the subject: `https://127.0.0.1:8444`.
    pub url: String,
    /// The CA certificates of the server's certificate, as PEM.
    pub ca_pem: String,
    /// The certificate chain and key of the permitted caller, as PEM.
    pub client: Identity,
    /// Callers that must be refused.
    pub intruders: Vec<Intruder>,
}

/// A certificate chain with its key, as PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    pub certificate_pem: String,
    pub key_pem: String,
}

/// A caller that must be refused.
#[derive(Debug, Clone)]
pub struct Intruder {
    /// The error in the caller's certificate, for example `revoked`.
    pub name: String,
    /// The caller's certificate; `None` if the caller shows none.
    pub identity: Option<Identity>,
}

/// Why the load could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address or the certificates cannot be used.
    #[error("start the calls: {problem}")]
    Target {
        /// The problem, and advice for the user.
        problem: String,
    },
    /// A key of the scenario's section has a value that cannot work.
    #[error("api.{key}: {problem}")]
    Config {
        key: &'static str,
        /// The problem with the key, and advice for the user.
        problem: String,
    },
    /// The Deployments could not be created.
    #[error("make the deployments that are called for: {problem}")]
    Fill { problem: String },
    /// The control plane could not be watched.
    #[error(transparent)]
    Audit(#[from] audit::Error),
    /// The operating system could not start a thread or a runtime.
    #[error("start the threads of the calls: {0}")]
    Thread(#[from] std::io::Error),
}

/// Calls that are being made; dropping the value ends them, and the Deployments stay.
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

/// The created Deployments with their watch, before the first call.
#[derive(Debug)]
pub struct Filled {
    plan: Plan,
    api: Api,
    audit: Audit,
}

impl Load {
    /// Creates the Deployments of the plan and starts to watch them.
    pub async fn fill(plan: Plan, api: &Api) -> Result<Filled, Error> {
        worker::fill(&plan, api).await.map_err(|problem| Error::Fill { problem })?;
        let mut config = audit::Config::new(api.clone(), plan::RESOURCE);
        config.fields = vec!["/spec/replicas".to_owned()];
        let audit = Audit::start(config).await?;
        Ok(Filled { plan, api: api.clone(), audit })
    }

    /// Makes the planned calls, starting at `begin`.
    pub fn begin(filled: Filled, target: &Target, begin: Instant) -> Result<Self, Error> {
        let Filled { plan, api, audit } = filled;
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(&plan, target, &api, audit, Arc::clone(&shared))?;
        let mut engine = Engine::start("calls", worker, Arc::clone(&shared.paced))?;
        engine.go(plan.operations(), begin)?;
        Ok(Self { engine, shared })
    }

    /// The counts and measurements since the last call of `take`.
    pub fn take(&self) -> Interval {
        let full = std::mem::take(&mut *self.shared.recorder.lock());
        full.finish(self.shared.paced.take())
    }

    /// Plans no further call, waits `drain` for calls to end, and closes all connections. Answers are still judged
    /// after this function.
    pub async fn stop(&mut self, drain: Duration) {
        // None means that the worker has ended, here and below: its panic has been printed.
        let _ = self.engine.stop(drain).await;
    }

    /// Judges all remaining answers after the calls have stopped. Judging takes seconds if answers contain unknown
    /// counts. Call `take` after `settle` for the last interval.
    pub async fn settle(&self) {
        let _ = self.engine.ask(Settle).await;
    }
}

impl From<churn::Error> for Error {
    fn from(error: churn::Error) -> Self {
        Self::Target { problem: error.to_string() }
    }
}
