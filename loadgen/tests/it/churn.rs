//! Tests of churn with a small API: the number of objects is constant, no name returns, failures are counted and
//! repaired, and all objects are removed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use loadgen::churn::{Churn, Config, Interval, Plan};

use crate::kube::Kube;
use crate::server::until;

const PACKAGES: &str = "packages.longhaul.dev/v1alpha1";

fn plan(resource: &str, population: u32, rate: u32, seconds: u64) -> Plan {
    let config: Config = serde_json::from_str(&format!(
        r#"{{"resource": "{resource}", "population": {population}, "rate": "{rate}/s",
            "mix": {{"create": 2, "update": 3, "delete": 2}}}}"#
    ))
    .unwrap();
    Plan::build(&config, 7, Duration::from_secs(seconds)).unwrap()
}

/// Runs the whole plan of churn and returns its counts.
async fn run(churn: &mut Churn, planned: u64) -> Interval {
    let mut total = Interval::default();
    let limit = Instant::now() + Duration::from_secs(20);
    while total.created + total.updated + total.deleted + total.failed < planned {
        assert!(Instant::now() < limit, "{total:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
        total.add(&churn.take());
    }
    churn.stop(Duration::from_secs(10)).await.unwrap();
    total.add(&churn.take());
    assert_eq!(total.planned, planned);
    assert_eq!(total.created + total.updated + total.deleted + total.failed, planned, "{total:?}");
    assert_eq!(total.lateness.len(), total.service.len());
    total
}

#[tokio::test]
async fn constant_population_ever_new_names_and_empty_at_the_end() {
    for resource in [PACKAGES, "v1/configmaps"] {
        let kube = Kube::start().await;
        let plan = plan(resource, 40, 300, 1);
        let mut churn = Churn::start(plan, &kube.api(), Instant::now()).await.unwrap();
        assert!(kube.objects().len() >= 39, "filled before the operations begin");
        let first = churn.canary().await.unwrap();
        let second = churn.canary().await.unwrap();
        assert_eq!(first.uid, second.uid);
        assert_ne!(first.resource_version, second.resource_version);
        let total = run(&mut churn, 300).await;
        assert_eq!(total.failed, 0, "{:?}", total.examples);
        assert_eq!(total.lateness.len(), 300, "every operation was timed");
        assert_eq!(total.objects_total, 40 + 1 + total.created);
        let population = kube.objects().len() - 1;
        assert!((39..=41).contains(&population), "{population}");
        assert_eq!(population as u64 + total.deleted, 40 + total.created);

        let created: Vec<String> =
            kube.calls("POST").into_iter().map(|(call, status)| format!("{call} {status}")).collect();
        assert!(created.iter().all(|call| call.ends_with(" 201")), "nothing is created twice: {created:#?}");
        let removed = kube.calls("DELETE /api/v1/namespaces/lh-7-").len();
        assert!(removed > 5, "namespaces go when they are empty");
        assert!(kube.namespaces().len() < 30, "{:?}", kube.namespaces());

        assert_eq!(churn.empty().await.unwrap(), population as u64);
        assert_eq!(kube.objects(), Vec::<String>::new());
        assert_eq!(kube.namespaces(), Vec::<String>::new());
    }
}

/// The same seed writes the same objects in the same namespaces.
#[tokio::test]
async fn same_seed_same_objects() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let kube = Kube::start().await;
        let mut churn = Churn::start(plan(PACKAGES, 10, 100, 1), &kube.api(), Instant::now()).await.unwrap();
        run(&mut churn, 100).await;
        let state = kube.state.lock();
        let bodies = state.objects.values().map(|object| format!("{}{}", object["metadata"]["name"], object["spec"]));
        seen.push(bodies.collect::<BTreeSet<String>>());
    }
    assert_eq!(seen[0], seen[1]);
}

