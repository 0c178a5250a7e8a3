//! A role with a planted bug. The bug changes the inputs and outputs of the role.

use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use futures_util::FutureExt as _;
use service_admission::config::{Admission, Images, ValidatorKind};
use service_core::alert::AlertSink;
use service_core::config::{Config, Kubernetes, kind};
use service_core::edge::Probe;
use service_core::known::Knowledge;
use service_core::kube::{Cluster, Transport};
use service_core::role::{About, Begin, Prepared, Role, Start, Started};
use service_registry::config::Resolve;
use service_replicas::config::Replicas;
use service_shared_cache::SharedCache;
use service_watch::config::Watch;
use service_watcher::Watcher;

use super::alerts::Spoilt;
use super::page::WrongPage;
use super::{Bug, answers, believes, growth, relay, stale, witness};
use service::roles::Roles;

/// A memory limit larger than any machine's memory, so that every request for memory fits.
const EVERYTHING_BYTES: usize = usize::MAX >> 4;
/// The name of the watch whose diagnostics no bug changes.
const OWN_PROBE: &str = "watch/networkpolicies";

/// The roles, changed by `bug` until the process ends.
pub fn around(roles: &Roles, bug: Bug) -> Roles {
    let planted = |role: &Arc<dyn Role>| Planted { role: Arc::clone(role), bug, alerts: Arc::default() };
    roles.iter().map(|role| Arc::new(planted(role)) as Arc<dyn Role>).collect()
}

#[derive(Clone)]
struct Planted {
    role: Arc<dyn Role>,
    bug: Bug,
    /// The falsified sink of alerts, which the prepared and the started role share.
    alerts: Arc<OnceLock<Arc<Spoilt>>>,
}

impl Planted {
    fn watches(&self) -> bool {
        self.role.about().sections.contains(&kind::<Watch>())
    }

    fn config(&self, config: &Config) -> Config {
        let mut config = config.clone();
        if let (Bug::HoldsEverything, Some(admission)) = (self.bug, config.find_mut::<Admission>()) {
            admission.max_held_bytes = Some(EVERYTHING_BYTES);
        }
        if let (Bug::AcceptsRevoked, Some(replicas)) = (self.bug, config.find_mut::<Replicas>()) {
            replicas.crl.clear();
        }
        if let (Bug::LockIgnored, Some(resolve)) = (self.bug, config.find_mut::<Resolve>()) {
            resolve.lock = None;
        }
        if let (Bug::WatcherDropsDelete, Some(watcher)) = (self.bug, config.find_mut::<Watcher>()) {
            watcher.actions.iter_mut().for_each(|action| action.filter.on.deleted = false);
        }
        if let (Bug::AsksOneValidator, Some(images)) = (self.bug, config.find_mut::<Images>()) {
            for validator in &mut images.validators {
                if let ValidatorKind::Remote(remote) = &mut validator.kind {
                    remote.way.instances.truncate(1);
                }
            }
        }
        config
    }

    fn alerts(&self, alerts: Option<Arc<dyn AlertSink>>) -> Option<Arc<dyn AlertSink>> {
        let alerts = alerts?;
        if !Spoilt::is_about(self.bug) {
            return Some(alerts);
        }
        Some(Arc::clone(self.alerts.get_or_init(|| Spoilt::before(alerts, self.bug))) as _)
    }

    /// The shared cache, changed by the bug. The changed cache opens one more connection, whose metrics are not served.
    fn known(&self, config: &Config, known: Option<Arc<dyn Knowledge>>) -> anyhow::Result<Option<Arc<dyn Knowledge>>> {
        match (self.bug, config.find::<SharedCache>()) {
            (Bug::BelievesRedis, Some(settings)) => Ok(Some(believes::cache(settings)?)),
            _ => Ok(known),
        }
    }

