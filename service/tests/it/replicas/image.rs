//! Tests of setting an image through admission, which pins or refuses it.

use serde_json::json;
use service::config;
use service::run::{App, Options};

use super::world::{World, certificates};
use crate::support::deployments::{Deployments, Trouble};
use crate::support::registry::Registry;

async fn world(registry: &Registry) -> World {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let text = World::config(&api, folder.path(), ", images: true")
        + &format!("resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n", registry.host());
    let path = folder.path().join("service.yaml");
    std::fs::write(&path, &text).unwrap();
    let app = App::start("replicas", config::parse(&text, &path).unwrap(), Options::default()).await.unwrap();
    World { api, app, folder }.listed().await
}

fn path(container: &str) -> String {
    format!("/api/v1/namespaces/team/deployments/web/containers/{container}/image")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_set_as_admission_pins_it() {
    let registry = Registry::start().await;
    let world = world(&registry).await;
    let client = world.client("client").await;
    let image = |index: usize| {
        let world = world.api.world.lock();
        world.objects["team/web"]["spec"]["template"]["spec"]["containers"][index]["image"].as_str().unwrap().to_owned()
    };
    let body = json!({"image": format!("{}/good:1", registry.host())}).to_string();
    let dry = client.put(&(path("main") + "?dryRun=All"), &body).await;
    assert_eq!(dry.code, 200, "{}", dry.text);
    assert_eq!(image(0), "r.test/app:1", "nothing was stored");
    // A foreign write comes in between: the object is read again.
    world.api.trouble(Trouble::Overtaken(8));
    let answer = client.put(&(path("main") + "?wait=observed"), &body).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    assert_eq!(answer.json["message"], "Image updated successfully.");
    let pinned = format!("{}/good:1@sha256:", registry.host());
    assert!(image(0).starts_with(&pinned), "{}", image(0));
    assert_eq!(answer.json["image"], image(0));
    assert_eq!(image(1), "r.test/side:1", "the other container is left alone");
    assert_eq!(world.api.world.lock().replicas("team/web"), 8, "and what somebody else wrote");
    assert_eq!(client.put(&path("main"), r#"{"replicaCount": 1}"#).await.code, 400);
    assert_eq!(client.put(&path("absent"), &body).await.code, 404);
    let refused =
        client.put(&path("main"), &json!({"image": format!("{}/absent:1", registry.host())}).to_string()).await;
    assert_eq!(refused.code, 422);
    assert!(refused.error().contains("not-found"), "{}", refused.text);
    assert_eq!(client.put(&path("main"), r#"{"image": "UPPER CASE"}"#).await.code, 422);
    assert!(image(0).starts_with(&pinned), "nothing of that was stored");
    world.app.stop().await;
}
