//! Compares workloads on the mock with those on a real kube-apiserver with kube-controller-manager: all fields of each
//! object, once no object changes any more. [`kubelet`] imitates scheduler and kubelet on the real server.

mod compared;
mod kubelet;
mod made;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::{Request, header};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::driver::{self, Endpoint, Raw};
use crate::servers;

const PROGRAM: &str = "kube-controller-manager";
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller,\
                           endpoints-controller,endpointslice-controller,persistentvolume-binder-controller";
const READY_AFTER: Duration = Duration::from_millis(200);
/// Time limit until no compared object changes any more. Controllers are slow just after their start.
const DEADLINE: Duration = Duration::from_mins(1);
/// Time without a write after which all objects count as at rest.
const REST: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);
/// The collections whose objects are compared.
const COMPARED: [&str; 12] = [
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/replicasets",
    "/apis/apps/v1/namespaces/default/statefulsets",
    "/apis/apps/v1/namespaces/default/daemonsets",
    "/apis/apps/v1/namespaces/default/controllerrevisions",
    "/apis/batch/v1/namespaces/default/jobs",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/endpoints",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
];

pub struct Api {
    endpoint: Endpoint,
    connections: JoinSet<()>,
}

impl Api {
    fn new(endpoint: &Endpoint) -> Self {
        Self { endpoint: endpoint.clone(), connections: JoinSet::new() }
    }

    /// Sends a request over a connection of its own.
    async fn ask(&mut self, method: &str, path: &str, content: &str, body: &Value) -> (u16, Value) {
        let mut sender = driver::connect(&self.endpoint, &mut self.connections).await.unwrap();
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.endpoint.token));
        let request = request.header(header::CONTENT_TYPE, content).header(header::ACCEPT, "application/json");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = sender.send_request(request.body(Full::from(body)).unwrap()).await.unwrap();
        let Raw::Answer { status, body, .. } = driver::whole(response).await.unwrap() else { unreachable!("no watch") };
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, "application/json", &Value::Null).await.1
    }

    async fn post(&mut self, path: &str, body: &Value) -> u16 {
        let (status, answer) = self.ask("POST", path, "application/json", body).await;
        assert!(matches!(status, 200 | 201 | 409), "POST {path}: {status} {answer}");
        status
    }

    async fn patch(&mut self, path: &str, body: &Value) -> u16 {
        self.ask("PATCH", path, "application/strategic-merge-patch+json", body).await.0
    }
}

/// Waits until no compared object has changed for [`REST`], and returns all compared objects.
async fn at_rest(api: &mut Api) -> Vec<Value> {
    let began = Instant::now();
    let (mut seen, mut since) = (Vec::new(), Instant::now());
    loop {
        let mut now = Vec::new();
        for path in COMPARED {
            now.push(api.get(path).await["items"].take());
        }
        if now != seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > REST {
            return seen;
        }
        assert!(began.elapsed() < DEADLINE, "it does not come to rest");
        tokio::time::sleep(POLL).await;
    }
}

/// Starts kube-controller-manager for a kube-apiserver. The process of kube-controller-manager ends on drop.
fn controllers(assets: &Path, folder: &Path, endpoint: &Endpoint, ca_pem: &str) -> tokio::process::Child {
    let (config, ca) = (folder.join("kubeconfig"), folder.join("ca.crt"));
    std::fs::write(&ca, ca_pem).unwrap();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("https://{}", endpoint.address), "certificate-authority": ca}}],
        "users": [{"name": "c", "user": {"token": endpoint.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    std::fs::write(&config, kubeconfig.to_string()).unwrap();
    let log = std::fs::File::create(folder.join("controllers.log")).unwrap();
    let mut command = tokio::process::Command::new(assets.join(PROGRAM));
    command.arg(format!("--kubeconfig={}", config.display())).args(["--leader-elect=false", "--secure-port=0"]);
    command.arg(format!("--controllers={CONTROLLERS}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn workloads_are_as_real_controllers_leave_them() {
    let assets = servers::assets();
    let Some(assets) = assets.filter(|assets| assets.join(PROGRAM).is_file()) else {
        println!("skipped: needs KUBEBUILDER_ASSETS with {PROGRAM}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (local, real) = servers::real(assets.clone(), folder.path(), &[]).await.unwrap();
    let (server, mock) = servers::mock_with(|config| {
        config.workloads = Some(mock_kube::Workloads { ready_after: READY_AFTER, ..Default::default() });
    })
    .await
    .unwrap();
    let mut manager = controllers(&assets, folder.path(), &real, local.access().ca_pem());
    let nodes = tokio::spawn(kubelet::run(Api::new(&real)));
    let (mut real, mut mock) = (Api::new(&real), Api::new(&mock));
    let mut found = Vec::new();
    for (path, body) in made::objects() {
        real.post(&path, &body).await;
        mock.post(&path, &body).await;
    }
    let steps = std::iter::once(("made".to_owned(), Vec::new())).chain(made::steps());
    for (step, patches) in steps {
        for (path, patch) in patches {
            let answers = (real.patch(&path, &patch).await, mock.patch(&path, &patch).await);
            assert_eq!(answers, (200, 200), "{path} {patch}");
        }
        // The effect of a deadline comes at another moment on each of them.
        let begun = Instant::now();
        found.extend(loop {
            let (of_real, of_mock) = (at_rest(&mut real).await, at_rest(&mut mock).await);
            let mut lines = Vec::new();
            for (path, (real, mock)) in COMPARED.iter().zip(compared::both(&of_real, &of_mock)) {
                let mut differences = Vec::new();
                compared::differences(&real, &mock, "", &mut differences);
                lines.extend(differences.into_iter().map(|difference| format!("{step}: {path}{difference}")));
            }
            if lines.is_empty() || begun.elapsed() > DEADLINE {
                break lines;
            }
        });
    }
    nodes.abort();
    let ended = manager.try_wait().unwrap();
    let _ = manager.kill().await;
    server.shutdown().await;
    local.stop().await;
    let log = std::fs::read_to_string(folder.path().join("controllers.log")).unwrap_or_default();
    assert!(ended.is_none(), "{PROGRAM} ended: {}", log.lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