/// Churn waits for finalizers only at its end.
#[tokio::test]
async fn finalizers_are_waited_for_at_the_end() {
    let kube = Kube::start().await;
    kube.state.lock().finalizer = Some(3);
    let mut churn = Churn::start(plan(PACKAGES, 10, 100, 1), &kube.api(), Instant::now()).await.unwrap();
    let total = run(&mut churn, 100).await;
    assert_eq!(total.failed, 0, "{:?}", total.examples);
    churn.empty().await.unwrap();
    assert_eq!(kube.objects(), Vec::<String>::new());
    assert!(kube.calls("GET /apis/longhaul.dev/v1alpha1/packages").len() >= 3);
}

/// After a conflict the object is read and written again, without a failure.
#[tokio::test]
async fn a_conflict_is_read_again() {
    let kube = Kube::start().await;
    let mut churn = Churn::start(plan(PACKAGES, 10, 100, 1), &kube.api(), Instant::now()).await.unwrap();
    kube.state.lock().fault = Some(|count, method, _| (method == "PATCH" && count % 5 == 0).then_some(409));
    let total = run(&mut churn, 100).await;
    let conflicts = kube.calls("PATCH").iter().filter(|(_, status)| *status == 409).count();
    assert!(conflicts > 0);
    let reads = kube.calls("GET /apis/longhaul.dev/v1alpha1/namespaces/lh-7-").len() as u64;
    assert_eq!(reads, conflicts as u64 - total.failed, "a second conflict is a failure");
}

/// On a slow API the operations on one object wait for each other; operations on different objects do not.
#[tokio::test]
async fn one_operation_at_a_time_on_one_object() {
    let kube = Kube::start().await;
    let mut churn = Churn::start(plan(PACKAGES, 3, 100, 1), &kube.api(), Instant::now()).await.unwrap();
    kube.state.lock().delay = Duration::from_millis(20);
    let total = run(&mut churn, 100).await;
    assert_eq!(total.failed, 0, "{:?}", total.examples);
    assert_eq!(kube.state.lock().most_at_once, 1);
    assert!(total.lateness.max() >= 10_000, "some waited: {} us at most", total.lateness.max());
    churn.empty().await.unwrap();
}

/// An API that is slower than the plan does not delay the plan: operations beyond the limit count as failed.
#[tokio::test]
async fn a_slow_api_fails_operations_instead_of_delaying_them() {
    let kube = Kube::start().await;
    let mut churn = Churn::start(plan(PACKAGES, 3, 1000, 1), &kube.api(), Instant::now()).await.unwrap();
    kube.state.lock().delay = Duration::from_millis(300);
    let total = run(&mut churn, 1000).await;
    assert!(total.failed > 50, "{}", total.failed);
    assert!(total.examples.iter().any(|text| text.starts_with("not begun: ")), "{:?}", total.examples);
    kube.state.lock().delay = Duration::ZERO;
    churn.empty().await.unwrap();
    assert_eq!((kube.objects().len(), kube.namespaces().len()), (0, 0));
}

/// An object whose creation failed is created by its next update, so at most one of its updates fails.
#[tokio::test]
async fn a_failed_creation_is_made_up_for() {
    let kube = Kube::start().await;
    let config: Config = serde_json::from_str(&format!(
        r#"{{"resource": "{PACKAGES}", "population": 20, "rate": "400/s", "mix": {{"create": 1, "update": 8, "delete": 1}}}}"#
    ))
    .unwrap();
    let plan = Plan::build(&config, 7, Duration::from_secs(1)).unwrap();
    let mut churn = Churn::start(plan, &kube.api(), Instant::now()).await.unwrap();
    // The creations of a quarter of the run fail; later operations find objects missing.
    kube.state.lock().fault =
        Some(|count, method, path| (method == "POST" && path.ends_with("/packages") && count < 140).then_some(503));
    let total = run(&mut churn, 400).await;
    assert!(total.failed > 0, "some creations failed");
    let missing = kube.calls("PATCH").into_iter().filter(|(_, status)| *status == 404).map(|(call, _)| call);
    let healed_by =
        kube.state.lock().log.iter().filter(|(call, status)| call.starts_with("POST") && *status == 201).count();
    let late: Vec<String> = missing.collect();
    assert!(!late.is_empty(), "some updates found their object missing");
    assert!(
        healed_by as u64 >= 20 + total.created,
        "{healed_by} objects and namespaces for {} creations",
        total.created
    );
    let objects = kube.objects();
    assert!((17..=23).contains(&objects.len()), "{} objects", objects.len());
    let paths: BTreeSet<&String> = late.iter().collect();
    assert!(
        late.len() as u64 <= paths.len() as u64 + total.failed,
        "the same object is missing again and again: {late:#?}"
    );
    churn.empty().await.unwrap();
}

