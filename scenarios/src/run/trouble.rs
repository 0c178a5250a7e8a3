//! Faults that the run itself injects: faults of the subject, of Pods, and of the control plane's programs.
//!
//! Owns the times and hits of these faults, and restores the earlier state when a fault ends. Each fault is one file
//! below this folder and one line in [`PlayedFault::play`]. The Pods and programs are known only when the subject is prepared.
//! A fault reaches what only the main task of the run may change through [`PlayedFault::with`].

mod access;
mod apiserver_restart;
mod certificate_expiry;
mod certificate_rotation;
mod children_drift;
mod config_reload;
mod etcd_slow;
mod leader_loss;
mod network_policy;
mod node_pressure;
mod pod_kill;
mod rolling_restart;
mod scale;
mod shared_cache;
mod subject_restart;
mod tags_moved;
mod trusted_keys;
mod validator_delay;
mod validator_restart;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kind::leaders::Leaders;
use kind::machinery::Machinery;
use kind::node::Firewall;
use loadgen::churn;
use mock_faults::table::Table;
use mock_faults::{Error, Family, Fault, FaultId, Hit, Name, PAUSE, Player};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use units::Span;

pub(super) use self::access::Access;
use self::access::Order;
pub(super) use self::certificate_rotation::first_valid;
use super::deploy::{Pod, Rollout};
use super::drift::Drifts;
use super::redis::Cache;
use crate::subject::Pods;

/// Longest wait for a fault's end: Pods of the service drain for up to 40 s, and two Pods drain one after the other.
const OVER_WITHIN: Duration = Duration::from_mins(3);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait until changes are undone when a run ends early.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Maximum number of orders that wait for the main task of the run. Each active fault gives one order at a time.
const ORDERS_MAX: usize = 64;

/// Injects the faults of Pods and of programs. Clones share the same state.
#[derive(Clone)]
pub(super) struct Troubles(Arc<Core>);

struct Core {
    epoch: Instant,
    table: Mutex<Table<CancellationToken>>,
    struck: Arc<Notify>,
    ground: OnceLock<Ground>,
    /// Held by a slow action, so that slow actions run one after the other.
    turn: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    /// Work that may outlast the load, such as the end of a replaced process.
    afterwards: TaskTracker,
    orders: mpsc::Sender<Order>,
    /// The orders to carry out; `None` once nobody carries them out any more.
    given: Mutex<Option<mpsc::Receiver<Order>>>,
    /// The reason why a fault could not be injected.
    broken: Mutex<Option<anyhow::Error>>,
}

/// The Pods, programs and addresses on which the faults act.
#[derive(Default)]
pub(super) struct Ground {
    pub(super) deployed: Option<Subject>,
    /// The programs of the control plane, if they are known.
    pub(super) machinery: Option<Machinery>,
    /// The cluster's control planes, if it has several and one can be stopped.
    pub(super) leaders: Option<Leaders>,
    /// A firewall that drops packets if the cluster's network does not enforce policies.
    pub(super) firewall: Option<Firewall>,
    /// The API, called with the harness's identity.
    pub(super) api: Option<churn::Api>,
    /// The registry's address that Pods use.
    pub(super) registry: Option<SocketAddr>,
    /// The shared cache in which the subject keeps verdicts.
    pub(super) cache: Option<Arc<Cache>>,
    /// Changes children of the subject, if a fault does so.
    pub(super) drifts: Option<Arc<Drifts>>,
}

pub(super) struct Subject {
    pub(super) rollout: Arc<Rollout>,
    pub(super) pods: Pods,
    /// The subject's serving certificate, if the run makes it.
    pub(super) serving: Option<Serving>,
}

pub(super) struct Serving {
    /// Namespace and name of the certificate's Secret.
    pub(super) secret: (String, String),
    pub(super) authority: Arc<mock_pki::Authority>,
    pub(super) names: Vec<String>,
}

struct PlayedFault<'a> {
    core: &'a Arc<Core>,
    id: FaultId,
    fault: &'a Fault,
    ended: &'a CancellationToken,
}

impl Troubles {
    /// A state without Pods and programs to act on. Times of hits count from `epoch`.
    pub(super) fn new(epoch: Instant, seed: u64) -> Self {
        let table = Table::new(seed);
        let (orders, given) = mpsc::channel(ORDERS_MAX);
        Self(Arc::new(Core {
            epoch,
            struck: table.struck(),
            table: Mutex::new(table),
            ground: OnceLock::new(),
            turn: tokio::sync::Mutex::new(()),
            tasks: TaskTracker::new(),
            afterwards: TaskTracker::new(),
            orders,
            given: Mutex::new(Some(given)),
            broken: Mutex::new(None),
        }))
    }

