//! Faults of Pods and of the control plane's programs, as they occur in real clusters.
//!
//! Owns the times and hits of the faults of Pods and programs, and restores the earlier state when a fault ends. The
//! Pods and programs are known only when the subject is prepared.

mod apiserver_restart;
mod certificate_expiry;
mod etcd_slow;
mod leader_loss;
mod network_policy;
mod node_pressure;
mod pod_kill;
mod rolling_restart;
mod scale;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kind::leaders::Leaders;
use kind::machinery::Machinery;
use kind::node::Firewall;
use loadgen::churn;
use mock_faults::table::Table;
use mock_faults::{Error, Fault, FaultId, Hit, Name, PAUSE, Player};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use units::Span;

use super::deploy::{Pod, Rollout};
use crate::subject::Pods;

/// Longest wait for a fault's end: Pods of the service drain for up to 40 s, and two Pods drain one after the other.
const OVER_WITHIN: Duration = Duration::from_mins(3);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait until changes are undone when a run ends early.
const STOP_WITHIN: Duration = Duration::from_secs(10);

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

struct Deed<'a> {
    core: &'a Core,
    id: FaultId,
    fault: &'a Fault,
    ended: &'a CancellationToken,
}

impl Troubles {
    /// A state without Pods and programs to act on. Times of hits count from `epoch`.
    pub(super) fn new(epoch: Instant, seed: u64) -> Self {
        let table = Table::new(seed);
        Self(Arc::new(Core {
            epoch,
            struck: table.struck(),
            table: Mutex::new(table),
            ground: OnceLock::new(),
            turn: tokio::sync::Mutex::new(()),
            tasks: TaskTracker::new(),
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
            let deed = Deed { core: &core, id, fault: &fault, ended: &ended };
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

impl Deed<'_> {
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
            _ => bail!("it belongs to another client"),
        }
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
        let at_us = u64::try_from(self.core.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut table = self.core.table.lock();
        if let Some(index) = table.newest(self.id) {
            table.hit(index, at_us, detail);
        }
    }

    /// Repeats an action as often as the fault's `count` says, and never together with an action of another fault.
    fn times(&self, pause: Option<Span>) -> Times<'_> {
        let pause = pause.unwrap_or(PAUSE).0;
        Times { deed: self, pause, count: self.fault.count_most().unwrap_or(1), done: 0, due: None }
    }

    /// Waits for this time. Returns false if the fault ends first.
    async fn rest(&self, length: Duration) -> bool {
        tokio::time::timeout(length, self.ended.cancelled()).await.is_err()
    }
}

/// Number of done and planned repetitions of an action.
struct Times<'a> {
    deed: &'a Deed<'a>,
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
        let in_turn = async {
            let _turn = self.deed.core.turn.lock().await;
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
