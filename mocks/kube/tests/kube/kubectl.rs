//! `kubectl`, the oldest and the newest that is there, unmodified.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;

use crate::client::World;

/// One command of `kubectl`, with its own discovery.
const PATIENCE: Duration = Duration::from_secs(30);

struct Kubectl {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Kubectl {
    fn new(program: &Path, world: &World) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), world.server.kubeconfig("harness").unwrap()).unwrap();
        std::fs::write(home.path().join("package.yaml"), PACKAGE).unwrap();
        std::fs::write(home.path().join("deployment.yaml"), DEPLOYMENT).unwrap();
        Self { program: program.to_owned(), home }
    }

    async fn run(&self, arguments: &str) -> Output {
        let command = Command::new(&self.program)
            .args(arguments.split_whitespace())
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("config"))
            .current_dir(self.home.path())
            .kill_on_drop(true)
            .output();
        tokio::time::timeout(PATIENCE, command).await.expect("kubectl answers in time").unwrap()
    }

    /// The output of a command that must succeed.
    async fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} {arguments}\n{out}\n{err}", self.program.display());
        out.into_owned()
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.home.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        std::fs::write(path, text.replace(from, to)).unwrap();
    }
}

const PACKAGE: &str = "
apiVersion: longhaul.dev/v1
kind: Package
metadata: {name: one, namespace: demo}
spec: {image: 'nginx:1'}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: 'nginx:1', ports: [{containerPort: 80}]}]}
";

const DRAIN: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";

/// The oldest and the newest; empty when there is none. Several versions may be kept beside the program that a link in
/// `PATH` leads to, as `kubectl.1.27` and so on.
fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let Some(plain) = folders.iter().map(|folder| folder.join("kubectl")).find(|file| file.is_file()) else {
        return Vec::new();
    };
    let target = plain.canonicalize().unwrap();
    folders.extend(target.parent().map(Path::to_owned));
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let minor = entry.file_name().to_str()?.strip_prefix("kubectl.1.")?.parse().ok()?;
        Some((minor, entry.path()))
    });
    let versions: std::collections::BTreeMap<u32, PathBuf> = numbered.collect();
    let ends = versions.first_key_value().into_iter().chain(versions.last_key_value().filter(|_| versions.len() > 1));
    let found: Vec<PathBuf> = ends.map(|(_, path)| path.clone()).collect();
    if found.is_empty() { vec![plain] } else { found }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_unmodified() {
    let programs = programs();
    if programs.is_empty() {
        eprintln!("skipped: needs kubectl");
        return;
    }
    for program in programs {
        let world = World::start().await;
        let kubectl = Kubectl::new(&program, &world);
        create_and_read(&kubectl).await;
        apply_and_change(&kubectl).await;
        watch_and_wait(&kubectl).await;
        explain(&kubectl).await;
        take_away(&kubectl).await;
        world.server.shutdown().await;
    }
}

