//! [`Churn`]: a plan that is being carried out. The worker owns the known state of its objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Error;
use super::api::{Api, Client};
use super::interval::{Interval, Recorder};
use super::operate::Operator;
use super::operations::Operations;
use super::plan::Plan;
use super::shared::{CanaryWrite, Shared};
use super::worker::{Command, Worker};
use super::writes::Writes;
use crate::open_loop::{Engine, Orders, Steer};

/// If the creation of the first objects fails, they are removed within this time.
const FAILED_FILL_CLEANUP: Duration = Duration::from_secs(5);

/// Churn that is under way. Dropping the value stops churn and leaves the objects in the control plane;
/// [`Churn::empty`] removes them.
#[derive(Debug)]
pub struct Churn {
    engine: Engine<Worker>,
    /// The plan's operations, until they are passed to the pacing thread.
    operations: Option<Operations>,
    shared: Arc<Shared>,
    begin: Instant,
    resource: String,
    /// Finds the rate while churn runs, if the plan has `rate: auto`.
    steer: Option<Arc<Steer>>,
}

impl Churn {
    /// Creates the first objects, then starts the planned operations at `begin`, or later if creation takes longer; see
    /// [`Churn::begin`].
    pub async fn start(plan: Plan, api: &Api, begin: Instant) -> Result<Self, Error> {
        let mut churn = Self::fill(plan, api).await?;
        churn.go(begin)?;
        Ok(churn)
    }

    /// Creates the first objects as fast as possible, with bounded concurrency, and tries each kind of write in a dry
    /// run. No planned operation starts before [`Churn::go`].
    pub async fn fill(plan: Plan, api: &Api) -> Result<Self, Error> {
        let client = Arc::new(Client::new(api)?);
        let writes = plan.records_writes().then(Mutex::default);
        let shared = Arc::new(Shared { writes, ..Shared::default() });
        let (operations, resource) = (Some(plan.operations()), plan.resource_name());
        let steer = plan.config().rate.steer().cloned();
        let operator = Operator { client, plan, shared: Arc::clone(&shared) };
        let worker = Worker::new(operator, Arc::clone(&shared));
        let engine = Engine::start("churn", worker, Arc::clone(&shared.counts))?;
        let mut churn = Self { engine, operations, shared, begin: Instant::now(), resource, steer };
        if let Err(error) = churn.engine.ask(Command::Fill).await.ok_or(Error::Ended)? {
            // Remove the objects, as far as the API permits.
            let _ = tokio::time::timeout(FAILED_FILL_CLEANUP, churn.empty()).await;
            return Err(error);
        }
        Ok(churn)
    }

    /// Starts the planned operations at `begin`, or now if `begin` is past. Call this function only once.
    pub fn go(&mut self, begin: Instant) -> Result<(), Error> {
        let Some(operations) = self.operations.take() else { return Ok(()) };
        self.begin = begin.max(Instant::now());
        match self.steer.clone() {
            Some(steer) => Ok(self.engine.go_steered(operations, steer)?),
            None => Ok(self.engine.go(operations, self.begin)?),
        }
    }

    /// The churned resource, such as `packages.longhaul.dev`, or `configmaps` in the core group.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The time at which the planned operations began.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// The counts and measurements since the last call of `take`.
    pub fn take(&self) -> Interval {
        let fresh = Recorder::default();
        let full = std::mem::replace(&mut *self.shared.recorder.lock(), fresh);
        let heard = std::mem::take(&mut *self.shared.heard.lock());
        let interval = full.finish(self.shared.counts.take(), self.shared.objects_total.load(Ordering::Relaxed));
        Interval { answers: heard.finish(), ..interval }
    }

    /// The successful writes to the churned resource since the last call, including the first objects, canaries and
    /// clean-up. Writes to namespaces are left out. `None` if the plan does not record writes; see
    /// [`Plan::recording_writes`].
    ///
    /// Call this function every few seconds: the record is bounded, and writes beyond the limit are only counted.
    pub fn take_writes(&self) -> Option<Writes> {
        self.shared.writes.as_ref().map(|record| record.lock().take())
    }

    /// Writes an additional object, the canary, and returns the written version. The first call creates the canary.
    /// Canaries can be written before, during and after the planned operations, until [`Churn::empty`].
    pub async fn canary(&self) -> Result<CanaryWrite, Error> {
        self.canaries().write().await
    }

    /// A handle that writes canaries and does not own the churn. After churn has ended, a write fails with
    /// [`Error::Ended`].
    pub fn canaries(&self) -> Canaries {
        Canaries { orders: self.engine.orders() }
    }

    /// Starts no further operation, and waits `drain` for operations in flight. The objects stay in the control plane.
    /// Call `take` after `stop` for the last interval.
    pub async fn stop(&mut self, drain: Duration) -> Result<(), Error> {
        self.engine.stop(drain).await.ok_or(Error::Ended)
    }

    /// Stops churn if it still runs, deletes every object of churn, waits up to 30 s for finalizers, and deletes the
    /// namespaces. Returns the number of deleted objects.
    pub async fn empty(&mut self) -> Result<u64, Error> {
        self.engine.halt();
        self.engine.ask(Command::Empty).await.ok_or(Error::Ended)?
    }
}

/// Writes canaries; see [`Churn::canary`].
#[derive(Debug, Clone)]
pub struct Canaries {
    orders: Orders<Command>,
}

impl Canaries {
    /// Writes a canary and returns the written version.
    pub async fn write(&self) -> Result<CanaryWrite, Error> {
        self.orders.ask(Command::Canary).await.ok_or(Error::Ended)?
    }
}
