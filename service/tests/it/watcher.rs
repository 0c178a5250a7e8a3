//! Tests of the role `watcher` over sockets: events for receivers, objects for hooks, and deletions that wait.

use std::sync::Arc;

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use service::run::Options;
use tempfile::TempDir;

use crate::support::api::{Api, Fault};
use crate::support::raw::{Answer, Raw};
use crate::support::{Server, Service, kubeconfig, status, until};

/// A hook that records its calls and gives scripted answers.
struct Hook {
    calls: Arc<Mutex<Vec<Value>>>,
    /// Statuses of the next answers; later answers have status 200.
    answers: Arc<Mutex<Vec<u16>>>,
    server: Server,
}

impl Hook {
    async fn start(answers: &[u16]) -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(answers.to_vec()));
        let (to, from) = (Arc::clone(&calls), Arc::clone(&answers));
        let server = Server::start(
            false,
            Arc::new(move |request| {
                let (to, from) = (Arc::clone(&to), Arc::clone(&from));
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    to.lock().push(serde_json::from_slice(&body).unwrap());
                    let mut from = from.lock();
                    status(if from.is_empty() { 200 } else { from.remove(0) }, "")
                }
                .boxed()
            }),
        )
        .await;
        Self { calls, answers, server }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.server.address)
    }

    /// Change, object name and port of each call.
    fn seen(&self) -> Vec<(String, String, u64)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = self.calls.lock();
        let port = |call: &Value| call["object"]["spec"]["network"]["allow"][0]["port"].as_u64().unwrap_or_default();
        calls
            .iter()
            .map(|call| (text(&call["change"]), text(&call["object"]["metadata"]["name"]), port(call)))
            .collect()
    }
}

fn text(api: &Api, folder: &TempDir, actions: &str) -> String {
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    format!(
        "health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\n\
         watch: {{backoff: {{initial: 20ms, max: 200ms}}}}\nwatcher: {{actions: [{actions}]}}\n",
        path.display()
    )
}

async fn start(api: &Api, actions: &str, witness: Option<String>) -> Service {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { witness_url: witness, ..Options::default() };
    Service::start("watcher", &text(api, &folder, actions), options).await
}

const PACKAGES: &str = "resource: packages.longhaul.dev/v1alpha1";

