//! Tests of reads of replica counts: they use only the watch, show a change as soon as its event has arrived, and
//! survive API server faults.

use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{Caller, World, replicas_path};
use crate::support::PATIENCE;
use crate::support::api::Fault;
use crate::support::deployments::Deployments;

/// After the first list, reads of replica counts send no requests to the API server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_cause_no_calls_to_the_api_server() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, "").await.listed().await;
    super::world::wait_for_request(&world.api, "watch=true").await;
    let client = world.client("client").await;
    let before = world.api.world.lock().requests.len();
    for _ in 0..100 {
        assert_eq!(client.get(&replicas_path("team/web")).await.code, 200);
        assert_eq!(client.get(&replicas_path("team/absent")).await.code, 404);
        assert_eq!(client.get("/api/v1/deployments").await.code, 200);
        assert_eq!(client.get("/api/v1/health").await.code, 200);
    }
    let requests = world.api.world.lock().requests[before..].to_vec();
    assert!(requests.iter().all(|request| request.contains("watch=true")), "{requests:?}");
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_shows_in_a_read_within_a_bound() {
    let world = World::start("").await.listed().await;
    let client = world.client("client").await;
    world.api.create("team/web", None);
    world.observed(&client, "team/web", Some(1)).await;
    let mut spans = Vec::new();
    for count in 2..102 {
        let begun = Instant::now();
        world.api.scale("team/web", count);
        world.observed(&client, "team/web", Some(count)).await;
        spans.push(begun.elapsed());
    }
    spans.sort();
    let p99 = spans[98];
    println!("event to read: p50 {:?}, p99 {p99:?}", spans[49]);
    // Milliseconds on an idle machine; the limit is for a busy one.
    assert!(p99 < Duration::from_secs(2), "{p99:?}");
    world.api.delete("team/web");
    world.observed(&client, "team/web", None).await;
    world.app.stop().await;
}

/// After every documented failure of a watch, reads show all changes and no deleted object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn the_view_is_right_after_every_failure_of_the_watch() {
    let expired = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}).to_string();
    let failed = json!({"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "x"}}).to_string();
    for fault in [
        Fault::Status(410, None),
        Fault::LineThenHold(expired),
        Fault::LineThenHold(failed),
        Fault::LineThenHold("no json".into()),
        Fault::Status(500, None),
        Fault::Silence,
        Fault::Empty,
        Fault::Torn(1),
    ] {
        let api = Deployments::start().await;
        api.create("team/goes", Some(1));
        api.create("team/stays", Some(1));
        api.world.lock().watch_faults.push_back(fault.clone());
        let world = World::start_over(api, "").await.listed().await;
        super::world::wait_for_request(&world.api, "watch=true").await;
        world.api.delete("team/goes");
        world.api.scale("team/stays", 7);
        world.api.create("team/comes", Some(4));
        let client = world.client("client").await;
        for (key, count) in [("team/goes", None), ("team/stays", Some(7)), ("team/comes", Some(4))] {
            world.observed(&client, key, count).await;
        }
        let list = client.get("/api/v1/deployments").await;
        assert_eq!(list.json.as_array().unwrap().len(), 2, "{fault:?}: {}", list.text);
        world.app.stop().await;
    }
}

/// Before the first list is complete, reads are refused, because missing objects are unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_before_the_first_list() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    api.world.lock().list_failures.extend([500; 200]);
    let world = World::start_over(api, "").await;
    let client = world.client("client").await;
    for path in [replicas_path("team/web"), replicas_path("team/absent"), "/api/v1/deployments".to_owned()] {
        let answer = client.get(&path).await;
        assert_eq!((answer.code, answer.header("retry-after")), (503, "1"), "{path}");
        assert_eq!(answer.error(), "the deployments are not listed yet");
    }
    let (code, text) = world.page("/readyz").await;
    assert_eq!(code, 503);
    assert!(text.contains("watch/deployments: the first list of deployments.apps is not done"), "{text}");
    world.api.world.lock().list_failures.clear();
    world.observed(&client, "team/web", Some(3)).await;
    assert_eq!(world.page("/readyz").await.0, 200);
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_tells_whether_there_is_a_cluster() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, "").await.listed().await;
    let client = world.client("client").await;
    let answer = client.get("/api/v1/health").await;
    assert_eq!((answer.code, &*answer.text), (200, r#"{"status":"healthy","kubernetes":"connected"}"#));
    world.api.world.lock().is_down = true;
    world.api.wake();
    let down = async {
        loop {
            let answer = client.get("/api/v1/health").await;
            if answer.code == 503 {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::time::timeout(PATIENCE, down).await.expect("unhealthy");
    assert_eq!(answer.json["status"], "unhealthy");
    assert!(
        answer.json["error"].as_str().unwrap().starts_with("no stream from the API server for "),
        "{}",
        answer.text
    );
    assert_eq!(answer.json.as_object().unwrap().len(), 2);
    // The known state is still served, with its age; and the process stays in service.
    let answer = client.get(&replicas_path("team/web")).await;
    assert_eq!(answer.code, 200);
    assert!(answer.header("longhaul-cache-age-ms").parse::<u64>().unwrap() > 1000);
    let (code, text) = world.page("/readyz?verbose").await;
    assert_eq!(code, 200);
    assert!(text.contains("[!]watch/deployments: no stream for "), "{text}");
    world.api.world.lock().is_down = false;
    let healthy = async { while client.get("/api/v1/health").await.code != 200 {} };
    tokio::time::timeout(PATIENCE, healthy).await.expect("healthy again");
    world.app.stop().await;
}

/// A Deployment that exists all the time is in exactly one page, whatever changes between two pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_stable() {
    let api = Deployments::start().await;
    for index in 0..100 {
        api.create(&format!("n{}/d{index:03}", index % 3), Some(index));
    }
    let world = World::start_over(api, "").await.listed().await;
    let client = world.client("client").await;
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let after = if cursor.is_empty() { String::new() } else { format!("&continue={cursor}") };
        let page = client.get(&format!("/api/v1/deployments?limit=7{after}")).await;
        let entries = page.json.as_array().unwrap();
        assert!(entries.len() <= 7);
        seen.extend(entries.iter().map(|one| format!("{}/{}", one["namespace"], one["name"]).replace('"', "")));
        pages += 1;
        cursor = page.header("longhaul-continue").to_owned();
        if cursor.is_empty() {
            break;
        }
        assert!(page.header("link").ends_with("rel=\"next\""), "{}", page.header("link"));
        // The very object at which the page ended is deleted, and a new one comes before it.
        let last = seen.last().unwrap().clone();
        world.api.delete(&last);
        world.api.create(&format!("n0/a{pages}"), Some(1));
        world.observed(&client, &last, None).await;
        world.observed(&client, &format!("n0/a{pages}"), Some(1)).await;
    }
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(seen, sorted, "in order, and none twice");
    let missing: Vec<_> =
        (0..100).map(|index| format!("n{}/d{index:03}", index % 3)).filter(|key| !seen.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_says_which_revision_it_speaks_of() {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    let world = World::start_over(api, "").await.listed().await;
    let client: Caller = world.client("client").await;
    let answer = client.get(&replicas_path("team/web")).await;
    let revision = world.api.world.lock().objects["team/web"]["metadata"]["resourceVersion"].clone();
    assert_eq!(answer.header("longhaul-revision"), revision);
    assert_eq!(answer.header("longhaul-cache-revision"), revision);
    assert!(answer.header("longhaul-cache-age-ms").parse::<u64>().is_ok());
    world.app.stop().await;
}