    /// Sets the Pods, programs and addresses on which the faults act; called once.
    pub(super) fn act_on(&self, ground: Ground) {
        let _ = self.0.ground.set(ground);
    }

    /// Returns after the next hit of a fault.
    pub(super) async fn struck(&self) {
        self.0.struck.notified().await;
    }

    /// Carries out the orders of faults. Called by the main task of the run.
    pub(super) fn obey(&self, access: &mut dyn Access) {
        loop {
            let order = self.0.given.lock().as_mut().and_then(|given| given.try_recv().ok());
            let Some(order) = order else { return };
            order(access);
        }
    }

    /// Refuses all orders from now on, because the subject is about to stop.
    pub(super) fn dismiss(&self) {
        *self.0.given.lock() = None;
    }

    /// The changes of children; `None` if no fault changes children.
    pub(super) fn drifts(&self) -> Option<Arc<Drifts>> {
        self.0.ground.get()?.drifts.clone()
    }

    /// Waits until no work of a fault goes on.
    pub(super) async fn finished(&self) {
        self.0.afterwards.close();
        self.0.afterwards.wait().await;
    }

    /// Takes the reason why a fault could not be injected; a second call returns `None`.
    pub(super) fn take_broken(&self) -> Option<anyhow::Error> {
        self.0.broken.lock().take()
    }

    /// Waits until the changes of ended faults are undone.
    pub(super) async fn settled(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.tasks.reopen();
    }

    /// Ends all active faults at once.
    pub(super) async fn stop(&self) {
        self.0.table.lock().entries.iter().for_each(|entry| entry.played.cancel());
        let _ = tokio::time::timeout(STOP_WITHIN, self.settled()).await;
    }
}

impl Player for Troubles {
    fn begin(&self, id: FaultId, fault: &Fault) -> Result<(), Error> {
        fault.check()?;
        let ended = CancellationToken::new();
        self.0.table.lock().begin(id, fault, ended.clone())?;
        let (core, fault) = (Arc::clone(&self.0), fault.clone());
        self.0.tasks.spawn(async move {
            let deed = PlayedFault { core: &core, id, fault: &fault, ended: &ended };
            if let Err(error) = Box::pin(deed.play()).await {
                let name = fault.name.as_str();
                core.broken.lock().get_or_insert(error.context(format!("the harness could not play `{name}`")));
            }
        });
        Ok(())
    }

    fn end(&self, id: FaultId) {
        let mut table = self.0.table.lock();
        if let Some(index) = table.end(id) {
            table.entries[index].played.cancel();
        }
    }

    fn hits(&self, id: FaultId) -> u64 {
        self.0.table.lock().hits_of(id)
    }

    fn take_hits(&self) -> Vec<Hit> {
        self.0.table.lock().take_hits()
    }
}

