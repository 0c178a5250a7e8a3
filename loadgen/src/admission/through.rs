//! Admission load through an API server: real objects are written, and the API server calls the webhook that is
//! registered there.
//!
//! The path of a request: [`Plan::build`] makes manifests and an exact stream of (time, operation) from the same mix as
//! direct load. A pacing thread hands each over when it is due. A worker sends it as a user would, compares the answer
//! with the right one, and records. Beside it [`Stored`] watches the objects that the API server really stores, so that
//! a webhook that was not called is noticed too.
//!
//! There are no controllers here: an operation is one request of one user. Object names are never used again, and
//! objects are deleted again, so that their number stays bounded.

mod operate;
mod oracle;
mod plan;
mod recorder;
mod stock;
mod stored;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Error, Interval};
use crate::churn::Api;
use crate::churn::api::Client;
use crate::churn::writes::Record;
use crate::open_loop::{Counts, Engine};
use operate::Operator;
use recorder::Recorder;
use worker::Worker;

pub use plan::Plan;
pub use stock::written;
pub use stored::{Found, Stored};

/// Load through an API server, in progress. Dropping it ends it and leaves its objects; [`Load::stop`] removes them.
#[derive(Debug)]
pub struct Load {
    engine: Engine<Worker>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Arc<Counts>,
    recorder: Mutex<Recorder>,
    /// The writes, by the plural of the kind.
    writes: Mutex<BTreeMap<&'static str, Record>>,
}

impl Load {
    /// Makes the namespaces. Nothing else is written until [`Load::begin`].
    pub async fn prepare(plan: &Plan, api: &Api, label: (&str, &str)) -> Result<(), Error> {
        let client = client(api)?;
        for name in plan.namespaces() {
            let mut object = serde_json::json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {label.0: label.1}}
            });
            if let Some((key, value)) = client.mark() {
                object["metadata"]["labels"][key] = serde_json::json!(value);
            }
            let reply = client.create("/api/v1/namespaces", &object).await.map_err(refused)?;
            if !reply.status.is_success() {
                return Err(refused(reply.failure(&format!("create the namespace {name}"))));
            }
        }
        Ok(())
    }

    /// Starts the planned operations at `begin`.
    pub fn begin(plan: &Plan, api: &Api, begin: Instant) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let operator = Operator { client: Arc::new(client(api)?), stock: Arc::clone(plan.stock()) };
        let worker = Worker::new(operator, Arc::clone(&shared), plan.in_flight_max());
        let mut engine = Engine::start("admission", worker, Arc::clone(&shared.counts))?;
        engine.go(plan.clone().operations(), begin)?;
        Ok(Self { engine, shared })
    }

    /// The counts and measurements since the last call. Cheap: recorders are swapped.
    pub fn take(&self) -> Interval {
        let full = std::mem::take(&mut *self.shared.recorder.lock());
        full.finish(self.shared.counts.take())
    }

    /// The writes that the answers since the last call confirmed, for [`Stored::wrote`].
    pub fn take_writes(&self) -> BTreeMap<&'static str, crate::churn::Writes> {
        let mut records = self.shared.writes.lock();
        records.iter_mut().map(|(plural, record)| (*plural, record.take())).collect()
    }

    /// Plans no further request, waits `drain` for calls to end, then deletes the rest of its objects. Take the last
    /// interval afterwards.
    pub async fn stop(&mut self, drain: Duration) {
        // None means that the worker has ended: its panic has been printed.
        let _ = self.engine.stop(drain).await;
    }
}

fn client(api: &Api) -> Result<Client, Error> {
    Client::new(api).map_err(|error| Error::Target { problem: error.to_string() })
}

fn refused(failure: crate::failure::Failure) -> Error {
    Error::Target { problem: failure.text }
}
