//! Tests of kube-rs' `watcher`: initial lists in pages, from the cache, and as streams.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use mock_faults::{Form, Name};

use crate::world::{PACKAGES, PATIENCE, World, package_resource};

/// The configurations with which a watcher gets its first state: in pages, from the cache, or as a stream.
fn ways() -> [(&'static str, watcher::Config); 3] {
    [
        ("pages of two", watcher::Config::default().page_size(2)),
        ("any version", watcher::Config::default().any_semantic()),
        ("streamed", watcher::Config::default().streaming_lists()),
    ]
}

/// Faults that break watches. `None` means that the 410 comes alternately as HTTP status and as `ERROR` event, first as
/// HTTP status. Another test in this file covers 410 that comes only as HTTP status.
pub const TROUBLES: [(Name, Option<Form>); 3] =
    [(Name::WatchReset, None), (Name::Watch410, None), (Name::Watch410, Some(Form::Stream))];

/// The state that a consumer of the watcher derives from the events.
#[derive(Default)]
struct Belief {
    objects: BTreeMap<String, String>,
    /// The objects received since the event `Init`, which replace the whole state at the event `InitDone`.
    fresh: Option<BTreeMap<String, String>>,
    events: Vec<String>,
    errors: Vec<String>,
}

impl Belief {
    fn take_in(&mut self, event: watcher::Result<watcher::Event<DynamicObject>>) {
        let version = |object: &DynamicObject| (object.name_any(), object.resource_version().unwrap());
        match event {
            Ok(watcher::Event::Apply(object)) => {
                self.events.push(format!("apply {}", object.name_any()));
                let (name, revision) = version(&object);
                self.objects.insert(name, revision);
            }
            Ok(watcher::Event::Delete(object)) => {
                self.events.push(format!("delete {}", object.name_any()));
                self.objects.remove(&object.name_any());
            }
            Ok(watcher::Event::Init) => self.fresh = Some(BTreeMap::new()),
            Ok(watcher::Event::InitApply(object)) => {
                let fresh = self.fresh.as_mut().expect("only between Init and InitDone");
                fresh.extend([version(&object)]);
            }
            Ok(watcher::Event::InitDone) => {
                self.events.push("init".to_owned());
                self.objects = self.fresh.take().expect("only after Init");
            }
            Err(error) => self.errors.push(error.to_string()),
        }
    }

    /// Reads events until the derived state equals that of the server.
    async fn converge<S>(&mut self, world: &World, stream: &mut S)
    where
        S: Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Unpin,
    {
        let truth = world.truth().await;
        while self.objects != truth {
            let event = tokio::time::timeout(PATIENCE, stream.next()).await;
            let event = event.unwrap_or_else(|_| panic!("{:?} instead of {truth:?}\n{:?}", self.objects, self.errors));
            self.take_in(event.expect("a watcher never ends"));
        }
    }
}

#[tokio::test]
async fn watchers_see_every_change_and_survive() {
    join_all(ways().map(|(way, config)| survives(way, config))).await;
}

async fn survives(way: &str, config: watcher::Config) {
    let mut world = World::start().await;
    for name in ["kept", "doomed-0", "doomed-1", "doomed-2", "listed"] {
        world.create(name).await;
    }
    let packages: Api<DynamicObject> = Api::default_namespaced_with(world.subject().await, &package_resource());
    let mut stream = pin!(watcher(packages, config).default_backoff());
    let mut belief = Belief::default();
    belief.converge(&world, &mut stream).await;
    watch_from_now(&world, &mut belief, &mut stream).await;
    assert_eq!(belief.events, ["init"], "{way}");
    world.create("short").await;
    belief.converge(&world, &mut stream).await;
    world.change("short", "a:2").await;
    belief.converge(&world, &mut stream).await;
    world.delete("short").await;
    belief.converge(&world, &mut stream).await;
    assert_eq!(belief.events, ["init", "apply short", "apply short", "delete short"], "{way}: each once");
    for (index, (name, form)) in TROUBLES.into_iter().enumerate() {
        watch_from_now(&world, &mut belief, &mut stream).await;
        let told = world.story(0).len();
        let id = world.begin(name, PACKAGES, |fault| fault.put("form", form));
        world.create(&format!("born-{index}")).await;
        world.change("kept", &format!("kept:{index}")).await;
        world.delete(&format!("doomed-{index}")).await;
        belief.converge(&world, &mut stream).await;
        assert!(world.server.faults().hits(id) > 0, "{way}: {name:?} {form:?}");
        world.server.faults().end(id);
        println!("{way}, {name:?} {form:?}\n  {}", world.story(told).join("\n  "));
    }
    println!("{way}: {:?}", belief.errors);
    world.server.shutdown().await;
}

/// Polls the stream until its watch is open, because a stream sends requests only while it is polled.
async fn watch_from_now<S>(world: &World, belief: &mut Belief, stream: &mut S)
where
    S: Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Unpin,
{
    let mut watched = pin!(world.watched());
    loop {
        tokio::select! {
            () = &mut watched => return,
            event = stream.next() => belief.take_in(event.expect("a watcher never ends")),
        }
    }
}

/// If every 410 comes as an HTTP status, the server answers each repeated request with 410. kube 5.0.0 lists again only
/// after an `ERROR` event; after an HTTP 410, it repeats the request for the same revision with a back-off and gets no
/// events.
#[tokio::test]
async fn a_410_as_http_status_alone_is_answered_truthfully_each_time() {
    let mut world = World::start().await;
    world.create("kept").await;
    let packages = async || Api::default_namespaced_with(world.subject().await, &package_resource());
    let mut stream = pin!(watcher::<DynamicObject>(packages().await, watcher::Config::default()));
    let mut belief = Belief::default();
    belief.converge(&world, &mut stream).await;
    watch_from_now(&world, &mut belief, &mut stream).await;
    let fresh = packages().await;
    let id = world.begin(Name::Watch410, PACKAGES, |fault| fault.put("form", Form::Http));
    world.change("kept", "b:1").await;
    let truth = world.truth().await;
    while belief.objects != truth && world.server.traffic("subject").gone_http < 5 {
        belief.take_in(tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap());
    }
    let traffic = world.server.traffic("subject");
    let came_back = belief.objects == truth;
    println!("came back: {came_back}; {} of {} 410s were repeated", traffic.gone_repeated, traffic.gone_http);
    assert_eq!(world.server.faults().hits(id), traffic.gone_http, "each refusal is a hit");
    assert_eq!(traffic.gone_stream, 0);
    let expired = |error: &String| error.contains("Expired") && error.contains("code: 410");
    assert!(belief.errors.iter().any(expired), "{:?}", belief.errors);
    // A new list is served at once, so the client could have recovered all the time.
    let mut stream = pin!(watcher(fresh, watcher::Config::default()));
    Belief::default().converge(&world, &mut stream).await;
    world.server.shutdown().await;
}
