//! Connects the simulated scheduler, kubelets and controllers (`mock-workloads`) with the API: passes commits to the
//! simulation, and sends the simulation's writes as requests.
//!
//! Owns one task, which reads commits like the janitor, and writes through the API with the user names of the programs
//! in a real cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, header};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use mock_faults::{ActiveFault, FlappingKeys, Name, NotReadyKeys, PERIOD};
use mock_store::ResourceId;
use mock_workloads::{Author, Batch, Config, How, Key, Kind, Machine, Trouble, Verb, Write};
use serde_json::Value;
use tokio::time::Instant;

use super::call::App;
use super::cluster::Cluster;
use super::config::Workloads;
use super::inside::{Inside, InsideConnection};
use super::wall::Wall;

/// Maximum number of commits that the task passes to the simulation at a time.
const COMMITS_MAX: usize = 4096;
/// Maximum number of objects that are written at the same time, so that one slow webhook does not delay all objects.
const AT_ONCE: usize = 16;
/// Time limit for the writes to one object. If a webhook is slow, the object's remaining writes wait until the other
/// objects are written, so that these are not delayed for minutes.
const TURN_MAX: Duration = Duration::from_secs(2);
/// Interval of checks whether a fault has begun or ended; the checks start with the first fault.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest time that the task sleeps if there is nothing to do.
const IDLE: Duration = Duration::from_secs(5);
/// The git revision in the user agents of the simulated programs, as in Kubernetes 1.34.1.
const COMMIT: &str = "93248f9";

pub(crate) fn machine(wanted: Workloads, seed: u64) -> Machine {
    let ready_after = SignedDuration::try_from(wanted.ready_after).unwrap_or(SignedDuration::MAX);
    let ends_after = wanted.ends_after.map(|after| SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX));
    Machine::new(Config {
        ready_after,
        ends_after,
        nodes: wanted.nodes,
        release: mock_objects::builtin::release(),
        seed,
    })
}

/// Runs the simulated programs until the future is dropped. The future is boxed, so that it is compiled in this crate
/// only.
pub(crate) fn run(app: Arc<App>, machine: Machine) -> BoxFuture<'static, ()> {
    Box::pin(play(app, machine))
}

async fn play(app: Arc<App>, mut machine: Machine) {
    let cluster = app.cluster.clone();
    let mut inside = Inside::new(app);
    let mut reader = Reader::new(&cluster);
    let mut committed = cluster.committed();
    let mut faults = Watched::default();
    reader.all(&cluster, &mut machine);
    let nodes = machine.begin(cluster.wall.now());
    send(&mut inside, &mut machine, nodes, &cluster.wall).await;
    let mut told = false;
    loop {
        committed.borrow_and_update();
        reader.read(&cluster, &mut machine);
        let now = cluster.wall.now();
        machine.trouble(faults.now(&cluster, now));
        let batches = machine.step(now);
        for hit in machine.take_hits() {
            faults.hit(hit.trouble, &hit.detail);
        }
        if machine.is_overflown() && !std::mem::replace(&mut told, true) {
            tracing::warn!("there are more objects than workloads are played for; those beyond stay as they are");
        }
        if !batches.is_empty() {
            send(&mut inside, &mut machine, batches, &cluster.wall).await;
            continue;
        }
        let most = if cluster.faults.never_any() { IDLE } else { LOOK_EVERY };
        let due = machine.due().map(|due| due.duration_since(cluster.wall.now()));
        let due = due.map_or(most, |due| Duration::try_from(due).unwrap_or_default().min(most));
        let _ = tokio::time::timeout(due, committed.changed()).await;
    }
}

/// Reads commits for the simulation.
struct Reader {
    kinds: BTreeMap<ResourceId, Kind>,
    next: u64,
    /// The timeline after the last restore of the store; `None` before the first restore.
    timeline: Option<u32>,
}

impl Reader {
    fn new(cluster: &Cluster) -> Self {
        let catalogue = cluster.catalogue();
        let id = |kind: Kind| Some((catalogue.by_full_name(&kind.full_name())?.id, kind));
        let next = cluster.read(|store| store.commits().next());
        Self { kinds: Kind::ALL.into_iter().filter_map(id).collect(), next, timeline: None }
    }

    /// Passes all objects to the simulation.
    fn all(&mut self, cluster: &Cluster, machine: &mut Machine) {
        self.next = cluster.read(|store| store.commits().next());
        self.timeline = timeline(cluster);
        let mut there = BTreeSet::new();
        for (id, kind) in &self.kinds {
            let page = cluster.read(|store| store.list(*id, None, store.revision(), None, usize::MAX, |_| true));
            for version in page.map(|page| page.items).unwrap_or_default() {
                let key = Key::new(*kind, &version.identity.namespace, &version.identity.name);
                machine.observe(&key, Some(version.value()));
                there.insert(key);
            }
        }
        machine.forget_others(&there);
    }

    /// Passes the changes since the last call to the simulation.
    fn read(&mut self, cluster: &Cluster, machine: &mut Machine) {
        if timeline(cluster) != self.timeline {
            return self.all(cluster, machine);
        }
        loop {
            let mut commits = Vec::new();
            if cluster.read(|store| store.commits().read(self.next, COMMITS_MAX, &mut commits)).is_err() {
                return self.all(cluster, machine);
            }
            if commits.is_empty() {
                return;
            }
            self.next += commits.len() as u64;
            let places = commits.iter().filter_map(|commit| {
                let identity = &commit.identity;
                let kind = *self.kinds.get(&identity.resource)?;
                Some((
                    Key { kind, namespace: identity.namespace.clone(), name: identity.name.clone() },
                    identity.resource,
                ))
            });
            // An object that was written several times is read once.
            for (key, id) in places.collect::<BTreeMap<Key, ResourceId>>() {
                let version = cluster.read(|store| store.read(id, &key.namespace, &key.name).cloned());
                machine.observe(&key, version.map(|version| version.value()));
            }
        }
    }
}