impl PlayedFault<'_> {
    async fn play(&self) -> Result<()> {
        match self.fault.name {
            Name::PodKill => pod_kill::play(self).await,
            Name::RollingRestart => rolling_restart::play(self).await,
            Name::Scale => scale::play(self).await,
            Name::NodePressure => node_pressure::play(self).await,
            Name::CertificateExpiry => certificate_expiry::play(self).await,
            Name::NetworkPolicy => network_policy::play(self).await,
            Name::ApiserverRestart => apiserver_restart::play(self).await,
            Name::EtcdSlow => etcd_slow::play(self).await,
            Name::LeaderLoss => leader_loss::play(self).await,
            Name::SubjectRestart => subject_restart::play(self).await,
            Name::CertificateRotation => certificate_rotation::play(self).await,
            Name::TrustedKeys => trusted_keys::play(self).await,
            Name::ValidatorRestart => validator_restart::play(self).await,
            Name::ValidatorDelay => validator_delay::play(self).await,
            Name::SharedCacheAway => shared_cache::away(self).await,
            Name::SharedCacheForges => shared_cache::forges(self).await,
            Name::TagsMoved => tags_moved::play(self).await,
            Name::ChildrenDrift => children_drift::play(self).await,
            Name::ConfigReload => config_reload::play(self).await,
            _ => bail!("it belongs to another client"),
        }
    }

    /// Runs `work` in the main task of the run, which owns the subject's processes.
    async fn with<T: Send + 'static>(&self, work: impl FnOnce(&mut dyn Access) -> T + Send + 'static) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let order: Order = Box::new(move |access| drop(answer.send(work(access))));
        self.core.orders.send(order).await.ok().context("the run has ended")?;
        answered.await.context("the run has ended")
    }

    fn ground(&self) -> Result<&Ground> {
        self.core.ground.get().context("there is no target yet")
    }

    fn subject(&self) -> Result<&Subject> {
        self.ground()?.deployed.as_ref().context("the subject does not run in Pods")
    }

    fn machinery(&self) -> Result<&Machinery> {
        self.ground()?.machinery.as_ref().context("the programs of the control plane are not known")
    }

    fn hit(&self, detail: String) {
        self.hits(vec![detail]);
    }

    /// Counts several hits at the same moment.
    fn hits(&self, details: Vec<String>) {
        let at_us = u64::try_from(self.core.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut table = self.core.table.lock();
        if let Some(index) = table.newest(self.id) {
            for detail in details {
                table.hit(index, at_us, detail);
            }
        }
    }

    /// Repeats an action as often as the fault's `count` says. Actions on Pods and programs never happen together.
    fn times(&self, pause: Option<Span>) -> Times<'_> {
        let pause = pause.unwrap_or(PAUSE).0;
        Times { deed: self, pause, count: self.fault.count_most().unwrap_or(1), done: 0, due: None }
    }

    /// Repeats an action until the fault ends, or as often as the fault's `count` says. Each repetition is a hit.
    async fn repeat<W: Future<Output = Result<String>> + Send>(
        &self,
        pause: Duration,
        mut work: impl FnMut() -> W + Send,
    ) -> Result<()> {
        let mut due = tokio::time::Instant::now();
        let mut done = 0;
        while self.fault.count_most().is_none_or(|count| done < count) {
            if tokio::time::timeout_at(due, self.ended.cancelled()).await.is_ok() {
                break;
            }
            self.hit(work().await?);
            (due, done) = (due + pause, done + 1);
        }
        Ok(())
    }

    /// Waits for this time. Returns false if the fault ends first.
    async fn rest(&self, length: Duration) -> bool {
        tokio::time::timeout(length, self.ended.cancelled()).await.is_err()
    }
}

/// Number of done and planned repetitions of an action.
struct Times<'a> {
    deed: &'a PlayedFault<'a>,
    pause: Duration,
    count: u64,
    done: u64,
    /// The time of the next repetition; `None` before the first.
    due: Option<tokio::time::Instant>,
}

impl Times<'_> {
    /// Waits until the next repetition is due and returns its number; `None` after the last.
    async fn next(&mut self) -> Result<Option<u64>> {
        if self.done == self.count {
            return Ok(None);
        }
        if let Some(due) = self.due {
            tokio::select! {
                () = self.deed.ended.cancelled() => return Err(self.unfinished()),
                () = tokio::time::sleep_until(due) => {}
            }
        }
        self.due = Some(tokio::time::Instant::now() + self.pause);
        Ok(Some(self.done))
    }

    /// Performs an action of the fault, and counts a hit when the action is complete.
    async fn does(&mut self, work: impl Future<Output = Result<String>> + Send) -> Result<()> {
        let is_alone = self.deed.fault.name.row().family != Family::Subject;
        let in_turn = async {
            let _turn = if is_alone { Some(self.deed.core.turn.lock().await) } else { None };
            work.await
        };
        let told = tokio::select! {
            () = self.deed.ended.cancelled() => return Err(self.unfinished()),
            told = in_turn => told?,
        };
        self.done += 1;
        self.deed.hit(told);
        Ok(())
    }

    fn unfinished(&self) -> anyhow::Error {
        let Self { done, count, .. } = self;
        anyhow::anyhow!(
            "only {done} of {count} were over when load ended: make `phases.steady` longer, or ask for fewer"
        )
    }
}

impl Subject {
    /// The subject's Pods without a deletion mark.
    async fn here(&self) -> Result<Vec<Pod>> {
        let mut all = self.rollout.pods().await?;
        all.retain(|pod| !pod.is_going);
        Ok(all)
    }

    /// Waits until `is_over` holds for the subject's Pods and all Pods are ready.
    async fn wait(&self, what: &str, is_over: impl Fn(&[Pod]) -> bool + Send + Sync) -> Result<()> {
        let deadline = Instant::now() + OVER_WITHIN;
        loop {
            let over = is_over(&self.rollout.pods().await?);
            let missing = self.rollout.missing().await;
            if over && missing.is_none() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let missing = missing.unwrap_or_else(|| "the old Pods are still there".to_owned());
                bail!("{what} was not over after {} s: {missing}", OVER_WITHIN.as_secs());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