/// Failures are counted with their reason and repaired: missing objects are created, and objects whose deletion failed
/// are deleted.
#[tokio::test]
async fn failures_are_counted_and_healed() {
    let kube = Kube::start().await;
    let mut churn = Churn::start(plan(PACKAGES, 20, 200, 1), &kube.api(), Instant::now()).await.unwrap();
    kube.state.lock().fault = Some(|count, _, path| (path.contains("/packages") && count % 3 == 0).then_some(503));
    let total = run(&mut churn, 200).await;
    assert!(total.failed > 20, "{}", total.failed);
    assert!(total.examples.iter().any(|text| text.contains("HTTP 503: a fault of the test")), "{:?}", total.examples);
    kube.state.lock().fault = None;
    until("failed deletes to be made up for", || kube.objects().len() <= 21).await;
    churn.empty().await.unwrap();
    assert_eq!((kube.objects().len(), kube.namespaces().len()), (0, 0));
}

#[tokio::test]
async fn a_fill_that_cannot_work_says_why() {
    let kube = Kube::start().await;
    kube.state.lock().fault = Some(|_, method, path| (method == "POST" && path.contains("/packages")).then_some(403));
    let error = Churn::start(plan(PACKAGES, 3, 10, 1), &kube.api(), Instant::now()).await.unwrap_err().to_string();
    assert!(error.starts_with("fill the population: lh-7-"), "{error}");
    assert!(error.ends_with("HTTP 403: a fault of the test"), "{error}");
    assert_eq!(kube.namespaces(), Vec::<String>::new(), "what was made is removed");

    let mut api = kube.api();
    api.token = "wrong".to_owned();
    let error = Churn::start(plan(PACKAGES, 3, 10, 1), &api, Instant::now()).await.unwrap_err().to_string();
    assert!(error.contains("HTTP 401: Unauthorized"), "{error}");
    assert!(!format!("{api:?}").contains("wrong"), "the token stays out of messages");
}

/// A plan with a template that was made from a definition.
fn made(spec: &str, rate: u32) -> Plan {
    let mut config: Config = serde_json::from_str(&format!(
        r#"{{"resource": "{PACKAGES}", "population": 20, "rate": "{rate}/s", "template": {{"kind": "Package", "spec": {spec}}},
            "mix": {{"create": 1, "update": 4, "delete": 1}}}}"#
    ))
    .unwrap();
    config.made = true;
    Plan::build(&config, 7, Duration::from_secs(1)).unwrap()
}