/// The active faults of workloads, each with the time at which it was first noticed.
#[derive(Default)]
struct Watched(BTreeMap<u64, (ActiveFault, Timestamp)>);

impl Watched {
    fn now(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<Trouble> {
        let all = cluster.faults.of_workloads();
        let mut known = std::mem::take(&mut self.0);
        let troubles = all.into_iter().map(|(active, fault)| {
            let id = u64::from(active.id().0);
            let began = known.remove(&id).map_or(now, |(_, began)| began);
            self.0.insert(id, (active, began));
            let (how, share) = if fault.name == Name::Flapping {
                let keys = fault.keys::<FlappingKeys>();
                let period = SignedDuration::try_from(keys.period.unwrap_or(PERIOD).0).unwrap_or(SignedDuration::MAX);
                (How::Flapping(period), keys.share)
            } else {
                (How::NotReady, fault.keys::<NotReadyKeys>().share)
            };
            Trouble { id, how, share: share.unwrap_or(1.0), resource: fault.resource, began }
        });
        troubles.collect()
    }

    fn hit(&self, trouble: u64, detail: &str) {
        if let Some((active, _)) = self.0.get(&trouble) {
            active.hit(|| detail.to_owned());
        }
    }
}

/// The result of the writes for one object.
enum Outcome {
    Done,
    Stale,
    Refused(String),
}

/// The timeline after the last restore of the store. The list of restores is bounded, so its length would not show a
/// new restore.
fn timeline(cluster: &Cluster) -> Option<u32> {
    cluster.rewinds().last().map(|rewound| rewound.timeline)
}

/// Sends the writes of several objects at the same time, and reports the results to the simulation.
async fn send(inside: &mut Inside, machine: &mut Machine, batches: Vec<Batch>, wall: &Wall) {
    let mut doors: BTreeMap<Author, InsideConnection> = BTreeMap::new();
    for write in batches.iter().flat_map(|batch| &batch.writes) {
        if !doors.contains_key(&write.by)
            && let Some(door) = inside.door(&write.by.user(), &write.by.groups()).await
        {
            doors.insert(write.by.clone(), door);
        }
    }
    let doors = &doors;
    let sent = batches.into_iter().map(|batch| async move {
        let outcome = all(doors, &batch.writes).await;
        (batch, outcome)
    });
    let mut sent = futures_util::stream::iter(sent).buffer_unordered(AT_ONCE);
    while let Some((batch, outcome)) = sent.next().await {
        match outcome {
            Outcome::Done => machine.done(&batch),
            Outcome::Stale => machine.stale(&batch.of, wall.now()),
            Outcome::Refused(why) => machine.refused(&batch.of, &why, wall.now()),
        }
    }
}

/// Sends the writes for one object, one after the other. After a refusal, only a status is sent, because the status may
/// report the refusal.
async fn all(doors: &BTreeMap<Author, InsideConnection>, writes: &[Write]) -> Outcome {
    let began = Instant::now();
    let mut refused = None;
    for write in writes {
        if began.elapsed() > TURN_MAX {
            return refused.map_or(Outcome::Stale, Outcome::Refused);
        }
        let tells = matches!(write.verb, Verb::UpdateStatus | Verb::PatchStatus);
        if refused.is_some() && !tells {
            continue;
        }
        let Some(door) = doors.get(&write.by) else { return Outcome::Stale };
        let Some((status, body)) = door.clone().ask(request(write)).await else { return Outcome::Stale };
        match status {
            200..=299 => {}
            // The object is gone, or has changed since the machine read it.
            404 | 409 if write.verb != Verb::Create => return Outcome::Stale,
            _ => {
                let why = serde_json::from_slice::<Value>(&body).ok();
                let why = why.and_then(|status| status["message"].as_str().map(str::to_owned));
                refused.get_or_insert(why.unwrap_or_else(|| format!("the API server answered {status}")));
            }
        }
    }
    refused.map_or(Outcome::Done, Outcome::Refused)
}

fn request(write: &Write) -> Request<Full<Bytes>> {
    let key = &write.key;
    let (method, name, below, content) = match write.verb {
        Verb::Create => (Method::POST, "", "", "application/json"),
        Verb::Update => (Method::PUT, &*key.name, "", "application/json"),
        Verb::UpdateStatus => (Method::PUT, &*key.name, "/status", "application/json"),
        Verb::Patch => (Method::PATCH, &*key.name, "", "application/strategic-merge-patch+json"),
        Verb::PatchStatus => (Method::PATCH, &*key.name, "/status", "application/strategic-merge-patch+json"),
        Verb::Bind => (Method::POST, &*key.name, "/binding", "application/json"),
        Verb::Delete => (Method::DELETE, &*key.name, "", "application/json"),
    };
    let (program, user) = (write.by.program(), write.by.user());
    let component = user.strip_prefix("system:serviceaccount:").map_or_else(String::new, |_| format!("/{user}"));
    let agent = format!("{program}/{} (linux/amd64) kubernetes/{COMMIT}{component}", mock_objects::builtin::release());
    let mut request = Request::new(Full::new(Bytes::from(write.body.to_string())));
    *request.method_mut() = method;
    let path = format!("http://kubernetes{}{below}", key.kind.path(&key.namespace, name));
    // Names of objects are letters, digits, `-` and `.`.
    *request.uri_mut() = path.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content));
    headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
    if let Ok(agent) = agent.parse() {
        headers.insert(header::USER_AGENT, agent);
    }
    request
}
