//! The watcher role: its configuration section, its watches and its queues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, select_all};
use parking_lot::RwLock;
use service_core::config::{Config, Kubernetes, kind};
use service_core::edge::Probe;
use service_core::kube::{Client, Cluster};
use service_core::role::{About, Prepared, Reload, Role, Running, Start, Started};
use service_watch::config::Watch;
use service_watch::{Form, Informer, Source, Start as Begin, Store};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::action::{self, Action, Way};
use crate::api::Api;
use crate::config::{self, Act, Receiver, Resource, Selectors, Watcher};
use crate::filter::Filter;
use crate::hook::Hook;
use crate::meta::Meta;
use crate::metrics::Metrics;
use crate::problems::Problems;
use crate::tell::{self, Entrance};
use crate::visit::Tools;
use crate::work::{Task, Work};

/// Time at the end of the process for workers to finish, and for receivers to take waiting events.
const FINISH_MAX: Duration = Duration::from_secs(3);
/// Time limit of a post to the witness, the same as in other roles.
const WITNESS_TIMEOUT: Duration = Duration::from_secs(5);

const ABOUT: About = About {
    name: "watcher",
    help: "Only what is told of objects of any resource, and their hooks",
    sections: &[kind::<Kubernetes>(), kind::<Watch>(), kind::<Watcher>()],
    needs: &[Config::has::<Watcher>],
    lacks: "the section `watcher` (actions) in the configuration",
    always: false,
};

/// The role that informs other systems about objects, or lets their hooks process objects.
#[derive(Debug)]
pub struct WatcherRole;

impl Role for WatcherRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&self, _: &mut Start<'_>) -> anyhow::Result<Prepared> {
        Ok(Prepared::of(|start| async move { begin(start).context("failed to start the watcher") }.boxed()))
    }
}

/// The state of the role during its start.
struct Build<'a> {
    client: Arc<Client>,
    board: Arc<Problems>,
    metrics: Metrics,
    one_by_one: Arc<Semaphore>,
    witness_url: Option<&'a str>,
    receivers: BTreeMap<Receiver, Entrance>,
    deliveries: JoinSet<()>,
    work: Vec<Arc<Work>>,
    workers: JoinSet<()>,
}

fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let settings = start.config.find::<Watcher>().context("the section `watcher` is missing")?;
    let watch = start.config.of::<Watch>();
    let cluster = Cluster::find(start.config.of::<Kubernetes>().kubeconfig.as_deref())?;
    let client = Arc::new(Client::new(cluster, watch.transport));
    let tells = settings.actions.iter().any(|action| action.act == Act::Watch(None));
    let watches = start.watches();
    let mut build = Build {
        client: Arc::clone(&client),
        board: Arc::default(),
        metrics: Metrics::register(start.metrics),
        one_by_one: Arc::new(Semaphore::new(1)),
        witness_url: if tells { start.witness_url.take() } else { None },
        receivers: BTreeMap::new(),
        deliveries: JoinSet::new(),
        work: Vec::new(),
        workers: JoinSet::new(),
    };
    let mut filters = Vec::new();
    let mut resources: BTreeMap<(&Resource, &Selectors), (Source, Vec<Action>)> = BTreeMap::new();
    for one in &settings.actions {
        let (source, actions) = resources
            .entry((&one.resource, &one.selectors))
            .or_insert_with(|| (source(&one.resource, &one.selectors, settings.streaming_lists), Vec::new()));
        let filter = Arc::new(RwLock::new(one.filter.clone()));
        filters.push(Arc::clone(&filter));
        let way = build.way(one, source).with_context(|| format!("the action `{}`", one.id))?;
        actions.push(Action { name: (&*one.id).into(), filter, way });
    }
    let mut informers = Vec::new();
    for ((resource, selectors), (source, actions)) in resources {
        let metrics = build.metrics.clone();
        let wanted = settings.wanted(resource, selectors);
        let name = source.resource.clone();
        let begin = Begin {
            source,
            settings: watch,
            client: Arc::clone(&client),
            metrics: &watches,
            witness_url: None,
            sink: Box::new(move |event| action::show(&actions, &name, event, &metrics)),
        };
        informers.push(Informer::start_with(begin, Store::keeping(move |raw| Meta::kept(raw, &wanted)))?);
    }
    let mut probes: Vec<Arc<dyn Probe>> = informers.iter().map(Informer::probe).collect();
    probes.push(Arc::clone(&build.board) as _);
    let mut follower = JoinSet::new();
    follower.spawn(client.follow_files());
    let Build { deliveries, work, workers, .. } = build;
    let running = Box::new(Stage { informers, deliveries, work, workers, follower });
    Ok(Started { served: None, probes, reload: Some(reload(settings.clone(), filters)), running })
}

