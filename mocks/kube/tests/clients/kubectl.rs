//! Tests of everyday commands with the oldest and the newest `kubectl` on the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::world::{PATIENCE, World};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: demo, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: 'nginx:1', ports: [{containerPort: 80}]}
";

const PACKAGE: &str = "
apiVersion: longhaul.dev/v1
kind: Package
metadata: {name: one, namespace: demo}
spec: {image: 'nginx:1', replicas: 1}
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

struct Kubectl<'a> {
    program: PathBuf,
    home: tempfile::TempDir,
    world: &'a World,
}

impl<'a> Kubectl<'a> {
    async fn new(program: &Path, world: &'a World) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config"), world.kubeconfig()).unwrap();
        let kubectl = Self { program: program.to_owned(), home, world };
        kubectl.ok("create namespace demo").await;
        kubectl.ok("config set-context --current --namespace=demo").await;
        kubectl.file("package.yaml", PACKAGE);
        kubectl.file("deployment.yaml", DEPLOYMENT);
        kubectl
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", self.home.path().join("config"));
        command.args(arguments).current_dir(self.home.path()).kill_on_drop(true).stdin(Stdio::null());
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output();
        tokio::time::timeout(PATIENCE, output).await.unwrap_or_else(|_| panic!("no end: {arguments:?}")).unwrap()
    }

    /// Runs a kubectl command that must succeed, written as in a shell but without quotes; returns the output.
    async fn ok(&self, line: &str) -> String {
        self.words(&line.split_whitespace().collect::<Vec<_>>()).await
    }

    async fn words(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} {arguments:?}\n{out}\n{err}", self.program.display());
        out.trim().to_owned()
    }

    /// Runs a kubectl command that must fail; returns the error output.
    async fn fails(&self, line: &str) -> String {
        let output = self.run(&line.split_whitespace().collect::<Vec<_>>()).await;
        assert!(!output.status.success(), "{} {line}", self.program.display());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    async fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("{line} -o json")).await).unwrap()
    }
}

/// The oldest and the newest `kubectl` on the machine. Searches for `kubectl` and `kubectl.1.*` in the folders of
/// `PATH` and in the folders to which links in them lead, where packages keep older versions.
fn programs() -> Vec<PathBuf> {
    let mut folders = installer::folders();
    let links: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.join("kubectl").canonicalize().ok()).collect();
    folders.extend(links.iter().filter_map(|link| link.parent()).map(Path::to_owned));
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let minor = entry.file_name().to_str()?.strip_prefix("kubectl.1.")?.parse().ok()?;
        Some((minor, entry.path()))
    });
    let versions: BTreeMap<u32, PathBuf> = numbered.collect();
    let ends = versions.first_key_value().into_iter().chain(versions.last_key_value().filter(|_| versions.len() > 1));
    let found: Vec<PathBuf> = ends.map(|(_, path)| path.clone()).collect();
    if found.is_empty() { installer::on_path("kubectl").into_iter().collect() } else { found }
}

