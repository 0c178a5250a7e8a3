//! Tests of the service's API that scales Deployments on the mock API server with RBAC. The rights in the service's
//! manifests are exactly those that the service uses. The submodules test soaks of this API.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Ended, program};

mod bugs;
mod library;

const PATIENCE: Duration = Duration::from_secs(30);

struct World {
    kube: mock_kube::Server,
    folder: tempfile::TempDir,
    program: PathBuf,
    address: std::net::SocketAddr,
    _service: Ended,
    images: Vec<mock_registry::Image>,
    _registry: mock_registry::Server,
}

fn account() -> String {
    let (namespace, name) = kind::manifests::REPLICAS_ACCOUNT;
    format!("system:serviceaccount:{namespace}:{name}")
}

fn kubectl(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(folder.join("admin")).args(arguments);
    command.env("HOME", folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn deployment(name: &str) -> String {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": name},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "r.test/app:1"}]},
        }},
    })
    .to_string()
}

/// Starts the API server and the service. Returns `None` if a program is missing.
async fn world() -> Option<World> {
    let program = program("longhaul-service")?;
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        println!("skipped: needs kubectl");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let authority = mock_pki::Authority::generate("longhaul").unwrap();
    let mut config = mock_kube::Config::new();
    config.authorization = mock_kube::Authorization::Rbac;
    let groups = vec!["system:serviceaccounts".to_owned(), "system:serviceaccounts:longhaul-system".to_owned()];
    let user = mock_kube::User { name: account(), groups, token: "replicas".into() };
    config.users = vec![mock_kube::User::admin("admin", "admin"), user];
    let kube = mock_kube::Server::start(config, &authority).await.unwrap();
    let registry = mock_registry::Server::start(mock_registry::Config::new()).await.unwrap();
    let images = registry.seed(&mock_registry::Population { count: 2, seed: 1, signed: false }).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("admin", &kube.kubeconfig("admin").unwrap());
    write("kubeconfig", &kube.kubeconfig(&account()).unwrap());
    for object in kind::manifests::replicas_rights(true).unwrap() {
        succeeded(&kubectl(folder.path(), &["create", "-f", "-"], &object.to_string()));
    }
    succeeded(&kubectl(folder.path(), &["create", "-f", "-"], &deployment("web")));
    let certs = Command::new(&program).args(["certs", "dev"]).arg(folder.path()).output().unwrap();
    succeeded(&certs);
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = format!(
        "replicas: {{listen: \"{address}\", certificate: server.crt, key: server.key, clientCA: [ca.crt], crl: [crl.pem], images: true}}\n\
         kubernetes: {{kubeconfig: kubeconfig}}\nresolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\nlog: {{format: json, level: debug}}\n",
        registry.host()
    );
    write("service.yaml", &settings);
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut command = Command::new(&program);
    command.args(["run", "--role", "replicas", "--config"]).arg(folder.path().join("service.yaml"));
    let service = Ended(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    Some(World { kube, folder, program, address, _service: service, images, _registry: registry })
}

impl World {
    /// Runs `longhaul-service replicas WORDS…`.
    fn call(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.arg("replicas").arg(words[0]).arg("--server").arg(format!("localhost:{}", self.address.port()));
        command.arg("--certs").arg(self.folder.path()).args(&words[1..]).output().unwrap()
    }

    fn until(&self, what: &str, words: &[&str], expected: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.call(words);
            if output.status.success() && String::from_utf8_lossy(&output.stdout) == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {}", String::from_utf8_lossy(&output.stderr));
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// All requests that the manifests allow, as `verb resource.group`. A role that is bound in one namespace counts as
/// bound in all namespaces.
fn rights(objects: &[Value]) -> BTreeSet<String> {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let mut found = BTreeSet::new();
    for rule in objects.iter().flat_map(|object| object["rules"].as_array().into_iter().flatten()) {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                found.extend(list(&rule["verbs"]).into_iter().map(|verb| format!("{verb} {resource}.{group}")));
            }
        }
    }
    found
}

/// The service uses every right of its manifests, and the API server refuses no request of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn the_rights_are_what_was_used() {
    let Some(world) = world().await else { return };
    let image = &world.images.iter().find(|image| image.digest.is_some()).expect("an image that exists").reference;
    world.until("the first list", &["get", "default/web"], "3\n");
    succeeded(&world.call(&["set", "default/web", "5", "--wait"]));
    succeeded(&world.call(&["set", "default/web", "9", "--dry-run"]));
    assert_eq!(succeeded(&world.call(&["list"])), "default\tweb\t5\n");
    let set = succeeded(&world.call(&["image", "default/web", "main", image]));
    assert!(set.contains("@sha256:"), "{set}");
    succeeded(&kubectl(world.folder.path(), &["create", "-f", "-"], &deployment("late")));
    world.until("what comes later", &["get", "default/late"], "3\n");
    succeeded(&kubectl(world.folder.path(), &["scale", "deployment/late", "--replicas=1"], ""));
    world.until("what others write", &["get", "default/late"], "1\n");
    let query = format!("/longhaul/rbac?user={}", account());
    let used = succeeded(&kubectl(world.folder.path(), &["get", "--raw", &query], ""));
    let used: Vec<Value> = serde_saphyr::from_multiple(&used).unwrap();
    let allowed = kind::manifests::replicas_rights(true).unwrap();
    assert_eq!(rights(&used), rights(&allowed));
    assert!(world.kube.refused(&account()).is_empty(), "{:?}", world.kube.refused(&account()));
}

/// Without its rights the service reports the API server's refusal and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn what_it_may_not_do_it_says() {
    let Some(world) = world().await else { return };
    world.until("the first list", &["get", "default/web"], "3\n");
    let role = json!([{"op": "remove", "path": "/rules/1"}]).to_string();
    succeeded(&kubectl(
        world.folder.path(),
        &["patch", "clusterrole", "longhaul-replicas", "--type=json", "-p", &role],
        "",
    ));
    let refused = world.call(&["set", "default/web", "7"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("502") && said.contains("403"), "{said}");
    world.until("nothing was changed", &["get", "default/web"], "3\n");
}
