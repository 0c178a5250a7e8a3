//! Tests that each kind of a webhook's answer is counted in its own field, with a text that explains the outcome.

use std::time::{Duration, Instant};

use hyper::Response;
use hyper::body::Incoming;
use loadgen::admission::{Interval, Load};
use serde_json::{Value, json};

use crate::server::{Body, Server, respond, until};
use crate::webhook::{self, H1, assert_accounts, plan, right, run, target};

const EVERYTHING: &str = r#""mix": {"createPod": 3, "createDeployment": 2, "createReplicaSet": 1,
    "createReplicationController": 1, "createStatefulSet": 1, "createDaemonSet": 1, "createJob": 1, "createCronJob": 1,
    "createCustomResource": 1, "createConfigMap": 1, "createSecret": 1, "createService": 1,
    "createCustomResourceDefinition": 1, "createNamespace": 1, "dryRunDeployment": 1, "updateConfigMap": 1, "rollImage": 2,
    "scaleDeployment": 1, "scaleThroughSubresource": 1, "deleteDeployment": 1, "labelPod": 1, "deletePod": 1,
    "evictPod": 1, "debugPod": 1, "updateStatus": 1, "createPodWithImageVolume": 1}"#;

/// Sends 20 Pods, each of which is answered by the function `answer`.
async fn answered_by(answer: fn(Value) -> Response<Body>) -> Interval {
    let server =
        Server::start(H1, move |request: hyper::Request<Incoming>| async move { answer(webhook::body(request).await) })
            .await;
    run(plan(20, r#""mix": {"createPod": 1}"#), &target(&server)).await
}

fn example(interval: &Interval, expected: &str) {
    assert!(interval.examples.len() <= 5);
    assert!(
        interval.examples.iter().any(|text| text.contains(expected)),
        "`{expected}` not in {:#?}",
        interval.examples
    );
}

#[tokio::test]
async fn right_answers_are_right_for_every_action_and_client() {
    for client in ["apiserver", "http2", "no-reuse"] {
        let alpn: &[&[u8]] = &[b"h2", b"http/1.1"];
        let server = Server::start(alpn, |request: hyper::Request<Incoming>| async move {
            webhook::json(&right(&webhook::body(request).await))
        })
        .await;
        let more = format!(r#"{EVERYTHING}, "client": "{client}", "rate": "200/s""#);
        let interval = run(plan(400, &more), &target(&server)).await;
        assert_eq!(interval.examples, Vec::<String>::new(), "{client}");
        // A machine under load may not begin every call; those that begin must be right.
        assert_eq!((interval.counts.wrong_verdicts, interval.errors()), (0, 0), "{client}");
        assert!(
            interval.counts.allowed > 100 && interval.counts.denied > 10,
            "{client}: {} {}",
            interval.counts.allowed,
            interval.counts.denied
        );
    }
}

#[tokio::test]
async fn a_wrong_allow_is_counted_as_one() {
    let interval = answered_by(|review| webhook::json(&webhook::answer(&review, json!({"allowed": true})))).await;
    assert_eq!(interval.counts.allowed, 20);
    assert_eq!(interval.counts.wrong_verdicts, 20);
    assert_eq!(interval.counts.wrong_allows, 20);
    example(&interval, "wrong allow: Pod CREATE ");
}

#[tokio::test]
async fn a_missing_patch_and_a_missing_image_are_told_apart() {
    let server = Server::start(H1, |request: hyper::Request<Incoming>| async move {
        let review = webhook::body(request).await;
        let right = right(&review);
        let allowed = right["response"]["allowed"] == true;
        // Right about missing images, but without pins.
        webhook::json(&if allowed { webhook::answer(&review, json!({"allowed": true})) } else { right })
    })
    .await;
    let interval = run(plan(100, r#""mix": {"createPod": 1}"#), &target(&server)).await;
    assert_eq!(interval.counts.wrong_allows, interval.counts.allowed);
    assert!(interval.counts.denied > 0 && interval.counts.allowed > 0);
    example(&interval, "was allowed without the pin: /spec/containers/0/image is still `");
}

#[tokio::test]
async fn a_wrong_denial_is_a_wrong_verdict_but_no_wrong_allow() {
    let interval = answered_by(|review| {
        let response = json!({"allowed": false, "status": {"message": "not today"}});
        webhook::json(&webhook::answer(&review, response))
    })
    .await;
    assert_eq!((interval.counts.denied, interval.counts.wrong_allows), (20, 0));
    assert!((1..=20).contains(&interval.counts.wrong_verdicts));
    example(&interval, "was denied, it is right to allow it; the answer: not today");
}

#[tokio::test]
async fn http_errors() {
    let interval = answered_by(|_| respond(500, "text/plain", "database on fire")).await;
    assert_eq!(interval.counts.http_error, 20);
    example(&interval, "http error: HTTP 500: `database on fire`");
}

#[tokio::test]
async fn invalid_responses() {
    let wrong_uid: fn(Value) -> Response<Body> = |review| {
        let mut answer = right(&review);
        answer["response"]["uid"] = json!("another");
        webhook::json(&answer)
    };
    let garbage: fn(Value) -> Response<Body> = |_| respond(200, "application/json", "{\"kind\":");
    let html: fn(Value) -> Response<Body> = |_| respond(200, "text/html", "<h1>hello</h1>");
    for (answer, expected) in [
        (wrong_uid, "expected response.uid=\""),
        (garbage, "the body is no AdmissionReview (EOF"),
        (html, "the body is no AdmissionReview (it is no object): `<h1>hello</h1>`"),
    ] {
        let interval = answered_by(answer).await;
        assert_eq!(interval.counts.invalid_response, 20, "{expected}");
        example(&interval, expected);
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let server = Server::start(H1, |_| async { std::future::pending().await }).await;
    let silent = run(plan(10, r#""timeout": "1s""#), &target(&server)).await;
    assert_eq!(silent.counts.timeout, 10);
    example(&silent, "timeout: no complete answer within 1 s: the request was on its way, no status line came");
    assert!(silent.service.min() >= 999_000, "{}", silent.service.min());

    // Accepted by the kernel, never by a server.
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut unheard = target(&server);
    unheard.url = format!("https://{}/mutate", deaf.local_addr().unwrap());
    let unheard = run(plan(10, r#""timeout": "1s""#), &unheard).await;
    assert_eq!(unheard.counts.timeout, 10);
    example(&unheard, "no connection was ready");
}

#[tokio::test]
async fn no_listener_is_connect_and_a_wrong_certificate_is_tls() {
    let server = Server::start(H1, |_| async { respond(200, "text/plain", "") }).await;
    let other = Server::start(H1, |_| async { respond(200, "text/plain", "") }).await;
    let mut wrong_ca = target(&server);
    wrong_ca.ca_pem = other.ca_pem.clone();
    let interval = run(plan(10, ""), &wrong_ca).await;
    assert_eq!(interval.counts.tls, 10);
    example(&interval, "tls: 127.0.0.1:");
    let mut wrong_name = target(&server);
    wrong_name.server_name = "elsewhere.svc".to_owned();
    assert_eq!(run(plan(10, ""), &wrong_name).await.counts.tls, 10);

    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut closed = target(&server);
    closed.url = format!("https://{}/mutate", free.local_addr().unwrap());
    drop(free);
    let interval = run(plan(10, ""), &closed).await;
    assert_eq!(interval.counts.connect, 10);
    example(&interval, "Connection refused");
}

#[tokio::test]
async fn a_server_without_http2_is_a_tls_failure_of_that_client() {
    let server = Server::start(H1, |_| async { respond(200, "text/plain", "") }).await;
    let interval = run(plan(10, r#""client": "http2""#), &target(&server)).await;
    assert_eq!(interval.counts.tls, 10, "{:?}", interval.examples);
}

/// The limit of calls in flight is never exceeded, and no call waits unnoticed: calls beyond the limit are overflow.
/// Calls that the end of the load cuts off count as abandoned.
#[tokio::test]
async fn the_in_flight_limit_overflows() {
    let server = Server::start(H1, |_| async { std::future::pending().await }).await;
    let plan = plan(100, r#""maxInFlight": 5, "timeout": "30s""#);
    let load = Load::start(plan, &target(&server), Instant::now()).unwrap();
    until("every request to be planned", || load.planned_now() == 100).await;
    let interval = load.stop(Duration::from_millis(10)).await;
    assert_accounts(&interval);
    assert_eq!((interval.counts.sent, interval.counts.overflow, interval.counts.abandoned), (5, 95, 5));
}

/// A late generator is visible: response time counts from the planned time, while service time does not.
#[tokio::test]
async fn lateness_is_part_of_response_time_and_not_of_service_time() {
    let server = Server::start(H1, |request: hyper::Request<Incoming>| async move {
        webhook::json(&right(&webhook::body(request).await))
    })
    .await;
    let late = Duration::from_secs(2);
    let begin = Instant::now().checked_sub(late).unwrap();
    let load = Load::start(plan(10, ""), &target(&server), begin).unwrap();
    until("every request to be planned", || load.planned_now() == 10).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    let mut response = interval.response_allowed.clone();
    response.add(&interval.response_denied).unwrap();
    assert!(interval.lateness.min() >= 1_980_000, "{}", interval.lateness.min());
    assert!(response.min() >= 1_980_000, "{}", response.min());
    assert!(interval.service.max() < 1_980_000, "{}", interval.service.max());
}

/// All intervals that `take` returns are together the whole load, and no call is counted twice.
#[tokio::test]
async fn intervals_add_up() {
    let server = Server::start(H1, |request: hyper::Request<Incoming>| async move {
        webhook::json(&right(&webhook::body(request).await))
    })
    .await;
    let load = Load::start(plan(300, ""), &target(&server), Instant::now()).unwrap();
    let mut total = Interval::default();
    let limit = Instant::now() + Duration::from_secs(20);
    while total.counts.allowed + total.counts.denied < 300 {
        assert!(Instant::now() < limit, "{total:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        total.add(&load.take());
    }
    total.add(&load.stop(Duration::from_secs(1)).await);
    assert_eq!((total.counts.planned, total.counts.sent), (300, 300));
    assert_accounts(&total);
}
