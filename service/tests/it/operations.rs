//! Tests of the functions for operators: metrics, health notes, and changes of the configuration in a running process.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Protocol};

use crate::support::api::Api;
use crate::support::registry::Registry;
use crate::support::{PATIENCE, Service, deadline, kubeconfig};

fn config(registry: &Registry, more: &str) -> String {
    format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nshutdown: {{drain: 50ms}}\nkubernetes: {{kubeconfig: kube.yaml}}\n\
         resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n{more}",
        registry.host()
    )
}

async fn allowed(client: &Client, image: &str) -> bool {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": image}]},
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "object": object},
    });
    let request = Request::post("/mutate").header("content-type", "application/json");
    let request = request.body(Bytes::from(review.to_string())).unwrap();
    let answer = client.fetch(request, 1 << 20, deadline()).await.unwrap();
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    answer["response"]["allowed"] == true
}

/// The metrics of a service in which every metric has counted something.
async fn page() -> String {
    let (registry, api) = (Registry::start().await, Api::start(false).await);
    let folder = tempfile::tempdir().unwrap();
    kubeconfig(&folder.path().join("kube.yaml"), api.address());
    let text = config(&registry, "").replace("kube.yaml", folder.path().join("kube.yaml").to_str().unwrap());
    let alerts = "alerting: {reject: {receivers: [{template: slack, url: 'http://127.0.0.1:1/', attempts: 1}]}}\n";
    let watcher = "watcher: {actions: [{resource: packages.longhaul.dev/v1alpha1, action: watch}]}\n";
    std::fs::write(folder.path().join("key"), "k".repeat(64)).unwrap();
    let key = folder.path().join("key");
    let cache = format!("sharedCache: {{address: '127.0.0.1:1', plain: true, keyFile: {}}}\n", key.display());
    let service = Service::start("all", &(text + alerts + watcher + &cache), Options::default()).await;
    let client = service.webhook(Protocol::Http1);
    for name in ["good:1", "absent:1"] {
        allowed(&client, &format!("{}/{name}", registry.host())).await;
    }
    let listed = async { while service.health("/readyz").await.0 != 200 {} };
    tokio::time::timeout(PATIENCE, listed).await.expect("the watch has listed");
    let page = service.health("/metrics").await.1;
    service.app.stop().await;
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_has_nothing_to_say_about_the_metrics() {
    let page = page().await;
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        eprintln!("skipped: needs promtool");
        return;
    };
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}\n{page}");
}

/// `docs/service.md` lists exactly the existing metrics; metrics marked † appear with their first event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_is_documented() {
    let page = page().await;
    let scraped: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next())).collect();
    let text = include_str!("../../../docs/service.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `").filter(|_| line.contains(" | ")));
    let rows = rows.filter(|row| ["longhaul_", "process_", "jemalloc_"].iter().any(|prefix| row.starts_with(prefix)));
    let (mut documented, mut certain) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let name = row.split(['`', '{']).next().unwrap();
        documented.insert(name);
        if !row.contains('†') {
            certain.insert(name);
        }
    }
    let without_row: Vec<_> = scraped.difference(&documented).collect();
    assert!(without_row.is_empty(), "without a row in docs/service.md: {without_row:?}");
    let not_scraped: Vec<_> = certain.difference(&scraped).collect();
    assert!(not_scraped.is_empty(), "in docs/service.md and not on the page: {not_scraped:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrapers_get_the_format_that_they_read_and_labels_are_bounded() {
    let registry = Registry::start().await;
    let service = Service::start("admission", &config(&registry, ""), Options::default()).await;
    allowed(&service.webhook(Protocol::Http1), &format!("{}/absent:1", registry.host())).await;
    let page = service.health("/metrics").await.1;
    assert!(page.contains("longhaul_admission_http_requests_total{code=\"200\"} 1\n"), "{page}");
    assert!(page.contains("longhaul_build_info{version=\"") && !page.contains("# EOF"), "{page}");
    assert!(page.contains("allocator=\"jemalloc\"") && page.contains("\njemalloc_allocated_bytes "), "{page}");
    assert!(page.contains("longhaul_certificate_expiry_timestamp_seconds{certificate=\"server\"} "), "{page}");
    // The registries of the configuration are few, and their author chose their names.
    let mut lines = page.lines().filter(|line| !line.starts_with("longhaul_registry_breaker"));
    assert!(!lines.any(|line| line.contains("absent") || line.contains("127.0.0.1")), "neither images nor addresses");
    assert!(page.contains(&format!("longhaul_registry_breakers_open{{registry=\"{}\"}} 0\n", registry.host())));
    service.app.stop().await;
}

/// `?verbose` lists every check, as kube-apiserver's endpoints do.
#[tokio::test]
async fn health_says_what_it_looked_at() {
    let registry = Registry::start().await;
    let service = Service::start("admission", &config(&registry, ""), Options::default()).await;
    assert_eq!(service.health("/readyz").await, (200, "ok\n".into()));
    let (code, text) = service.health("/readyz?verbose").await;
    assert_eq!(code, 200);
    let lines: Vec<_> = text.lines().collect();
    let checks =
        ["runtime", "config", "certificate", "listener", "reviews", "validators"].map(|name| format!("[+]{name}: ok"));
    assert_eq!(lines, checks);
    service.app.stop().await;
}

/// A changed policy takes effect in a running process. An unusable policy file changes nothing, is reported, and does
/// not make the process unready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_configuration_is_taken_and_a_broken_one_is_not() {
    let registry = Registry::start().await;
    let text = config(&registry, "");
    let mut service = Service::start("admission", &text, Options::default()).await;
    let path = service.folder.path().join("service.yaml");
    std::fs::write(&path, &text).unwrap();
    service.app.follow_config(path.clone());
    let client = service.webhook(Protocol::Http1);
    let (good, absent) = (format!("{}/good:1", registry.host()), format!("{}/absent:1", registry.host()));
    assert!(allowed(&client, &good).await && !allowed(&client, &absent).await);

    let shows = async |line: &str| {
        service.app.look_at_files();
        let waiting = async { while !service.health("/metrics").await.1.contains(line) {} };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain for {line}"));
    };
    let detect = "policy: {rules: [{pattern: \"*\", mode: detect}]}\n";
    std::fs::write(&path, config(&registry, detect)).unwrap();
    shows("longhaul_config_generation 2\n").await;
    assert!(allowed(&client, &absent).await, "only reported now");
    let before = registry.requests.load(std::sync::atomic::Ordering::Relaxed);
    assert!(allowed(&client, &good).await);
    let after = registry.requests.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after, before, "what the resolver knew, it still knows");

    std::fs::write(&path, "policy: {rulez: []}\n").unwrap();
    shows("longhaul_config_last_reload_successful 0\n").await;
    assert!(allowed(&client, &absent).await, "the old one stays");
    assert_eq!(service.health("/readyz").await.0, 200);
    let (_, verbose) = service.health("/readyz?verbose").await;
    assert!(verbose.contains("[!]config: the file is refused, the old configuration stays: "), "{verbose}");
    assert!(verbose.contains("unknown key `rulez`; did you mean `rules`?"), "{verbose}");

    std::fs::write(&path, config(&registry, "log: {level: debug}\n")).unwrap();
    shows("longhaul_config_restart_needed 1\n").await;
    shows("longhaul_config_generation 3\n").await;
    assert!(!allowed(&client, &absent).await, "the policy is back");
    let (_, verbose) = service.health("/readyz?verbose").await;
    assert!(verbose.contains("waiting for a restart: log\n"), "{verbose}");
    service.app.stop().await;
}
