//! Tests of a registered webhook that is not called: the health endpoint and a metric report this problem.

use std::time::{Duration, Instant};

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::json;
use service::run::Options;
use service_core::wire::Protocol;

use crate::admission::{ask, pod, review};
use crate::support::api::Api;
use crate::support::{Service, kubeconfig};

const WEBHOOK: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/longhaul-webhook";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/longhaul-webhook-calls";

/// Waits until the health note contains `what`; returns the value of the metric.
async fn metric_once_noted(service: &Service, what: &str) -> String {
    let begun = Instant::now();
    loop {
        let (status, text) = service.health("/readyz?verbose").await;
        if text.contains(what) {
            assert_eq!(status, 200, "never a reason to be unready: {text}");
            let metrics = service.health("/metrics").await.1;
            let row = metrics.lines().find(|line| line.starts_with("longhaul_admission_uncalled_seconds "));
            return row.unwrap().rsplit(' ').next().unwrap().to_owned();
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "{what}: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn who_is_registered_and_not_called_says_so_until_he_is() {
    let api = Api::start(false).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    api.world.lock().core.insert(LEASE.into(), json!({"metadata": {"resourceVersion": "1"}}));
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key,\n  registration: {{namespace: ours, quiet: 3s, interval: 200ms}}}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nkubernetes: {{kubeconfig: \"{}\"}}\nshutdown: {{drain: 50ms}}\n",
        path.display()
    );
    let service = Service::start("admission", &config, Options::default()).await;
    assert_ne!(
        metric_once_noted(&service, "[!]registration: mutatingwebhookconfigurations/longhaul-webhook does not exist")
            .await,
        "0"
    );

    let bundle = base64::engine::general_purpose::STANDARD.encode(service.authority());
    // Its certificate is for localhost alone, so the configuration calls it by URL: names cannot be checked then.
    let rules = json!([{"resources": ["pods"], "operations": ["CREATE"]}]);
    let selector = json!({"matchLabels": {"longhaul.dev/admission": "enabled"}});
    let with = |client: serde_json::Value| json!({"webhooks": [{"name": "w", "clientConfig": client, "rules": rules, "namespaceSelector": selector}]});
    let by_service = with(json!({"service": {"namespace": "n", "name": "s", "path": "/mutate"}, "caBundle": bundle}));
    api.world.lock().core.insert(WEBHOOK.into(), by_service);
    metric_once_noted(&service, "caBundle does not verify our certificate for s.n.svc").await;
    api.world.lock().core.insert(WEBHOOK.into(), with(json!({"url": "https://localhost/mutate", "caBundle": bundle})));
    assert_eq!(metric_once_noted(&service, "[+]registration: ok").await, "0");

    // No review comes, and none could: no namespace is selected. Then one is, with a Pod.
    api.world.lock().core.insert("/api/v1/namespaces".into(), json!({"items": []}));
    assert_eq!(
        metric_once_noted(&service, "[!]registration: no namespace is selected by longhaul.dev/admission=enabled")
            .await,
        "0"
    );
    let created = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    {
        let mut world = api.world.lock();
        world.core.insert("/api/v1/namespaces".into(), json!({"items": [{"metadata": {"name": "team"}}]}));
        let pods = json!({"items": [{"metadata": {"namespace": "team", "name": "web", "creationTimestamp": created}}]});
        world.core.insert("/api/v1/namespaces/team/pods".into(), pods);
    }
    assert_ne!(metric_once_noted(&service, "team/web was created in a namespace that is selected").await, "0");

    // A call to another replica is enough.
    let now = format!("{:.6}", Timestamp::now());
    api.world.lock().core.get_mut(LEASE).unwrap()["spec"] = json!({"renewTime": now});
    assert_eq!(metric_once_noted(&service, "[+]registration: ok").await, "0");
    ask(&service.webhook(Protocol::Http1), &review("v1", &pod(&[]))).await;
    assert_eq!(metric_once_noted(&service, "[+]registration: ok").await, "0");
    let begun = Instant::now();
    while api.world.lock().core[LEASE]["spec"]["renewTime"] == now {
        assert!(begun.elapsed() < crate::support::PATIENCE, "the others are not told");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    service.app.stop().await;
}