/// An object that was refused for a drawn value is created with another value. The run goes on without objects that
/// are refused each time, and ends if all are.
#[tokio::test]
async fn a_refused_object_of_a_made_template_is_drawn_again() {
    let kube = Kube::start().await;
    kube.state.lock().refusal = Some(|method, object| {
        let is_bad = method == "POST" && object["spec"]["size"].as_u64().is_some_and(|size| size > 1);
        is_bad.then_some((422, "spec.size: Invalid value: must be 1"))
    });
    let churn = Churn::start(made(r#"{"size": "${random 1..2}"}"#, 10), &kube.api(), Instant::now()).await.unwrap();
    let refused = kube.calls("POST").iter().filter(|(_, status)| *status == 422).count();
    assert!(refused > 3 && kube.objects().len() == 20, "{refused} refusals, {:?}", kube.objects());
    drop(churn);

    let kube = Kube::start().await;
    kube.state.lock().refusal = Some(|method, object| {
        let is_bad =
            method == "POST" && object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("00000"));
        is_bad.then_some((400, "admission webhook \"a\" denied the request: no"))
    });
    let mut churn = Churn::start(made(r#"{"size": "${random 1..2}"}"#, 30), &kube.api(), Instant::now()).await.unwrap();
    assert_eq!(kube.objects().len(), 19, "the first one is left out");
    run(&mut churn, 30).await;
    churn.empty().await.unwrap();

    kube.state.lock().refusal =
        Some(|method, object| (method == "POST" && object["spec"].is_object()).then_some((422, "spec: wrong")));
    let error = Churn::start(made("{}", 10), &kube.api(), Instant::now()).await.unwrap_err().to_string();
    assert!(error.contains("spec: wrong") && error.contains("write a `template`"), "{error}");
}

/// Updates leave out the fields whose change a dry run refuses, and change the other fields.
#[tokio::test]
async fn a_field_whose_change_is_refused_is_left_out_of_updates() {
    let kube = Kube::start().await;
    kube.state.lock().refusal = Some(|method, patch| {
        (method == "PATCH" && !patch["spec"]["class"].is_null()).then_some((422, "spec.class: field is immutable"))
    });
    let spec = r#"{"class": "${text 8}", "size": "${random 1..9000}"}"#;
    let mut churn = Churn::start(made(spec, 100), &kube.api(), Instant::now()).await.unwrap();
    let before: BTreeSet<String> = kube.state.lock().objects.values().map(|one| one["spec"].to_string()).collect();
    let total = run(&mut churn, 100).await;
    assert_eq!(total.failed, 0, "{:?}", total.examples);
    assert!(total.updated > 20, "{total:?}");
    let after: BTreeSet<String> = kube.state.lock().objects.values().map(|one| one["spec"].to_string()).collect();
    assert!(after.difference(&before).count() > 5, "sizes change: {after:?}");
}

/// All objects are in the given namespace, which is created if it does not exist, and stays.
#[tokio::test]
async fn one_namespace_holds_all_objects_and_stays() {
    let kube = Kube::start().await;
    let mut config = plan(PACKAGES, 10, 100, 1).config().clone();
    config.namespace = Some("watched".to_owned());
    let plan = Plan::build(&config, 7, Duration::from_secs(1)).unwrap();
    let mut churn = Churn::start(plan, &kube.api(), Instant::now()).await.unwrap();
    churn.canary().await.unwrap();
    let total = run(&mut churn, 100).await;
    assert_eq!(total.failed, 0, "{:?}", total.examples);
    assert!(total.created > 10 && kube.objects().iter().all(|path| path.contains("/namespaces/watched/")));
    churn.empty().await.unwrap();
    assert_eq!((kube.objects(), kube.namespaces()), (vec![], vec!["/api/v1/namespaces/watched".to_owned()]));
}

/// A second run with the same seed takes over the objects that a killed run left.
#[tokio::test]
async fn remains_of_a_killed_run_are_taken_over() {
    let kube = Kube::start().await;
    drop(Churn::start(plan(PACKAGES, 10, 10, 1), &kube.api(), Instant::now()).await.unwrap());
    let mut churn = Churn::start(plan(PACKAGES, 10, 10, 1), &kube.api(), Instant::now()).await.unwrap();
    churn.empty().await.unwrap();
    assert_eq!((kube.objects().len(), kube.namespaces().len()), (0, 0));
}

#[tokio::test]
async fn dropping_ends_it_even_when_the_api_hangs() {
    let server = crate::server::Server::start(&[b"http/1.1"], |_| async { std::future::pending().await }).await;
    let api = loadgen::churn::Api {
        url: format!("https://{}", server.address),
        ca_pem: server.ca_pem.clone(),
        token: "t".to_owned(),
        mark: None,
    };
    let start = Churn::start(plan(PACKAGES, 10, 10, 1), &api, Instant::now());
    assert!(tokio::time::timeout(Duration::from_millis(300), start).await.is_err());
    until("connections to be closed", || server.open() == 0).await;
}