/// The changes of the object `name` that `action` reported.
fn reported_changes(api: &Api, action: &str) -> Vec<String> {
    let world = api.world.lock();
    let lines = world.witnessed.iter().filter(|line| line["action"] == action);
    lines.map(|line| format!("{} {}", line["change"].as_str().unwrap(), line["name"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn every_due_event_is_told_once_in_order_though_receiver_and_watch_fail() {
    let api = Api::start(false).await;
    api.create("old", &[1]);
    api.world.lock().witness_failures = 3;
    api.fault(Fault::Torn(1));
    api.fault(Fault::Status(410, None));
    let actions = format!(
        "{{id: all, {PACKAGES}, action: watch}}, {{id: ends, {PACKAGES}, action: watch, on: [deleted], nameRegex: \"^o\"}}, \
         {{id: none, {PACKAGES}, action: watch, labels: {{no: \"\"}}}}"
    );
    let service = start(&api, &actions, Some(api.witness_url())).await;
    until("the first is told", || reported_changes(&api, "all").len() == 1).await;
    for port in 2..5 {
        api.update("old", &[port]);
        until("the change is told", || reported_changes(&api, "all").len() == usize::from(port)).await;
    }
    api.create("new", &[1]);
    api.delete("old");
    api.delete("new");
    until("the ends are told", || {
        reported_changes(&api, "all").len() == 7 && reported_changes(&api, "ends").len() == 1
    })
    .await;
    let all = reported_changes(&api, "all");
    assert_eq!(all[..5], ["added old", "modified old", "modified old", "modified old", "added new"]);
    assert_eq!(
        (reported_changes(&api, "ends"), reported_changes(&api, "none").len()),
        (vec!["deleted old".to_owned()], 0)
    );
    let (_, page) = service.health("/metrics").await;
    assert!(page.contains(r#"longhaul_watcher_calls_total{action="all",outcome="taken"} 7"#), "{page}");
    assert!(
        api.world.lock().count("GET /apis/longhaul.dev/v1alpha1/packages?watch") > 3,
        "the watch had to begin anew"
    );
    service.app.stop().await;
}

#[tokio::test]
async fn a_hook_gets_the_latest_object_and_gets_it_again_until_it_takes_it() {
    let api = Api::start(false).await;
    let hook = Hook::start(&[500, 503]).await;
    let actions =
        format!("{{id: apply, {PACKAGES}, action: reconcile, url: \"{}\", retries: [100ms, 100ms]}}", hook.url());
    let service = start(&api, &actions, None).await;
    api.create("app", &[80]);
    until("it is taken at the third attempt", || hook.calls.lock().len() == 3).await;
    let first = ("added".to_owned(), "app".to_owned(), 80);
    assert_eq!(hook.seen(), vec![first; 3]);
    // An object is given up after all attempts, and begins anew with the next change.
    *hook.answers.lock() = vec![500; 3];
    api.update("app", &[81]);
    until("all attempts are made", || hook.calls.lock().len() == 6).await;
    until_metric(&service, r#"longhaul_watcher_calls_total{action="apply",outcome="given-up"} 1"#).await;
    api.update("app", &[82]);
    until("the next change is brought", || hook.seen().last().is_some_and(|call| call.2 == 82)).await;
    api.delete("app");
    until("the end is brought", || hook.calls.lock().len() == 8).await;
    let calls = hook.calls.lock().clone();
    assert_eq!(
        (&calls[7]["change"], &calls[7]["object"]["kind"]),
        (&json!("deleted"), &json!("PartialObjectMetadata"))
    );
    until_metric(&service, r#"longhaul_watcher_waiting{action="apply"} 0"#).await;
    service.app.stop().await;
}

/// A hook sends a body without end, or keeps the connection open and sends nothing. Each call is cut off, counts as a
/// failure, and is made again until the attempts are used up; the next object gets its call.
#[tokio::test]
async fn a_hook_whose_answer_never_ends_is_cut_off() {
    let api = Api::start(false).await;
    let answers = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&answers);
    let hook = Raw::start(move |_| {
        let mut number = counted.lock();
        *number += 1;
        match *number % 2 {
            1 => Answer::Endless(b"HTTP/1.1 500 Never\r\ncontent-length: 99999999999\r\n\r\n".to_vec()),
            _ => Answer::Hang,
        }
    })
    .await;
    let actions = format!(
        "{{id: apply, {PACKAGES}, action: reconcile, url: \"http://{}/hook\", timeout: 300ms, retries: [100ms]}}",
        hook.host()
    );
    let service = start(&api, &actions, None).await;
    for (name, number) in [("first", 1), ("second", 2)] {
        api.create(name, &[80]);
        let line = format!(r#"longhaul_watcher_calls_total{{action="apply",outcome="given-up"}} {number}"#);
        until_metric(&service, &line).await;
    }
    assert_eq!(*answers.lock(), 4, "two attempts for each object");
    service.app.stop().await;
}

#[tokio::test]
async fn an_object_stays_until_its_hook_has_agreed_to_its_end() {
    let api = Api::start(false).await;
    let hook = Hook::start(&[500, 400]).await;
    api.create("old", &[80]);
    let actions = format!(
        "{{{PACKAGES}, action: finalize, finalizer: example.com/keep, name: old, url: \"{}\", retries: [100ms]}}",
        hook.url()
    );
    let service = start(&api, &actions, None).await;
    let finalizers =
        |name: &str| api.world.lock().packages.get(name).map(|object| object["metadata"]["finalizers"].clone());
    until("it has the finalizer", || finalizers("old") == Some(json!(["example.com/keep"]))).await;
    api.edit("old", |object| object["metadata"]["finalizers"] = json!(["example.com/keep", "other.com/x"]));
    api.create("another", &[80]);
    api.delete("old");
    until("only somebody else's is left", || finalizers("old") == Some(json!(["other.com/x"]))).await;
    assert_eq!(hook.seen(), vec![("deleted".to_owned(), "old".to_owned(), 80); 3], "refused twice, then agreed");
    assert_eq!(finalizers("another"), Some(Value::Null), "nobody meant it");
    service.app.stop().await;
}

#[tokio::test]
async fn filters_are_taken_while_running() {
    let api = Api::start(false).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("service.yaml");
    let action = |regex: &str| format!("{{id: a, {PACKAGES}, action: watch, nameRegex: \"{regex}\"}}");
    std::fs::write(&file, text(&api, &folder, &action("^x"))).unwrap();
    let config = service::config::load(&file).unwrap();
    let options = Options { witness_url: Some(api.witness_url()), ..Options::default() };
    let mut app = service::run::App::start("watcher", config, options).await.unwrap();
    app.follow_config(file.clone());
    api.create("x1", &[1]);
    api.create("y1", &[1]);
    until("x is told", || reported_changes(&api, "a") == ["added x1"]).await;
    std::fs::write(&file, text(&api, &folder, &action("^y"))).unwrap();
    // Each new object is one more probe: it is reported as soon as the filter was applied.
    let mut number = 2;
    while reported_changes(&api, "a").len() == 1 {
        assert!(number < 2000, "the new filter was not taken");
        api.create(&format!("y{number}"), &[1]);
        number += 1;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    api.create("x2", &[1]);
    api.create("y-last", &[1]);
    until("y is told", || reported_changes(&api, "a").last().is_some_and(|line| line == "added y-last")).await;
    assert!(!reported_changes(&api, "a").contains(&"added x2".to_owned()));
    app.stop().await;
}

async fn until_metric(service: &Service, line: &str) {
    let begun = std::time::Instant::now();
    loop {
        let (_, page) = service.health("/metrics").await;
        if page.contains(line) {
            return;
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "waited in vain for {line}: {page}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