/// Runs a test with each version of kubectl, each against its own server.
async fn each(test: impl AsyncFn(&Kubectl<'_>)) {
    let programs = programs();
    if programs.is_empty() {
        println!("skipped: needs kubectl");
    }
    for program in programs {
        let world = World::start().await;
        let kubectl = Kubectl::new(&program, &world).await;
        test(&kubectl).await;
        drop(kubectl);
        world.server.shutdown().await;
    }
}

#[tokio::test]
async fn objects_are_made_changed_and_taken_away() {
    each(async |kubectl| {
        assert!(kubectl.ok("version").await.contains("longhaul"));
        kubectl.ok("create configmap a --from-literal=x=1").await;
        kubectl.ok("create secret generic s --from-literal=x=1").await;
        kubectl.ok("create serviceaccount sa").await;
        kubectl.ok("create deployment made --image=nginx:1 --replicas=2 --port=80").await;
        kubectl.ok("create role r --verb=get,list --resource=pods").await;
        kubectl.ok("create rolebinding rb --role=r --serviceaccount=demo:sa").await;
        let image = "{.spec.template.spec.containers[0].image},{.spec.replicas},{.spec.selector.matchLabels.app}";
        assert_eq!(kubectl.ok(&format!("get deploy made -o jsonpath={image}")).await, "nginx:1,2,made");
        assert_eq!(kubectl.ok("get secret s -o jsonpath={.data.x},{.type}").await, "MQ==,Opaque");
        assert_eq!(kubectl.ok("get role r -o jsonpath={.rules[0].verbs}").await, r#"["get","list"]"#);
        assert!(kubectl.fails("get configmap none").await.contains("(NotFound)"));
        let both = "apply -f package.yaml -f deployment.yaml";
        assert!(kubectl.ok(both).await.contains("deployment.apps/web created"));
        assert!(kubectl.ok(both).await.contains("deployment.apps/web unchanged"));
        kubectl.file("package.yaml", &PACKAGE.replace("nginx:1", "nginx:2"));
        kubectl.file("deployment.yaml", &DEPLOYMENT.replace("nginx:1", "nginx:2"));
        assert_eq!(kubectl.ok(both).await.matches("configured").count(), 2);
        assert!(kubectl.ok("get packages -A").await.contains("nginx:2"));
        kubectl.ok("set image deployment/web c=nginx:3").await;
        kubectl.ok(r#"patch deployment web -p {"spec":{"minReadySeconds":3}}"#).await;
        let fields = "{.spec.minReadySeconds},{.spec.template.spec.containers[0].image}";
        assert_eq!(kubectl.ok(&format!("get deploy web -o jsonpath={fields}")).await, "3,nginx:3");
        kubectl.ok("wait crd/packages.longhaul.dev --for=condition=Established --timeout=5s").await;
        assert!(kubectl.ok("delete -f package.yaml").await.contains("deleted"));
        kubectl.ok("delete namespace demo --timeout=10s").await;
        assert_eq!(kubectl.ok("get deployments -A -o name").await, "");
    })
    .await;
}

#[tokio::test]
async fn kinds_are_explained() {
    each(async |kubectl| {
        let pod = kubectl.ok("explain pod.spec").await;
        for part in [
            "<PodSpec>",
            "What a pod runs",
            "containers\t<[]Container> -required-",
            "nodeSelector\t<map[string]string>",
        ] {
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
        kubectl.fails("explain pod.spec.nothing").await;
    })
    .await;
}

/// `kubectl drain` evicts as many pods as the `PodDisruptionBudget` allows, and more when the budget allows more.
#[tokio::test]
#[ignore = "slow"]
async fn a_node_is_drained_as_fast_as_a_budget_allows() {
    each(async |kubectl| {
        kubectl.file("drain.yaml", DRAIN);
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
        let (drained, ()) =
            tokio::join!(kubectl.run(&["drain", "n1", "--force", "--grace-period=0", "--timeout=25s"]), raising);
        let (out, err) = (String::from_utf8_lossy(&drained.stdout), String::from_utf8_lossy(&drained.stderr));
        assert!(drained.status.success() && out.contains("node/n1 drained"), "{out}\n{err}");
        assert!(err.contains("Cannot evict pod as it would violate the pod's disruption budget."), "{err}");
        assert_eq!(kubectl.ok("get pods -o name").await, "");
        let spent = kubectl.ok("get pdb web -o jsonpath={.status.conditions[0].reason}").await;
        assert_eq!(spent, "InsufficientPods");
    })
    .await;
}

#[tokio::test]
async fn objects_are_shown_in_every_format() {
    each(async |kubectl| {
        kubectl.ok("apply -f deployment.yaml -f package.yaml").await;
        let wide = kubectl.ok("get deployments -o wide").await;
        let (head, row) = wide.split_once('\n').unwrap();
        for column in ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"] {
            assert!(head.contains(column), "{column} in {head}");
        }
        assert!(row.starts_with("web ") && row.contains("0/2") && row.contains("nginx:1"), "{row}");
        let yaml = kubectl.ok("get package one -o yaml").await;
        assert!(yaml.contains("kind: Package") && yaml.contains("image: nginx:1") && !yaml.contains("managedFields"));
        assert!(
            kubectl.ok("get package one -o yaml --show-managed-fields").await.contains("kubectl-client-side-apply")
        );
        let list = kubectl.json("get deployments,packages").await;
        assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("List"), 2));
        assert_eq!(kubectl.ok("get pkg -o custom-columns=:spec.image --no-headers").await, "nginx:1");
        assert_eq!(kubectl.ok("get deploy web -o go-template={{.spec.replicas}}").await, "2");
        let labels = kubectl.ok("get deployments --show-labels -L app").await;
        assert!(labels.contains("LABELS") && labels.contains("app=web"), "{labels}");
        assert!(kubectl.ok("get all").await.contains("deployment.apps/web"));
        let raw = kubectl.ok("get --raw /apis/longhaul.dev/v1/namespaces/demo/packages/one").await;
        assert_eq!(serde_json::from_str::<Value>(&raw).unwrap()["spec"]["image"], "nginx:1");
        assert!(kubectl.ok("get --raw /readyz").await.contains("ok"));
        let described = kubectl.ok("describe deployment web").await;
        for part in ["Selector:", "app=web", "StrategyType:", "RollingUpdate", "Image:", "nginx:1", "Events:"] {
            assert!(described.contains(part), "{part} in {described}");
        }
        let described = kubectl.ok("describe package one").await;
        assert!(described.contains("API Version:  longhaul.dev/v1") && described.contains("nginx:1"), "{described}");
        assert!(kubectl.ok("describe namespace demo").await.contains("Active"));
    })
    .await;
}

#[tokio::test]
async fn all_three_patches_and_the_scale_work() {
    each(async |kubectl| {
        kubectl.ok("apply -f deployment.yaml -f package.yaml").await;
        let side = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"b:1"}]}}}}"#;
        kubectl.words(&["patch", "deployment", "web", "--type=strategic", "-p", side]).await;
        let both = kubectl.json("get deployment web").await;
        assert_eq!(both["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2, "merged by name");
        kubectl.words(&["patch", "deployment", "web", "--type=merge", "-p", side]).await;
        let replaced = kubectl.json("get deployment web").await;
        assert_eq!(replaced["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1, "replaced");
        let tested = r#"[{"op":"test","path":"/spec/image","value":"nginx:1"},{"op":"replace","path":"/spec/image","value":"nginx:2"}]"#;
        kubectl.words(&["patch", "package", "one", "--type=json", "-p", tested]).await;
        let refused = kubectl.run(&["patch", "package", "one", "--type=json", "-p", tested]).await;
        assert!(!refused.status.success(), "the test does not hold any more");
        let refused = kubectl.run(&["patch", "package", "one", "--type=strategic", "-p", "{}"]).await;
        assert!(!refused.status.success(), "custom resources have no strategic merge");
        let status = r#"{"status":{"phase":"Ready","replicas":1},"spec":{"image":"ignored"}}"#;
        kubectl.words(&["patch", "package", "one", "--type=merge", "--subresource=status", "-p", status]).await;
        let package = kubectl.json("get package one").await;
        assert_eq!((&package["status"]["phase"], &package["spec"]["image"]), (&json!("Ready"), &json!("nginx:2")));
        kubectl.ok("scale deployment web --replicas=5 --current-replicas=2").await;
        assert!(kubectl.fails("scale deployment web --replicas=6 --current-replicas=2").await.contains("Expected replicas"));
        kubectl.ok("scale package one --replicas=7").await;
        assert_eq!(kubectl.ok("get package one -o jsonpath={.spec.replicas}").await, "7");
        kubectl.ok("get deployment web --subresource=scale -o name").await;
        kubectl.ok("set env deployment/web MODE=soak").await;
        kubectl.ok("set resources deployment web --limits=cpu=200m,memory=64Mi").await;
        let container = &kubectl.json("get deployment web").await["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["env"], json!([{"name": "MODE", "value": "soak"}]));
        assert_eq!(container["resources"]["limits"]["cpu"], "200m");
    })
    .await;
}

#[tokio::test]
async fn applying_on_the_server_tells_whose_field_it_is() {
    each(async |kubectl| {
        assert!(
            kubectl.ok("apply --server-side -f deployment.yaml -f package.yaml").await.contains("serverside-applied")
        );
        kubectl.file("mine.yaml", &DEPLOYMENT.replace("replicas: 2", "replicas: 3"));
        let conflict = kubectl.fails("apply --server-side --field-manager=other -f mine.yaml").await;
        assert!(conflict.contains("conflict with \"kubectl\"") && conflict.contains(".spec.replicas"), "{conflict}");
        kubectl.ok("apply --server-side --field-manager=other --force-conflicts -f mine.yaml").await;
        let fields = kubectl.ok("get deployment web -o json --show-managed-fields").await;
        let fields: Value = serde_json::from_str(&fields).unwrap();
        let managers: Vec<&str> = fields["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|m| m["manager"].as_str())
            .collect();
        assert_eq!(managers, ["kubectl", "other"]);
        assert_eq!(fields["spec"]["replicas"], 3);
        // A client-side apply of the same file after a server-side one is the usual way back.
        kubectl.ok("apply -f mine.yaml").await;
        let preview = kubectl.ok("apply --dry-run=server -o json -f deployment.yaml").await;
        assert_eq!(serde_json::from_str::<Value>(&preview).unwrap()["spec"]["replicas"], 2);
        assert_eq!(
            kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").await,
            "3",
            "a dry run changes nothing"
        );
        kubectl.ok("replace -f deployment.yaml").await;
        assert_eq!(kubectl.ok("get deployment web -o jsonpath={.spec.replicas}").await, "2");
        assert!(kubectl.fails("create -f deployment.yaml").await.contains("AlreadyExists"));
    })
    .await;
}

#[tokio::test]
#[ignore = "slow"]
async fn deletion_cascades_as_asked() {
    each(async |kubectl| {
        for mode in ["background", "foreground", "orphan"] {
            kubectl.ok("apply -f deployment.yaml").await;
            let uid = kubectl.ok("get deployment web -o jsonpath={.metadata.uid}").await;
            let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid,
                "blockOwnerDeletion": true});
            let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": mode, "ownerReferences": [owner]}});
            kubectl.file("child.json", &child.to_string());
            kubectl.ok("create -f child.json").await;
            kubectl.ok(&format!("delete deployment web --cascade={mode} --timeout=10s")).await;
            assert!(kubectl.fails("get deployment web").await.contains("NotFound"));
            if mode == "orphan" {
                let owners = kubectl.ok("get configmap orphan -o jsonpath={.metadata.ownerReferences}").await;
                assert_eq!(owners, "", "let go, not deleted");
            } else {
                kubectl.ok(&format!("wait configmap/{mode} --for=delete --timeout=10s")).await;
            }
        }
        shared_dependents_stay(kubectl).await;
        for name in ["a", "b"] {
            kubectl.ok(&format!("create configmap {name}")).await;
            kubectl.ok(&format!("label configmap {name} set=x")).await;
        }
        assert_eq!(kubectl.ok("delete configmaps -l set=x").await.lines().count(), 2);
        kubectl.ok("apply -f package.yaml").await;
        let hold = r#"{"metadata":{"finalizers":["longhaul.dev/hold"]}}"#;
        kubectl.words(&["patch", "package", "one", "--type=merge", "-p", hold]).await;
        kubectl.ok("delete package one --wait=false").await;
        assert!(!kubectl.ok("get package one -o jsonpath={.metadata.deletionTimestamp}").await.is_empty());
        kubectl
            .words(&[
                "patch",
                "package",
                "one",
                "--type=json",
                "-p",
                r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
            ])
            .await;
        kubectl.ok("wait package/one --for=delete --timeout=10s").await;
    })
    .await;
}

/// A foreground deletion of one of an object's two owners removes the reference to that owner, but not the object.
async fn shared_dependents_stay(kubectl: &Kubectl<'_>) {
    let mut owners = Vec::new();
    for name in ["first", "second"] {
        kubectl.ok(&format!("create configmap {name}")).await;
        let uid = kubectl.ok(&format!("get configmap {name} -o jsonpath={{.metadata.uid}}")).await;
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid,
            "blockOwnerDeletion": true}));
    }
    let child = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "shared", "ownerReferences": owners}});
    kubectl.file("child.json", &child.to_string());
    kubectl.ok("create -f child.json").await;
    kubectl.ok("delete configmap first --cascade=foreground --timeout=10s").await;
    let left = kubectl.ok("get secret shared -o jsonpath={.metadata.ownerReferences[*].name}").await;
    assert_eq!(left, "second");
    kubectl.ok("delete configmap second --cascade=foreground --timeout=10s").await;
    kubectl.ok("wait secret/shared --for=delete --timeout=10s").await;
}