impl Build<'_> {
    /// The receiver, hook or log for an action's events.
    fn way(&mut self, settings: &config::Action, source: &Source) -> anyhow::Result<Way> {
        let (work, task) = match &settings.act {
            Act::Watch(receiver) => return self.tell(settings, receiver.as_ref()),
            Act::Reconcile(work) => (work, Task::Reconcile),
            Act::Finalize(work, finalizer) => (work, Task::Finalize(finalizer.as_str().into())),
        };
        let tools = Tools {
            action: (&*settings.id).into(),
            resource: source.resource.clone(),
            hook: Hook::new(&work.hook, work.workers)?,
            api: Api::new(Arc::clone(&self.client), &source.path),
        };
        let (board, metrics) = (Arc::clone(&self.board), self.metrics.clone());
        let all = Arc::new(Work::new(tools, task, work, &self.one_by_one, board, metrics));
        for _ in 0..work.workers {
            self.workers.spawn(Arc::clone(&all).run());
        }
        self.work.push(Arc::clone(&all));
        Ok(Way::Work(all))
    }

    fn tell(&mut self, settings: &config::Action, receiver: Option<&Receiver>) -> anyhow::Result<Way> {
        let asked =
            |url: &str| Receiver { url: url.to_owned(), ca_file: None, token_file: None, timeout: WITNESS_TIMEOUT };
        let Some(receiver) = receiver.cloned().or(self.witness_url.map(asked)) else { return Ok(Way::Log) };
        if let Some(entrance) = self.receivers.get(&receiver) {
            return Ok(Way::Tell(entrance.clone()));
        }
        let hook = Hook::new(&receiver, 1)?;
        let (entrance, delivery) = tell::queue(&settings.id, hook, Arc::clone(&self.board), self.metrics.clone());
        self.deliveries.spawn(delivery.run());
        self.receivers.insert(receiver, entrance.clone());
        Ok(Way::Tell(entrance))
    }
}

fn source(resource: &Resource, selectors: &Selectors, streamed: bool) -> Source {
    let probe = format!("watcher/{}", resource.name);
    let mut source = Source::configured(&resource.name, probe, &resource.path, Form::Metadata);
    if let Some(labels) = &selectors.labels {
        source = source.labelled(labels.clone());
    }
    if let Some(fields) = &selectors.fields {
        source = source.with_fields(fields.clone());
    }
    if streamed { source.streamed() } else { source }
}

/// Replaces the filters of actions; later events use the new filters.
fn reload(mut running: Watcher, filters: Vec<Arc<RwLock<Filter>>>) -> Reload {
    Box::new(move |fresh| {
        let Some(fresh) = fresh.find::<Watcher>() else { return Ok(Vec::new()) };
        if running.differs_by_filters_only(fresh) {
            for (filter, action) in filters.iter().zip(&fresh.actions) {
                *filter.write() = action.filter.clone();
            }
            running.clone_from(fresh);
        }
        Ok(Vec::new())
    })
}

struct Stage {
    informers: Vec<Informer<Meta>>,
    deliveries: JoinSet<()>,
    work: Vec<Arc<Work>>,
    workers: JoinSet<()>,
    follower: JoinSet<()>,
}

impl Running for Stage {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        async move {
            let watches = select_all(self.informers.iter_mut().map(|informer| informer.broken().boxed()));
            tokio::select! {
                (why, _, _) = watches => format!("a watch of the watcher broke: {why}"),
                Some(_) = self.deliveries.join_next() => "what tells a receiver ended".into(),
                Some(_) = self.workers.join_next() => "a worker of the watcher ended".into(),
                Some(_) = self.follower.join_next() => "the reader of the connection's files ended".into(),
            }
        }
        .boxed()
    }

    /// Lets open calls of hooks end, then sends waiting events.
    fn leave(&mut self) -> BoxFuture<'_, ()> {
        async move {
            // The watches hold the queues' senders, so the queues end when they are empty.
            join_all(self.informers.iter_mut().map(Informer::stop)).await;
            self.work.iter().for_each(|work| work.close());
            let finish = async {
                while self.workers.join_next().await.is_some() {}
                while self.deliveries.join_next().await.is_some() {}
            };
            // The next process sees the remaining events again, as new.
            let _ = timeout(FINISH_MAX, finish).await;
        }
        .boxed()
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}