/// A node is emptied as far as the budget allows, and further when it allows more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_drains_as_fast_as_a_budget_allows() {
    let Some(program) = programs().pop() else {
        eprintln!("skipped: needs kubectl");
        return;
    };
    let world = World::start().await;
    let kubectl = Kubectl::new(&program, &world);
    std::fs::write(kubectl.home.path().join("drain.yaml"), DRAIN).unwrap();
    kubectl.ok("apply -f drain.yaml").await;
    let status = |object: &str, status: &str| {
        format!(r#"patch {object} --subresource=status --type=merge -p {{"status":{status}}}"#)
    };
    for pod in ["one", "two"] {
        let ready = r#"{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}"#;
        kubectl.ok(&status(&format!("pod {pod}"), ready)).await;
    }
    let counted = r#"{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1}"#;
    kubectl.ok(&status("pdb web", counted)).await;
    let raising = async {
        let left = "get pdb web -o jsonpath={.status.disruptionsAllowed}";
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while kubectl.ok(left).await != "0" {
            assert!(tokio::time::Instant::now() < deadline, "nothing was evicted");
        }
        assert_eq!(kubectl.ok("get pods -o name").await.lines().count(), 1, "the other is guarded");
        kubectl.ok(&status("pdb web", r#"{"disruptionsAllowed":1}"#)).await;
    };
    let (drained, ()) = tokio::join!(kubectl.run("drain n1 --force --grace-period=0 --timeout=25s"), raising);
    let (out, err) = (String::from_utf8_lossy(&drained.stdout), String::from_utf8_lossy(&drained.stderr));
    assert!(drained.status.success() && out.contains("node/n1 drained"), "{out}\n{err}");
    assert!(err.contains("Cannot evict pod as it would violate the pod's disruption budget."), "{err}");
    assert_eq!(kubectl.ok("get pods -o name").await, "");
    let spent = kubectl.ok("get pdb web -o jsonpath={.status.conditions[0].reason}").await;
    assert_eq!(spent, "InsufficientPods");
    world.server.shutdown().await;
}

async fn create_and_read(kubectl: &Kubectl) {
    assert!(kubectl.ok("version").await.contains("longhaul"));
    kubectl.ok("create namespace demo").await;
    kubectl.ok("create configmap a -n demo --from-literal=x=1").await;
    kubectl.ok("create secret generic s -n demo --from-literal=x=1").await;
    kubectl.ok("create serviceaccount sa -n demo").await;
    kubectl.ok("create deployment made -n demo --image=nginx:1 --replicas=2 --port=80").await;
    kubectl.ok("create role r -n demo --verb=get,list --resource=pods").await;
    kubectl.ok("create rolebinding rb -n demo --role=r --serviceaccount=demo:sa").await;
    let image = "{.spec.template.spec.containers[0].image},{.spec.replicas},{.spec.selector.matchLabels.app}";
    assert_eq!(kubectl.ok(&format!("get deploy made -n demo -o jsonpath={image}")).await, "nginx:1,2,made");
    assert_eq!(kubectl.ok("get secret s -n demo -o jsonpath={.data.x},{.type}").await, "MQ==,Opaque");
    assert_eq!(kubectl.ok("get role r -n demo -o jsonpath={.rules[0].verbs}").await, r#"["get","list"]"#);
    assert_eq!(kubectl.ok("get configmap a -n demo -o jsonpath={.data.x}").await, "1");
    let table = kubectl.ok("get configmaps,deployments -n demo").await;
    assert!(table.contains("NAME") && table.contains("configmap/a") && table.contains("deployment.apps/made"));
    assert!(kubectl.ok("describe deployment made -n demo").await.contains("2 desired"));
    assert!(kubectl.ok("api-resources").await.contains("packages"));
    assert_eq!(kubectl.ok("auth can-i create pods").await.trim(), "yes");
    let missing = kubectl.run("get configmap none -n demo").await;
    assert!(String::from_utf8_lossy(&missing.stderr).contains("(NotFound)"));
}

async fn apply_and_change(kubectl: &Kubectl) {
    assert!(kubectl.ok("apply -f package.yaml -f deployment.yaml").await.contains("deployment.apps/web created"));
    assert!(kubectl.ok("apply -f package.yaml -f deployment.yaml").await.contains("deployment.apps/web unchanged"));
    kubectl.edit("package.yaml", "nginx:1", "nginx:2");
    kubectl.edit("deployment.yaml", "nginx:1", "nginx:2");
    let configured = kubectl.ok("apply -f package.yaml -f deployment.yaml").await;
    assert_eq!(configured.matches("configured").count(), 2, "{configured}");
    let image = "{.spec.template.spec.containers[*].image}";
    assert_eq!(kubectl.ok(&format!("get deploy web -n demo -o jsonpath={image}")).await, "nginx:2");
    assert!(kubectl.ok("get packages -A").await.contains("nginx:2"));
    kubectl.ok("scale deployment web -n demo --replicas=5").await;
    kubectl.ok("set image deployment/web -n demo c=nginx:3").await;
    kubectl.ok("label deployment web -n demo tier=front").await;
    kubectl.ok("annotate package one -n demo note=x").await;
    kubectl.ok(r#"patch deployment web -n demo -p {"spec":{"minReadySeconds":3}}"#).await;
    let fields = "{.spec.replicas},{.spec.minReadySeconds},{.metadata.labels.tier}";
    assert_eq!(kubectl.ok(&format!("get deploy web -n demo -o jsonpath={fields}")).await, "5,3,front");
    assert_eq!(kubectl.ok("get deploy -n demo -l tier=front -o name").await.trim(), "deployment.apps/web");
    kubectl.ok("apply --server-side --force-conflicts -f deployment.yaml").await;
    let output = kubectl.run("rollout history deployment/web -n demo").await;
    assert!(output.status.success());
}

async fn watch_and_wait(kubectl: &Kubectl) {
    let watching = kubectl.run("get packages -n demo -w --request-timeout=3s");
    let writing = async {
        kubectl.ok(r#"patch package one -n demo --type=merge -p {"spec":{"image":"nginx:9"}}"#).await;
        kubectl
            .ok(r#"patch package one -n demo --type=merge --subresource=status -p {"status":{"phase":"Ready"}}"#)
            .await;
        kubectl.ok("wait package/one -n demo --for=jsonpath={.status.phase}=Ready --timeout=5s").await;
    };
    let (watched, ()) = tokio::join!(watching, writing);
    let watched = String::from_utf8_lossy(&watched.stdout).into_owned();
    assert!(watched.contains("nginx:9"), "{watched}");
    kubectl.ok("wait crd/packages.longhaul.dev --for=condition=Established --timeout=5s").await;
}

async fn explain(kubectl: &Kubectl) {
    let pod = kubectl.ok("explain pod.spec").await;
    for part in
        ["<PodSpec>", "What a pod runs", "containers\t<[]Container> -required-", "nodeSelector\t<map[string]string>"]
    {
        assert!(pod.contains(part), "{part}: {pod}");
    }
    let template = kubectl.ok("explain deployment.spec.template").await;
    assert!(template.contains("<PodTemplateSpec>") && template.contains("metadata\t<ObjectMeta>"), "{template}");
    let deep = kubectl.ok("explain deployment.spec.template.spec.containers.livenessProbe.httpGet.port").await;
    assert!(deep.contains("<IntOrString>"), "{deep}");
    assert!(kubectl.ok("explain event --api-version=events.k8s.io/v1").await.contains("regarding"));
    assert!(kubectl.ok("explain crd.spec.versions").await.contains("served"));
    let package = kubectl.ok("explain package.metadata.labels").await;
    assert!(package.contains("KIND:") && package.contains("Package"), "{package}");
    assert!(!kubectl.run("explain pod.spec.nothing").await.status.success());
}

async fn take_away(kubectl: &Kubectl) {
    assert!(kubectl.ok("delete -f package.yaml").await.contains("deleted"));
    kubectl.ok("delete namespace demo --timeout=10s").await;
    assert_eq!(kubectl.ok("get deployments -A -o name").await, "");
}