#[tokio::test]
async fn watching_and_waiting_end_when_it_is_so() {
    each(async |kubectl| {
        kubectl.ok("apply -f package.yaml -f deployment.yaml").await;
        let mut watch = kubectl
            .command(&["get", "packages", "-w", "--output-watch-events", "--no-headers"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        let mut words = async || {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
            line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words().await, ["ADDED", "one", "nginx:1"]);
        let image = r#"{"spec":{"image":"nginx:2"}}"#;
        kubectl.words(&["patch", "package", "one", "--type=merge", "-p", image]).await;
        assert_eq!(words().await, ["MODIFIED", "one", "nginx:2"]);
        kubectl.ok("delete package one").await;
        assert_eq!(words().await, ["DELETED", "one", "nginx:2"]);
        watch.kill().await.unwrap();
        kubectl.ok("apply -f package.yaml").await;
        let patient = ["wait", "package/one", "--for=jsonpath={.status.phase}=Ready", "--timeout=20s"];
        let ready = async {
            kubectl.world.watched().await;
            let status = r#"{"status":{"phase":"Ready"}}"#;
            kubectl.words(&["patch", "package", "one", "--type=merge", "--subresource=status", "-p", status]).await;
        };
        tokio::join!(kubectl.words(&patient), ready);
        let conditions = r#"{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,
            "availableReplicas":2,"conditions":[{"type":"Available","status":"True"}]}}"#;
        let waiting = kubectl.ok("wait deployment/web --for=condition=Available --timeout=20s");
        let available = async {
            kubectl.world.watched().await;
            kubectl
                .words(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", conditions])
                .await;
        };
        tokio::join!(waiting, available);
        assert!(kubectl.ok("rollout status deployment/web --timeout=10s").await.contains("successfully rolled out"));
        kubectl.ok("wait namespace/demo --for=jsonpath={.status.phase}=Active --timeout=5s").await;
        assert!(
            kubectl
                .fails("wait package/one --for=jsonpath={.status.phase}=Never --timeout=1s")
                .await
                .contains("timed out")
        );
    })
    .await;
}

#[tokio::test]
async fn rollouts_are_read_from_replica_sets() {
    each(async |kubectl| {
        kubectl.ok("apply -f deployment.yaml").await;
        let uid = kubectl.ok("get deployment web -o jsonpath={.metadata.uid}").await;
        for revision in ["1", "2"] {
            // As the deployment controller would make it.
            let labels = json!({"app": "web", "pod-template-hash": revision});
            let container = json!({"name": "c", "image": format!("nginx:{revision}")});
            let owner =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true});
            let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"name": format!("web-{revision}"), "labels": labels, "ownerReferences": [owner],
                    "annotations": {"deployment.kubernetes.io/revision": revision}},
                "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
            kubectl.file("set.json", &set.to_string());
            kubectl.ok("create -f set.json").await;
        }
        let history = kubectl.ok("rollout history deployment/web").await;
        let revisions: Vec<&str> = history.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(revisions.contains(&"1") && revisions.contains(&"2"), "{history}");
        assert!(kubectl.ok("rollout history deployment/web --revision=2").await.contains("nginx:2"));
        kubectl.ok("rollout restart deployment/web").await;
        let at = r"{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}";
        assert!(!kubectl.ok(&format!("get deployment web -o jsonpath={at}")).await.is_empty());
        kubectl.ok("rollout pause deployment/web").await;
        assert_eq!(kubectl.ok("get deployment web -o jsonpath={.spec.paused}").await, "true");
        kubectl.ok("rollout resume deployment/web").await;
        kubectl.ok("rollout undo deployment/web --to-revision=2").await;
        let image = "{.spec.template.spec.containers[0].image}";
        assert_eq!(kubectl.ok(&format!("get deployment web -o jsonpath={image}")).await, "nginx:2");
    })
    .await;
}