    async fn begin(self, begin: Begin, start: &mut Start<'_>) -> anyhow::Result<Started> {
        let mut config = self.config(start.config);
        let mut url = None;
        if self.watches() {
            if relay::is_needed(self.bug) {
                let cluster = Cluster::find(config.of::<Kubernetes>().kubeconfig.as_deref())?;
                let (kubeconfig, serve) = relay::before(cluster, self.bug).await?;
                start.background.spawn(serve);
                let kubernetes = config.find_mut::<Kubernetes>().context("no section `kubernetes`")?;
                kubernetes.kubeconfig = Some(kubeconfig);
                config.find_mut::<Watch>().context("no section `watch`")?.transport = Transport::Http1;
            }
            if let (Bug::DuplicateEvents | Bug::MissedDelete, Some(asked)) = (self.bug, start.witness_url) {
                let (between, serve) = witness::between(self.bug, asked).await?;
                start.background.spawn(serve);
                url = Some(between);
            }
        }
        let mut inner = with(start, &config);
        inner.witness_url = url.as_deref().or(inner.witness_url);
        inner.alerts = self.alerts(inner.alerts.take());
        inner.known = self.known(&config, inner.known.take())?;
        let started = begin(&mut inner).await?;
        let left = inner.witness_url.is_some();
        start.witness_url = start.witness_url.filter(|_| left);
        Ok(self.spoilt(started, start))
    }

    /// The outputs of the started role, changed by the bug.
    fn spoilt(&self, mut started: Started, start: &mut Start<'_>) -> Started {
        if !self.watches() {
            started.served = started.served.map(|(listener, handler)| {
                let handler = match self.alerts.get() {
                    Some(alerts) => Arc::clone(alerts).tells_dry_runs(handler),
                    None => handler,
                };
                (listener, answers::around(handler, self.bug))
            });
            return started;
        }
        let watches = start.watches();
        start.background.spawn(growth::follow(self.bug, watches));
        if self.bug == Bug::ServesStaleAfterRelist {
            let probes = started.probes.clone();
            started.served = started.served.map(|(listener, handler)| (listener, stale::around(handler, probes)));
        }
        if matches!(self.bug, Bug::StaleChild | Bug::MissedDelete) {
            let page = |probe: Arc<dyn Probe>| {
                if probe.objects().is_none() || probe.name() == OWN_PROBE {
                    return probe;
                }
                let page = WrongPage::new(probe, self.bug);
                start.background.spawn(Arc::clone(&page).follow());
                page as Arc<dyn Probe>
            };
            started.probes = started.probes.into_iter().map(page).collect();
        }
        started
    }
}

/// A copy of `start` with the configuration `config`.
fn with<'s>(start: &'s mut Start<'_>, config: &'s Config) -> Start<'s> {
    Start {
        config,
        witness_url: start.witness_url,
        metrics: start.metrics,
        edge: start.edge,
        certificates: start.certificates,
        look: start.look,
        background: start.background,
        alerts: start.alerts.clone(),
        known: start.known.clone(),
        review: start.review.clone(),
        judge: start.judge.clone(),
        calls: start.calls,
        watches: start.watches,
    }
}

impl Role for Planted {
    fn about(&self) -> &'static About {
        self.role.about()
    }

    fn check(&self, config: &Config) -> anyhow::Result<()> {
        self.role.check(config)
    }

    fn borrows(&self, config: &Config) -> bool {
        self.role.borrows(config)
    }

    fn prepare(&self, start: &mut Start<'_>) -> anyhow::Result<Prepared> {
        let config = self.config(start.config);
        let mut inner = with(start, &config);
        inner.alerts = self.alerts(inner.alerts.take());
        inner.known = self.known(&config, inner.known.take())?;
        let Prepared { reload, begin } = self.role.prepare(&mut inner)?;
        let (review, judge) = (inner.review.take(), inner.judge.take());
        (start.review, start.judge) = (review, judge);
        // The role has just said how much room there is.
        match self.bug {
            Bug::UncountedStreams => start.edge.room().resize(EVERYTHING_BYTES),
            Bug::UnboundedAnswers => start.edge.room().forget_answers(),
            _ => {}
        }
        let planted = self.clone();
        Ok(Prepared { reload, begin: Box::new(|start| planted.begin(begin, start).boxed()) })
    }
}
