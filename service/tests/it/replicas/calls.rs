//! Tests of calls of the API that scales Deployments: exact answers, writes and their conflicts, and every kind of
//! refusal.

use std::time::Duration;

use serde_json::json;

use super::world::{World, replicas_path};
use crate::support::deployments::{Deployments, Trouble};

async fn world() -> World {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    World::start_over(api, "").await.listed().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_is_exactly_three_keys() {
    let world = world().await;
    world.api.create("team/default", None);
    let client = world.client("client").await;
    let answer = client.get("/api/v1/namespaces/team/deployments/web/replicas").await;
    assert_eq!(answer.code, 200);
    assert_eq!(answer.text, r#"{"namespace":"team","name":"web","replicaCount":3}"#);
    assert_eq!(answer.header("content-type"), "application/json");
    world.observed(&client, "team/default", Some(1)).await;
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_sorted_and_empty_is_an_empty_array() {
    let world = World::start("").await.listed().await;
    let client = world.client("client").await;
    let empty = client.get("/api/v1/deployments").await;
    assert_eq!((empty.code, &*empty.text), (200, "[]"));
    for key in ["b/y", "b/x", "a/z"] {
        world.api.create(key, Some(2));
        world.observed(&client, key, Some(2)).await;
    }
    let list = client.get("/api/v1/deployments").await;
    let expected = json!([
        {"namespace": "a", "name": "z", "replicaCount": 2}, {"namespace": "b", "name": "x", "replicaCount": 2},
        {"namespace": "b", "name": "y", "replicaCount": 2},
    ]);
    assert_eq!(list.json, expected);
    assert!(list.text.starts_with(r#"[{"namespace":"a","name":"z","replicaCount":2},"#), "{}", list.text);
    world.app.stop().await;
}

/// A replica count is written through the scale subresource, and the messages are the ones that the API description
/// prescribes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_is_set_through_the_scale_subresource() {
    let world = world().await;
    let client = world.client("client").await;
    let answer = client.put(&replicas_path("team/web"), r#"{"replicaCount": 5}"#).await;
    assert_eq!((answer.code, &*answer.text), (200, r#"{"message":"Replica count updated successfully."}"#));
    assert_eq!(world.api.world.lock().replicas("team/web"), 5);
    let path = "/apis/apps/v1/namespaces/team/deployments/web";
    {
        let world = world.api.world.lock();
        assert_eq!((world.count(&format!("GET {path}/scale")), world.count(&format!("PUT {path}/scale"))), (1, 1));
        assert_eq!(answer.header("longhaul-revision"), world.objects["team/web"]["metadata"]["resourceVersion"]);
    }
    // A dry run is sent to the API server, and nothing is stored.
    let answer = client.put(&(replicas_path("team/web") + "?dryRun=All"), r#"{"replicaCount": 9}"#).await;
    assert_eq!((answer.code, &*answer.text), (200, r#"{"message":"Dry run: nothing was changed."}"#));
    assert_eq!(world.api.world.lock().count("PUT /apis/apps/v1/namespaces/team/deployments/web/scale?dryRun=All"), 1);
    assert_eq!(world.api.world.lock().replicas("team/web"), 5);
    world.app.stop().await;
}

/// After a write with `wait=observed` is answered, the caller's next read shows the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_is_read_by_the_next_call() {
    let world = world().await;
    world.api.world.lock().lag = Duration::from_millis(50);
    let client = world.client("client").await;
    for count in 4..14 {
        let body = json!({ "replicaCount": count }).to_string();
        let answer = client.put(&(replicas_path("team/web") + "?wait=observed"), &body).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        let read = client.get(&replicas_path("team/web")).await;
        assert_eq!(read.json["replicaCount"], count);
        assert_eq!(read.header("longhaul-revision"), answer.header("longhaul-revision"));
    }
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_not_observed_in_time_says_that_it_was_written() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, ", timeout: 300ms").await.listed().await;
    super::world::wait_for_request(&world.api, "watch=true").await;
    world.api.world.lock().lag = Duration::from_secs(30);
    let client = world.client("client").await;
    // Events under way in the stream may still show the first one.
    let mut answer = client.put(&(replicas_path("team/web") + "?wait=observed"), r#"{"replicaCount": 8}"#).await;
    if answer.code == 200 {
        answer = client.put(&(replicas_path("team/web") + "?wait=observed"), r#"{"replicaCount": 9}"#).await;
    }
    assert_eq!(answer.code, 504, "{}", answer.text);
    assert!(answer.error().starts_with("it was written, as revision 1"), "{}", answer.text);
    assert!(world.api.world.lock().replicas("team/web") >= 8);
    world.app.stop().await;
}

/// If another client writes between the service's read and write, the service reads the object again, and the other
/// client's write is not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_is_another_turn_and_many_are_told() {
    let world = world().await;
    let client = world.client("client").await;
    for other in [10, 11] {
        world.api.trouble(Trouble::Overtaken(other));
    }
    let answer = client.put(&replicas_path("team/web"), r#"{"replicaCount": 5}"#).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    assert_eq!(world.api.world.lock().replicas("team/web"), 5);
    let path = "deployments/web/scale";
    assert_eq!(world.api.world.lock().count(&format!("GET /apis/apps/v1/namespaces/team/{path}")), 3);
    assert!(world.metrics().await.contains("longhaul_replicas_write_conflicts_total 2\n"));
    for other in 20..40 {
        world.api.trouble(Trouble::Overtaken(other));
    }
    let answer = client.put(&replicas_path("team/web"), r#"{"replicaCount": 6}"#).await;
    assert_eq!(answer.code, 409);
    assert!(answer.error().contains("somebody else has written meanwhile"), "{}", answer.text);
    world.app.stop().await;
}

/// If a caller names a revision, its write changes the Deployment at exactly this revision or is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_what_was_seen_does_not_overwrite_what_was_not() {
    let world = world().await;
    let client = world.client("client").await;
    let path = replicas_path("team/web");
    let seen = format!("\"{}\"", client.get(&path).await.header("longhaul-revision"));
    let with = [("if-match", &*seen)];
    world.api.scale("team/web", 4);
    let answer = client.call("PUT", &path, Some(r#"{"replicaCount": 9}"#), &with).await;
    assert_eq!(answer.code, 409);
    assert!(answer.error().starts_with("the deployment has changed: it is at revision 1"), "{}", answer.text);
    assert_eq!(world.api.world.lock().replicas("team/web"), 4);
    world.observed(&client, "team/web", Some(4)).await;
    let seen = format!("\"{}\"", client.get(&path).await.header("longhaul-revision"));
    world.api.trouble(Trouble::Overtaken(6));
    let with = [("if-match", &*seen)];
    let answer = client.call("PUT", &path, Some(r#"{"replicaCount": 9}"#), &with).await;
    assert_eq!(answer.code, 409, "overtaken between our read and our write");
    assert_eq!(world.api.world.lock().replicas("team/web"), 6);
    let answer = client.call("PUT", &path, Some(r#"{"replicaCount": 9}"#), &[("if-match", "a b")]).await;
    assert_eq!(answer.code, 400);
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_has_its_status_and_its_sentence() {
    let world = World::start_over(
        {
            let api = Deployments::start().await;
            api.create("team/web", Some(3));
            api
        },
        ", timeout: 1s",
    )
    .await
    .listed()
    .await;
    let path = replicas_path("team/web");
    let good = r#"{"replicaCount": 5}"#;
    let big = format!(r#"{{"replicaCount": 5, "x": "{}"}}"#, "x".repeat(5000));
    let (path, big) = (path.as_str(), big.as_str());
    let plain: &[(&str, &str)] = &[];
    let text: &[(&str, &str)] = &[("content-type", "text/plain")];
    let gzip: &[(&str, &str)] = &[("content-encoding", "gzip")];
    for (method, path, body, headers, code) in [
        ("PUT", path, Some("{"), plain, 400),
        ("PUT", path, Some(r#"{"replicaCount": 5, "x": 1}"#), plain, 400),
        ("GET", "/api/v1/namespaces/team/deployments/Web/replicas", None, plain, 400),
        ("GET", "/api/v1/namespaces/team/deployments/../replicas", None, plain, 400),
        ("GET", "/api/v1/namespaces/team/deployments/absent/replicas", None, plain, 404),
        ("PUT", "/api/v1/namespaces/team/deployments/absent/replicas", Some(good), plain, 404),
        ("GET", "/api/v1/nothing", None, plain, 404),
        ("PUT", "/api/v1/namespaces/team/deployments/web/containers/main/image", Some(r#"{"image":"a"}"#), plain, 404),
        ("DELETE", path, None, plain, 405),
        ("PUT", path, Some(big), plain, 413),
        ("PUT", path, Some(good), text, 415),
        ("PUT", path, Some(good), gzip, 415),
        ("PUT", path, Some(r#"{"replicaCount": -1}"#), plain, 422),
        ("PUT", path, Some(r#"{"replicaCount": 2147483648}"#), plain, 422),
    ] {
        let client = world.client("client").await;
        let answer = client.call(method, path, body, headers).await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
        assert!(!answer.error().is_empty());
        assert_eq!(answer.header("content-type"), "application/json");
        assert!(!answer.header("x-request-id").is_empty());
    }
    let client = world.client("client").await;
    for (trouble, code) in [
        (Trouble::Status(422, "spec.replicas: too many"), 422),
        (Trouble::Status(403, "forbidden"), 502),
        (Trouble::Status(500, "etcd"), 502),
        (Trouble::Status(429, "slow down"), 502),
        (Trouble::Swallow, 504),
    ] {
        world.api.trouble(trouble.clone());
        let answer = client.put(path, good).await;
        assert_eq!(answer.code, code, "{trouble:?}: {}", answer.text);
        assert!(!answer.error().contains("127.0.0.1"), "addresses are nobody's business: {}", answer.text);
    }
    assert_eq!(world.api.world.lock().replicas("team/web"), 3, "nothing of all this was stored");
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_keeps_its_name_where_that_is_one() {
    let world = world().await;
    let client = world.client("client").await;
    let answer = client.call("GET", "/api/v1/health", None, &[("x-request-id", "trace-7.a_b")]).await;
    assert_eq!(answer.header("x-request-id"), "trace-7.a_b");
    for bad in ["a b", "x\"y", &"x".repeat(65), ""] {
        let answer = client.call("GET", "/api/v1/health", None, &[("x-request-id", bad)]).await;
        let fresh = answer.header("x-request-id").to_owned();
        assert!(fresh.len() == 16 && fresh.bytes().all(|byte| byte.is_ascii_hexdigit()), "{bad}: {fresh}");
    }
    world.app.stop().await;
}