#[tokio::test]
async fn the_server_tells_who_may_what_and_what_there_is() {
    each(async |kubectl| {
        assert_eq!(kubectl.ok("auth can-i create pods").await, "yes");
        assert!(kubectl.ok("auth can-i --list").await.contains("Verbs"));
        kubectl.ok("create serviceaccount robot").await;
        let token = kubectl
            .ok("create token robot --duration=1h --audience=https://kubernetes.default.svc.cluster.local")
            .await;
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let uid = kubectl.ok("get serviceaccount robot -o jsonpath={.metadata.uid}").await;
        let account = json!({"namespace": "demo", "serviceaccount": {"name": "robot", "uid": uid}});
        assert_eq!(claims["kubernetes.io"], account);
        assert_eq!(claims["sub"], "system:serviceaccount:demo:robot");
        assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
        let whoami = kubectl.words(&["--token", &token, "get", "--raw", "/version"]).await;
        assert!(whoami.contains("gitVersion"), "the token opens the door");
        let resources = kubectl.ok("api-resources -o wide --api-group=longhaul.dev").await;
        assert!(
            resources.contains("pkg") && resources.contains("Package") && resources.contains("watch"),
            "{resources}"
        );
        assert!(kubectl.ok("api-resources --namespaced=false -o name").await.contains("namespaces"));
        let versions = kubectl.ok("api-versions").await;
        assert!(versions.lines().any(|line| line == "longhaul.dev/v1") && versions.contains("apps/v1"));
        let explained = kubectl.ok("explain package.spec.image").await;
        assert!(explained.contains("Where the image is."), "{explained}");
        assert!(kubectl.ok("cluster-info").await.contains("is running at"));
    })
    .await;
}

