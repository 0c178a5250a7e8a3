//! [`Churn`]: a plan in progress. The worker owns the known state of its objects.

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

/// The time that a failed fill may spend on removing its objects.
const FAILED_FILL_CLEANUP: Duration = Duration::from_secs(5);

/// Churn in progress. Dropping it stops it and leaves the objects; [`Churn::empty`] removes them.
#[derive(Debug)]
pub struct Churn {
    engine: Engine<Worker>,
    /// Operations that are not planned yet.
    operations: Option<Operations>,
    shared: Arc<Shared>,
    begin: Instant,
    resource: String,
    /// Finds the rate if the plan does not name one.
    steer: Option<Arc<Steer>>,
}

impl Churn {
    /// Fills the population, then starts the planned operations at `begin`, or when the fill is done if that is later: see
    /// [`Churn::begin`].
    pub async fn start(plan: Plan, api: &Api, begin: Instant) -> Result<Self, Error> {
        let mut churn = Self::fill(plan, api).await?;
        churn.go(begin)?;
        Ok(churn)
    }

    /// Fills the population at full speed with bounded concurrency and rehearses each kind of write. No planned
    /// operation starts before [`Churn::go`].
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

    /// Starts the planned operations at `begin`, or now if that is later. Once.
    pub fn go(&mut self, begin: Instant) -> Result<(), Error> {
        let Some(operations) = self.operations.take() else { return Ok(()) };
        self.begin = begin.max(Instant::now());
        match self.steer.clone() {
            Some(steer) => Ok(self.engine.go_steered(operations, steer)?),
            None => Ok(self.engine.go(operations, self.begin)?),
        }
    }

    /// The churned resource: `packages.longhaul.dev`, or `configmaps` in the core group.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// When the planned operations began.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// The counts and measurements since the last call. Cheap: recorders are swapped.
    pub fn take(&self) -> Interval {
        let fresh = Recorder::default();
        let full = std::mem::replace(&mut *self.shared.recorder.lock(), fresh);
        let heard = std::mem::take(&mut *self.shared.heard.lock());
        let interval = full.finish(self.shared.counts.take(), self.shared.objects_total.load(Ordering::Relaxed));
        Interval { answers: heard.finish(), ..interval }
    }

    /// The writes that succeeded since the last call, including fill, canary and clean-up; of the population's
    /// resource, not the namespaces. None if the plan does not record them: see [`Plan::recording_writes`].
    ///
    /// Drain it every few seconds: the record is bounded, and writes beyond the bound are only counted.
    pub fn take_writes(&self) -> Option<Writes> {
        self.shared.writes.as_ref().map(|record| record.lock().take())
    }

    /// Writes one extra object, made at the first call, and returns the written version. Works before, during and after
    /// the planned operations, until [`Churn::empty`].
    pub async fn canary(&self) -> Result<CanaryWrite, Error> {
        self.canaries().write().await
    }

    /// A handle that writes canaries without owning the churn. After the churn has ended, writing fails with
    /// [`Error::Ended`].
    pub fn canaries(&self) -> Canaries {
        Canaries { orders: self.engine.orders() }
    }

    /// Starts no further operation, and waits `drain` for those in flight. The objects stay. Take the last interval
    /// afterwards.
    pub async fn stop(&mut self, drain: Duration) -> Result<(), Error> {
        self.engine.stop(drain).await.ok_or(Error::Ended)
    }

    /// Stops if that was not done, deletes every object that churn made, waits up to 30 s for finalizers, and deletes
    /// the namespaces. Returns the number of deleted objects of the population.
    pub async fn empty(&mut self) -> Result<u64, Error> {
        self.engine.halt();
        self.engine.ask(Command::Empty).await.ok_or(Error::Ended)?
    }
}

/// Writes canaries: see [`Churn::canary`].
#[derive(Debug, Clone)]
pub struct Canaries {
    orders: Orders<Command>,
}

impl Canaries {
    /// Writes one and returns the written version.
    pub async fn write(&self) -> Result<CanaryWrite, Error> {
        self.orders.ask(Command::Canary).await.ok_or(Error::Ended)?
    }
}
