//! Tests of features of kube-rs that other clients lack or use differently. The folder `kube_rs` has tests of its
//! watches and its controller. The tests in `tests/kube` and the tests of kubectl cover reads, writes and refusals.

mod controller;
mod watching;

use std::pin::pin;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::discovery::Discovery;
use kube::runtime::conditions;
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::world::{PACKAGES, PATIENCE, World};

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"set": "a"}}, "data": {"a": value},
    }))
    .unwrap()
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

/// A watch from a revision before the history gets 410 as an `ERROR` event, as from a real server's watch cache. The
/// test calls `Api::watch`, which kube-rs' runtime also uses.
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