#[tokio::test]
async fn labels_annotations_and_selectors_pick_objects() {
    each(async |kubectl| {
        for name in ["a", "b", "c"] {
            kubectl.file("p.yaml", &PACKAGE.replace("one", name).replace("nginx:1", &format!("nginx:{name}")));
            kubectl.ok("apply -f p.yaml").await;
        }
        kubectl.ok("label packages a b tier=front").await;
        assert!(kubectl.fails("label package a tier=back").await.contains("overwrite"));
        kubectl.ok("label package a tier=back --overwrite").await;
        kubectl.ok("annotate packages --all note=x").await;
        let names = async |query: &str| {
            kubectl.ok(&format!("get packages {query} -o jsonpath={{.items[*].metadata.name}}")).await
        };
        assert_eq!(names("-l tier").await, "a b");
        assert_eq!(names("-l tier=front").await, "b");
        assert_eq!(names("-l !tier").await, "c");
        assert_eq!(names("-l tier!=front").await, "a c");
        assert_eq!(
            kubectl.words(&["get", "packages", "-l", "tier in (front,back)", "-o", "name"]).await.lines().count(),
            2
        );
        assert_eq!(names("--field-selector=metadata.name=c").await, "c");
        assert_eq!(names("--field-selector=spec.image=nginx:b").await, "b");
        assert_eq!(names("--field-selector=metadata.name!=c,metadata.namespace=demo").await, "a b");
        assert!(
            kubectl.fails("get packages --field-selector=spec.unknown=1").await.contains("field label not supported")
        );
        kubectl.ok("label package a tier-").await;
        assert_eq!(names("-l tier").await, "b");
        kubectl.ok("annotate packages --all note-").await;
        assert_eq!(names("--chunk-size=1").await, "a b c");
        assert!(kubectl.ok("get packages --sort-by=.spec.image").await.contains("nginx:a"));
    })
    .await;
}
