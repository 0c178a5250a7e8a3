//! kube-rs: reads and writes, typed and untyped. Its watches and its controller are in the files below.

mod controller;
mod watching;

use std::pin::pin;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions, ValidationDirective,
    WatchEvent, WatchParams,
};
use kube::discovery::Discovery;
use kube::runtime::conditions;
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::world::{PACKAGES, PATIENCE, World, package, package_resource};

/// Whether the server refused with this code and reason.
fn refused<T: std::fmt::Debug>(answer: kube::Result<T>, code: u16, reason: &str) {
    match answer.unwrap_err() {
        kube::Error::Api(status) => assert_eq!((status.code, status.reason.as_str()), (code, reason), "{status:?}"),
        other => panic!("{other:?} instead of {code}"),
    }
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"set": "a"}}, "data": {"a": value},
    }))
    .unwrap()
}

fn deployment(name: &str) -> Deployment {
    let container = json!({"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}]});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": {"app": name}});
    serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": selector, "template": template},
    }))
    .unwrap()
}

#[tokio::test]
async fn typed_objects_are_created_read_replaced_and_deleted() {
    let world = World::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.subject().await);
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    refused(maps.create(&PostParams::default(), &config_map("a", "1")).await, 409, "AlreadyExists");
    refused(maps.get("none").await, 404, "NotFound");
    assert!(maps.get_opt("none").await.unwrap().is_none());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &config_map("dry", "1")).await.unwrap();
    assert!(maps.get_opt("dry").await.unwrap().is_none(), "a dry run leaves nothing");
    let next = ConfigMap { data: config_map("a", "2").data, ..made.clone() };
    let replaced = maps.replace("a", &PostParams::default(), &next).await.unwrap();
    assert_ne!(replaced.metadata.resource_version, made.metadata.resource_version);
    assert_eq!(replaced.metadata.uid, made.metadata.uid);
    refused(maps.replace("a", &PostParams::default(), &next).await, 409, "Conflict");
    let entry = maps.entry("a").await.unwrap().and_modify(|map| map.immutable = Some(true));
    entry.or_insert(|| config_map("a", "0")).commit(&PostParams::default()).await.unwrap();
    let late = Patch::Merge(json!({"data": {"a": "3"}}));
    refused(maps.patch("a", &PatchParams::default(), &late).await, 422, "Invalid");
    let stranger = Preconditions { uid: Some("another".to_owned()), resource_version: None };
    let wrong = DeleteParams { preconditions: Some(stranger), ..DeleteParams::default() };
    refused(maps.delete("a", &wrong).await, 409, "Conflict");
    let status = maps.delete("a", &DeleteParams::default()).await.unwrap().right().expect("no finalizer: a Status");
    assert!(status.is_success());
    world.server.shutdown().await;
}

#[tokio::test]
async fn lists_are_paged_selected_and_cut_to_metadata() {
    let world = World::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.subject().await);
    for index in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("map-{index}"), "1")).await.unwrap();
    }
    let mut names = Vec::new();
    let mut page = ListParams::default().limit(2).labels("set in (a, b)");
    let mut remaining = Vec::new();
    loop {
        let list = maps.list(&page).await.unwrap();
        remaining.push(list.metadata.remaining_item_count);
        names.extend(list.items.into_iter().filter_map(|map| map.metadata.name));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["map-0", "map-1", "map-2", "map-3", "map-4"]);
    assert_eq!(remaining.len(), 3);
    let one = maps.list_metadata(&ListParams::default().fields("metadata.name=map-3")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    assert_eq!(one.items[0].types.as_ref().unwrap().kind, "PartialObjectMetadata");
    assert_eq!(maps.get_metadata("map-3").await.unwrap().metadata.name.as_deref(), Some("map-3"));
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("set=a")).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    world.server.shutdown().await;
}

