//! A controller with a finalizer, a status and a child object, under every fault.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;

use crate::world::{PACKAGES, World, package_resource, until};

const FINALIZER: &str = "longhaul.dev/cleanup";

struct Context {
    client: kube::Client,
    cleaned: Mutex<Vec<String>>,
}

type Refusal = kube::runtime::finalizer::Error<kube::Error>;

/// Gives each package a config map with its image, and notes it in the package's status.
async fn reconcile(package: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, Refusal> {
    let packages: Api<DynamicObject> = Api::default_namespaced_with(context.client.clone(), &package_resource());
    finalizer(&packages, FINALIZER, package, |event| async {
        match event {
            Event::Apply(package) => apply(&packages, &package, &context).await?,
            Event::Cleanup(package) => context.cleaned.lock().push(package.name_any()),
        }
        Ok(Action::await_change())
    })
    .await
}

async fn apply(packages: &Api<DynamicObject>, package: &DynamicObject, context: &Context) -> kube::Result<()> {
    let image = &package.data["spec"]["image"];
    let owner = package.controller_owner_ref(&package_resource());
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"image": image},
        "metadata": {"name": package.name_any(), "ownerReferences": [owner]},
    });
    let maps: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let parameters = PatchParams::apply("controller").force();
    maps.patch(&package.name_any(), &parameters, &Patch::Apply(child)).await?;
    let status = json!({
        "apiVersion": "longhaul.dev/v1", "kind": "Package",
        "status": {"image": image, "observedGeneration": package.metadata.generation},
    });
    packages.patch_status(&package.name_any(), &parameters, &Patch::Apply(status)).await?;
    Ok(())
}

#[tokio::test]
async fn a_controller_does_its_work_through_reset_and_410() {
    let paged = controlled(watcher::Config::default());
    tokio::join!(paged, controlled(watcher::Config::default().streaming_lists()));
}

async fn controlled(config: watcher::Config) {
    let mut world = World::start().await;
    world.create("listed").await;
    let client = world.subject().await;
    let packages: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &package_resource());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let context = Arc::new(Context { client, cleaned: Mutex::new(Vec::new()) });
    let controller = Controller::new_with(packages, config.clone(), package_resource()).owns(maps.clone(), config).run(
        reconcile,
        |_, _: &Refusal, _| Action::requeue(Duration::from_millis(100)),
        context.clone(),
    );
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(controller.for_each(async |_| ()));
    done(&world, &maps, "listed", "a:1").await;
    assert_eq!(world.get("listed").await["metadata"]["finalizers"], json!([FINALIZER]));
    // A deleted child comes back: the watch of owned objects works.
    maps.delete("listed", &DeleteParams::default()).await.unwrap();
    done(&world, &maps, "listed", "a:1").await;
    for (index, (name, form)) in super::watching::TROUBLES.into_iter().enumerate() {
        until("both watches are open", async || world.server.traffic("subject").watches_open == 2).await;
        let id = world.begin(name, PACKAGES, |fault| fault.put("form", form));
        let image = format!("b:{index}");
        world.change("listed", &image).await;
        done(&world, &maps, "listed", &image).await;
        assert!(world.server.faults().hits(id) > 0, "{name:?} {form:?}");
        world.server.faults().end(id);
    }
    world.delete("listed").await;
    until("the finalizer let go", async || world.truth().await.is_empty()).await;
    assert_eq!(*context.cleaned.lock(), ["listed"], "cleaned up once");
    until("the child went with its owner", async || maps.get_opt("listed").await.unwrap().is_none()).await;
    tasks.shutdown().await;
    world.server.shutdown().await;
}

/// Waits until the child and the status match the spec.
async fn done(world: &World, maps: &Api<ConfigMap>, name: &str, image: &str) {
    until(&format!("{name} has {image}"), async || {
        let map = maps.get_opt(name).await.unwrap().and_then(|map| map.data);
        let object = world.get(name).await;
        let observed = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        map.is_some_and(|data| data["image"] == image) && object["status"]["image"] == *image && observed
    })
    .await;
}
