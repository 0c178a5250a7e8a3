//! Admission load through an API server: real objects are written, and the API server calls the webhooks that are
//! registered there.
//!
//! The path of a request: [`Plan::build`] makes manifests and an exact stream of (time, operation) from the same mix as
//! direct load. A pacing thread passes each operation at its planned time to the worker. The worker sends the request
//! as a user would, compares the answer with the right answer, and records the result. During the load [`Stored`]
//! watches the objects that the API server stores, so that a webhook that was not called is noticed too.
//!
//! No controllers run in this load, so an operation is one request of one user. Object names are never used again.
//! Objects are deleted after some time, so that their number stays bounded.

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

/// Running load through an API server. Dropping the value ends the load and leaves its objects in the control plane;
/// [`Load::stop`] removes them.
#[derive(Debug)]
pub struct Load {
    engine: Engine<Worker>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Arc<Counts>,
    recorder: Mutex<Recorder>,
    /// The confirmed writes, by the plural name of the kind.
    writes: Mutex<BTreeMap<&'static str, Record>>,
}

impl Load {
    /// Makes the namespaces of the load. No other object is written before [`Load::begin`].
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

    /// The counts and measurements since the last call of `take`.
    pub fn take(&self) -> Interval {
        let full = std::mem::take(&mut *self.shared.recorder.lock());
        full.finish(self.shared.counts.take())
    }

    /// The writes that answers have confirmed since the last call, for [`Stored::wrote`].
    pub fn take_writes(&self) -> BTreeMap<&'static str, crate::churn::Writes> {
        let mut records = self.shared.writes.lock();
        records.iter_mut().map(|(plural, record)| (*plural, record.take())).collect()
    }

    /// Plans no further request, waits `drain` for calls to end, then deletes the remaining objects. Call `take` after
    /// `stop` for the last interval.
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
