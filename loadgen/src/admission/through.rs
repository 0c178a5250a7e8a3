//! Admission load through an API server: real objects are written, and the API server asks the webhook that is registered there.
//!
//! The path of a request: [`Plan::build`] makes manifests and an exact stream of (time, operation) from the same mix as direct load; a
//! pacing thread hands each over when it is due; a worker sends it as a user would, compares the answer with what is right, and
//! records. Beside it [`Stored`] watches what the API server really keeps, so that a webhook that was not asked is seen too.
//!
//! There are no controllers here: an operation is one request of one user. Objects have names that never come back, and are
//! deleted again, so that their number stays bounded.

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
use tokio::sync::{mpsc, oneshot};

use super::{Error, Interval};
use crate::churn::Api;
use crate::churn::api::Client;
use crate::churn::writes::Record;
use crate::pace::{Counts, Pacer};
use operate::Operator;
use recorder::Recorder;
use worker::{Command, Worker};

pub use plan::Plan;
pub use stock::written;
pub use stored::{Found, Stored};

pub(super) use plan::check;

/// Requests that the pacing thread may hand over before the worker takes one.
const QUEUE: usize = 1024;
const COMMANDS: usize = 4;

/// Load through an API server, under way. Dropping it ends it and leaves its objects; [`Load::stop`] removes them.
#[derive(Debug)]
pub struct Load {
    pacer: Option<Pacer>,
    worker: Option<std::thread::JoinHandle<()>>,
    commands: mpsc::Sender<Command>,
    /// Dropped to end the worker at once, whatever it is waiting for.
    alive: Option<oneshot::Sender<()>>,
    shared: Arc<Shared>,
}

/// Shared between the threads.
#[derive(Debug, Default)]
struct Shared {
    counts: Arc<Counts>,
    recorder: Mutex<Recorder>,
    /// What was written, by the plural of the kind.
    writes: Mutex<BTreeMap<&'static str, Record>>,
}

impl Load {
    /// Makes the namespaces. Nothing else is written until [`Load::begin`].
    pub async fn prepare(plan: &Plan, api: &Api, label: (&str, &str)) -> Result<(), Error> {
        let client = client(api)?;
        for name in plan.namespaces() {
            let object = serde_json::json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {label.0: label.1}}
            });
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (out, due) = mpsc::channel(QUEUE);
        let (commands, queue) = mpsc::channel(COMMANDS);
        let (alive, dropped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("admission-worker".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = worker.run(due, queue) => {}
                    _ = dropped => {}
                }
            });
        })?;
        let mut load = Self { pacer: None, worker: Some(thread), commands, alive: Some(alive), shared };
        let counts = Arc::clone(&load.shared.counts);
        load.pacer = Some(Pacer::start("admission-pacer", begin, plan.clone().operations(), out, counts)?);
        Ok(load)
    }

    /// What was counted and measured since the last call. Cheap: recorders are swapped.
    pub fn take(&self) -> Interval {
        let full = std::mem::take(&mut *self.shared.recorder.lock());
        full.finish(self.shared.counts.take())
    }

    /// What the answers since the last call say was written, for [`Stored::wrote`].
    pub fn take_writes(&self) -> BTreeMap<&'static str, crate::churn::Writes> {
        let mut records = self.shared.writes.lock();
        records.iter_mut().map(|(plural, record)| (*plural, record.take())).collect()
    }

    /// Plans no further request, lets calls end for so long, then deletes what is left of its objects. Take the last interval
    /// afterwards.
    pub async fn stop(&mut self, drain: Duration) {
        self.pacer = None;
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Stop(Instant::now() + drain, reply)).await.is_ok() {
            // An error means that the worker is gone: its panic has been printed.
            let _ = done.await;
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.pacer = None;
        self.alive = None;
        if let Some(worker) = self.worker.take() {
            // A panic there has been printed by the panic hook.
            let _ = worker.join();
        }
    }
}

fn client(api: &Api) -> Result<Client, Error> {
    Client::new(api).map_err(|error| Error::Target { problem: error.to_string() })
}

fn refused(failure: crate::wire::Failure) -> Error {
    Error::Target { problem: failure.text }
}