#[tokio::test]
async fn every_kind_of_patch_and_every_subresource_work() {
    let world = World::start().await;
    let client = world.subject().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment("web")).await.unwrap();
    let plain = PatchParams::default();
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b:1"}]}}}});
    let patched = deployments.patch("web", &plain, &Patch::Strategic(strategic)).await.unwrap();
    let images = |deployment: &Deployment| {
        let spec = deployment.spec.clone().unwrap().template.spec.unwrap();
        spec.containers.into_iter().map(|container| container.image.unwrap()).collect::<Vec<_>>()
    };
    let mut both = images(&patched);
    both.sort();
    assert_eq!(both, ["b:1", "nginx:1"], "merged by name");
    let operations = json!([{"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let operations = || Patch::Json::<()>(serde_json::from_value(operations.clone()).unwrap());
    let patched = deployments.patch("web", &plain, &operations()).await.unwrap();
    assert_eq!((patched.spec.unwrap().replicas, patched.metadata.generation), (Some(3), Some(3)));
    refused(deployments.patch("web", &plain, &operations()).await, 422, "Invalid");
    let status = Patch::Merge(json!({"status": {"readyReplicas": 3, "replicas": 3}, "spec": {"replicas": 9}}));
    let patched = deployments.patch_status("web", &plain, &status).await.unwrap();
    assert_eq!((patched.status.unwrap().ready_replicas, patched.spec.unwrap().replicas), (Some(3), Some(3)));
    let scale = Patch::Merge(json!({"spec": {"replicas": 4}}));
    assert_eq!(deployments.patch_scale("web", &plain, &scale).await.unwrap().spec.unwrap().replicas, Some(4));
    let scale = deployments.get_scale("web").await.unwrap();
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=web"));
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let spec = TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let token = accounts.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    assert!(!token.status.unwrap().token.is_empty());
    world.server.shutdown().await;
}

#[tokio::test]
async fn server_side_apply_keeps_owners_apart() {
    let world = World::start().await;
    let packages: Api<DynamicObject> = Api::default_namespaced_with(world.subject().await, &package_resource());
    let apply = |spec: serde_json::Value| {
        let mut object = package("p");
        object["spec"] = spec;
        Patch::Apply(object)
    };
    let one = PatchParams::apply("one");
    packages.patch("p", &one, &apply(json!({"image": "a:1"}))).await.unwrap();
    let two = PatchParams::apply("two");
    let both = packages.patch("p", &two, &apply(json!({"replicas": 2}))).await.unwrap();
    assert_eq!(both.data["spec"], json!({"image": "a:1", "replicas": 2}));
    refused(packages.patch("p", &two, &apply(json!({"image": "b:1"}))).await, 409, "Conflict");
    let forced = PatchParams::apply("two").force();
    packages.patch("p", &forced, &apply(json!({"image": "b:1"}))).await.unwrap();
    let left = packages.patch("p", &forced, &apply(json!({"replicas": 2}))).await.unwrap();
    assert_eq!(left.data["spec"], json!({"replicas": 2}), "what its only owner leaves out is gone");
    let strict = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("one") };
    let maps: Api<ConfigMap> = Api::default_namespaced(world.subject().await);
    maps.patch("m", &strict, &Patch::Apply(config_map("m", "1"))).await.unwrap();
    world.server.shutdown().await;
}

#[tokio::test]
async fn discovery_knows_built_in_and_custom_resources() {
    let world = World::start().await;
    let client = world.subject().await;
    for discovery in [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client.clone()).run_aggregated().await.unwrap(),
    ] {
        let (resource, capabilities) =
            discovery.resolve_gvk(&kube::core::GroupVersionKind::gvk("longhaul.dev", "v1", "Package")).unwrap();
        assert_eq!(resource.plural, "packages");
        assert!(capabilities.supports_operation("watch"));
        let parts: Vec<&str> = capabilities.subresources.iter().map(|(part, _)| part.plural.as_str()).collect();
        assert!(parts.iter().any(|part| part.ends_with("status")), "{parts:?}");
        let deployment = kube::core::GroupVersionKind::gvk("apps", "v1", "Deployment");
        assert_eq!(discovery.resolve_gvk(&deployment).unwrap().0.plural, "deployments");
    }
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    world.server.shutdown().await;
}

#[tokio::test]
async fn conditions_come_true() {
    let world = World::start().await;
    let client = world.subject().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = await_condition(definitions, PACKAGES, conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let space: Namespace = serde_json::from_value(json!({"metadata": {"name": "short-lived"}})).unwrap();
    let uid = namespaces.create(&PostParams::default(), &space).await.unwrap().metadata.uid.unwrap();
    let inside: Api<ConfigMap> = Api::namespaced(client, "short-lived");
    inside.create(&PostParams::default(), &config_map("inside", "1")).await.unwrap();
    namespaces.delete("short-lived", &DeleteParams::default()).await.unwrap();
    let deleted = await_condition(namespaces, "short-lived", conditions::is_deleted(&uid));
    tokio::time::timeout(PATIENCE, deleted).await.unwrap().unwrap();
    assert!(inside.get_opt("inside").await.unwrap().is_none(), "the content went first");
    world.server.shutdown().await;
}

/// `Api::watch` is what the runtime stands on. A server without faults answers in the stream, as the watch cache of a
/// real one does.
#[tokio::test]
async fn a_bare_watch_from_before_the_history_ends_with_410() {
    let world = World::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.subject().await);
    let old = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let old = old.metadata.resource_version.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    world.server.compact(world.server.revision());
    let mut stream = pin!(maps.watch(&WatchParams::default(), &old).await.unwrap());
    match stream.next().await.unwrap().unwrap() {
        WatchEvent::Error(status) => assert_eq!((status.code, status.reason.as_str()), (410, "Expired")),
        other => panic!("{other:?}"),
    }
    assert!(stream.next().await.is_none(), "and nothing after it");
    world.server.shutdown().await;
}
