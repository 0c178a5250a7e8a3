//! Tests of scripts with a small API: the order of writes, writes after a fault's hit, and the error of a refusal.

use std::time::{Duration, Instant};

use loadgen::script::{Config, Error, Plan, Script};

use crate::kube::Kube;
use crate::server::until;

fn plan(steps: &str) -> Plan {
    let text = format!(
        r#"{{"resource": "configmaps/v1", "namespace": "lab", "objects": ["a", "b"], "objectsMany": 5, "steps": [{steps}]}}"#
    );
    let config: Config = serde_json::from_str(&text).unwrap();
    Plan::build(&config, 7).unwrap()
}

/// The calls that changed objects since the first objects were created, for example `PATCH a`.
fn calls(kube: &Kube, filled: usize) -> Vec<String> {
    let short = |call: &str| {
        let (method, path) = call.split_once(' ').unwrap();
        format!("{method} {}", path.rsplit('/').next().unwrap())
    };
    kube.state.lock().log[filled..].iter().map(|(call, _)| short(call)).collect()
}

#[tokio::test]
async fn steps_are_made_in_the_order_of_their_times_and_objects_exist_before_them() {
    let kube = Kube::start().await;
    let plan = plan(
        r#"{"at": "60ms", "delete": "b"}, {"at": "0s", "update": "a", "times": 2, "every": "30ms"},
           {"at": "60ms", "recreate": "a"}, {"at": "70ms", "create": ["c"], "resource": "packages.longhaul.dev/v1alpha1"}"#,
    );
    let planned = plan.total();
    let mut script = Script::start(plan, &kube.api()).await.unwrap();
    let filled = kube.state.lock().log.len();
    assert_eq!(kube.objects().len(), 7, "all of them are there before the steps");
    let uid = |name: &str| {
        kube.state.lock().objects[&format!("/api/v1/namespaces/lab/configmaps/{name}")]["metadata"]["uid"].clone()
    };
    assert!(uid("a").as_str() < uid("b").as_str(), "in the order of the file");
    assert_eq!(script.counts().planned, 0);
    script.begin(Instant::now());
    until("every write was made", || script.counts().planned == planned).await;
    script.stop(Duration::from_secs(5)).await;
    let calls = calls(&kube, filled);
    assert_eq!(calls, ["PATCH a", "PATCH a", "DELETE b", "DELETE a", "POST configmaps", "POST packages"]);
    let counts = script.counts();
    assert_eq!((counts.created, counts.updated, counts.deleted, counts.failed), (2, 2, 2, 0));
    assert_eq!(counts.objects_total, 9);
}

#[tokio::test]
async fn a_step_waits_for_the_first_hit_and_for_no_other() {
    let kube = Kube::start().await;
    let plan = plan(r#"{"when": {"hit": "x", "plus": "20ms"}, "update": "a"}, {"when": {"hit": "y"}, "update": "b"}"#);
    let mut script = Script::start(plan.recording_writes(), &kube.api()).await.unwrap();
    let filled = kube.state.lock().log.len();
    // A fault can be hit before the times begin to count.
    let at = Instant::now();
    script.hit("x", at);
    script.hit("x", at + Duration::from_secs(100));
    script.hit("z", at);
    until("the write after the hit was made", || script.counts().updated == 1).await;
    assert!(at.elapsed() >= Duration::from_millis(20));
    script.begin(Instant::now());
    script.stop(Duration::from_secs(5)).await;
    assert_eq!(calls(&kube, filled), ["PATCH a"]);
    let writes = script.take_writes().unwrap();
    assert_eq!((writes.writes.len(), writes.lost), (8, 0), "the first objects and the update");
}

#[tokio::test]
async fn a_refused_write_ends_the_script_and_names_its_step() {
    let kube = Kube::start().await;
    let plan =
        plan(r#"{"at": "0s", "delete": "a"}, {"at": "1ms", "update": ["b", "a"]}, {"at": "2ms", "update": "b"}"#);
    let mut script = Script::start(plan, &kube.api()).await.unwrap();
    let filled = kube.state.lock().log.len();
    script.begin(Instant::now());
    until("the refusal is known", || script.refused().is_some()).await;
    let text = script.refused().unwrap().to_string();
    assert!(
        text.starts_with("step 2 of the script (`update: b, a`): PATCH /api/v1/namespaces/lab/configmaps/a: HTTP 404"),
        "{text}"
    );
    assert_eq!(calls(&kube, filled), ["DELETE a", "PATCH b", "PATCH a"], "nothing after it");
    assert_eq!(script.counts().failed, 1);
}

/// An object that another client creates between the deletion and the creation of a recreation stays, and the script goes on.
#[tokio::test]
async fn a_recreation_that_another_client_makes_first_does_not_end_the_script() {
    let kube = Kube::start().await;
    let mut script = Script::start(plan(r#"{"at": "0s", "recreate": "a"}, {"at": "0s", "update": "b"}"#), &kube.api())
        .await
        .unwrap();
    let filled = kube.state.lock().log.len();
    kube.state.lock().delay = Duration::from_millis(100);
    let began = Instant::now();
    script.begin(began);
    until("the object is deleted", || calls(&kube, filled) == ["DELETE a"]).await;
    let again = serde_json::json!({"metadata": {"name": "a", "namespace": "lab"}});
    kube.state.lock().call("POST", "/api/v1/namespaces/lab/configmaps", &again);
    until("the script went on", || script.counts().updated == 1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "it does not wait as for finalizers: {:?}", began.elapsed());
    assert!(script.refused().is_none(), "{:?}", script.refused());
    let counts = script.counts();
    assert_eq!((counts.deleted, counts.created, counts.others_first, counts.failed), (1, 0, 1, 0));
}

/// The end of the script does not wait for finalizers that nobody removes.
#[tokio::test]
async fn a_recreation_behind_finalizers_ends_with_the_script() {
    let kube = Kube::start().await;
    kube.state.lock().finalizer = Some(usize::MAX);
    let mut script = Script::start(plan(r#"{"at": "0s", "recreate": "a"}"#), &kube.api()).await.unwrap();
    script.begin(Instant::now());
    until("the object is deleted", || script.counts().deleted == 1).await;
    let began = Instant::now();
    script.stop(Duration::from_mins(1)).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(script.refused().is_none(), "{:?}", script.refused());
    assert_eq!(script.counts().others_first, 1);
}

/// A step whose object another client has deleted does not end the script.
#[tokio::test]
async fn an_object_that_another_client_deletes_does_not_end_the_script() {
    let kube = Kube::start().await;
    let steps = r#"{"at": "0s", "create": "c"}, {"at": "200ms", "update": "c"}, {"at": "200ms", "update": "a"}"#;
    let mut script = Script::start(plan(steps), &kube.api()).await.unwrap();
    script.begin(Instant::now());
    until("it is created", || script.counts().created == 1).await;
    kube.state.lock().call("DELETE", "/api/v1/namespaces/lab/configmaps/c", &serde_json::Value::Null);
    until("the script went on", || script.counts().updated == 1).await;
    assert!(script.refused().is_none(), "{:?}", script.refused());
    assert_eq!(script.counts().others_first, 1);
}

#[tokio::test]
async fn objects_that_cannot_be_made_are_an_error_at_the_start() {
    let kube = Kube::start().await;
    kube.state.lock().fault = Some(|_, method, path| (method == "POST" && path.ends_with("configmaps")).then_some(507));
    let error = Script::start(plan(""), &kube.api()).await.unwrap_err();
    assert!(matches!(error, Error::Fill { .. }) && error.to_string().contains("HTTP 507"), "{error}");
}
