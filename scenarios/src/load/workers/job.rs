//! Workers as one indexed Kubernetes Job, with one Pod each, in a temporary namespace.
//!
//! Owns the objects in the cluster and their removal. Uses `kubectl`, so that all features of a kubeconfig (plugins,
//! proxies) work. Messages of workers use stdin and stdout of their Pods (`kubectl attach`), in the same protocol as
//! other workers: the coordinator handles start, clocks and histograms. The Pods have no rights, because no token is
//! mounted.
//!
//! No object of the workers stays long after the coordinator has ended. When `kubectl attach` ends, the worker's stdin
//! closes and the worker exits. The Job has a deadline, and the cluster removes a finished Job. If the coordinator is
//! killed, an empty namespace with the label [`LABEL`] remains.

use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The label of all objects that are created for the workers.
pub(crate) const LABEL: &str = "longhaul.dev/load";
const NAME: &str = "worker";
/// The name of the worker image that is made from this program and loaded into nodes.
pub(crate) const OWN_IMAGE: &str = "localhost/longhaul-worker:loaded";
/// The user ID of the workers, without privileges.
const USER: u32 = 65532;
/// Longest wait until all Pods run. If the image is on the node, Pods start in seconds; a pull takes longer.
const RUNNING_LIMIT: Duration = Duration::from_mins(3);
const ASK_EVERY: Duration = Duration::from_millis(300);
/// Timeout of a kubectl command that does not wait for objects.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Timeout of the request to delete all objects, without waiting for their removal.
const REMOVE_LIMIT: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Seconds after which the cluster removes a finished Job.
const KEPT_S: u32 = 60;
/// Memory for a worker's plan, payloads and histograms at the highest rate, with reserve. There is no CPU limit,
/// because throttling would delay requests.
const MEMORY: &str = "512Mi";
const CPU: &str = "100m";

/// Where and how the Job runs.
#[derive(Debug, Clone)]
pub(crate) struct JobSettings {
    pub(crate) kubectl: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// An existing namespace, which is not removed. With `None`, a temporary namespace is created.
    pub(crate) namespace: Option<String>,
    /// An image whose entry point is `longhaul`.
    pub(crate) image: String,
    pub(crate) workers: u32,
    /// Time after which the cluster ends the Job.
    pub(crate) deadline: Duration,
    /// Key and value of a label for all created objects.
    pub(crate) mark: Option<(String, String)>,
}

/// A Job whose Pods run. Dropping this value deletes all its objects.
#[derive(Debug)]
pub(crate) struct Job {
    place: JobSettings,
    namespace: String,
    name: String,
}

impl Job {
    /// Creates the Job and waits until every Pod runs. If the Pods do not run in time, deletes all created objects.
    pub(crate) async fn start(place: JobSettings) -> Result<(Self, Vec<(Command, String)>)> {
        // The name must be unused and need not be secret.
        let id = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let namespace = place.namespace.clone().unwrap_or_else(|| format!("longhaul-load-{id}"));
        let job = Self { place, namespace, name: format!("longhaul-{NAME}-{id}") };
        let objects = job.objects();
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        job.call(&["create", "-f", "-"], Some(objects)).await.context("failed to make the Job of the workers")?;
        let pods = job.running().await?;
        let commands = pods.into_iter().map(|pod| (job.attach(&pod), pod)).collect();
        Ok((job, commands))
    }

    /// All objects of the workers, in order of creation.
    fn objects(&self) -> Vec<Value> {
        let labels = json!({LABEL: self.name});
        let mut objects = Vec::new();
        if self.place.namespace.is_none() {
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": self.namespace,
                "labels": {LABEL: self.name, "pod-security.kubernetes.io/enforce": "restricted"},
            }}));
            // The quota ensures that there are never more Pods than requested.
            objects.push(json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": NAME, "namespace": self.namespace, "labels": labels},
                "spec": {"hard": {
                    "pods": self.place.workers.to_string(), "count/jobs.batch": "1", "count/services": "0",
                    "count/secrets": "0", "persistentvolumeclaims": "0",
                }},
            }));
        }
        objects.push(json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "completions": self.place.workers, "parallelism": self.place.workers, "completionMode": "Indexed",
                // A lost worker is reported and never replaced, because its share was not sent.
                "backoffLimit": 0,
                "activeDeadlineSeconds": self.place.deadline.as_secs().max(1),
                "ttlSecondsAfterFinished": KEPT_S,
                "template": {"metadata": {"labels": labels}, "spec": self.pod()},
            },
        }));
        if let Some((key, value)) = &self.place.mark {
            for object in &mut objects {
                object["metadata"]["labels"][key] = json!(value);
            }
        }
        objects
    }

    fn pod(&self) -> Value {
        json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            // The harness's own nodes are reserved for subjects and load generators.
            "tolerations": [{"key": kind::node::TAINT, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"}},
            // Pods go to different machines if there are several.
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {LABEL: self.name}}}],
            "containers": [{
                "name": NAME, "image": self.place.image, "imagePullPolicy": "IfNotPresent",
                "args": ["worker", "--attached"], "stdin": true, "stdinOnce": true,
                "resources": {"requests": {"cpu": CPU, "memory": MEMORY}, "limits": {"memory": MEMORY}},
                "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]}},
            }],
        })
    }

    /// Waits until every Pod runs. Returns the names of the Pods by index.
    async fn running(&self) -> Result<Vec<String>> {
        let selector = format!("{LABEL}={}", self.name);
        let began = Instant::now();
        loop {
            let told = self.call(&["get", "pods", "-l", &selector, "-o", "json"], None).await?;
            let list: Value = serde_json::from_str(&told).context("kubectl told no list of Pods")?;
            let mut pods = Vec::new();
            let mut waits = "no Pod was made yet; `kubectl describe job` says why".to_owned();
            for pod in list["items"].as_array().into_iter().flatten() {
                match state(pod) {
                    State::Runs(index, name) => pods.push((index, name)),
                    State::Waits(why) => waits = why,
                    State::Failed(why) => bail!("a worker did not start: {why}"),
                }
            }
            pods.sort();
            if pods.len() == self.place.workers as usize {
                return Ok(pods.into_iter().map(|(_, name)| name).collect());
            }
            let (ran, all) = (pods.len(), self.place.workers);
            ensure!(
                began.elapsed() < RUNNING_LIMIT,
                "{ran} of {all} workers run after {} s: {waits}",
                RUNNING_LIMIT.as_secs()
            );
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    /// The command that connects to stdin and stdout of a Pod. The command runs without a shell, so that the pipe
    /// closes when the command ends.
    fn attach(&self, pod: &str) -> Command {
        let mut command = Command::new(&self.place.kubectl);
        command.arg(format!("--kubeconfig={}", self.place.kubeconfig.display()));
        command.arg(format!("--namespace={}", self.namespace));
        command.args(["attach", "--stdin", "--quiet", "--container", NAME, pod]);
        command
    }

    async fn call(&self, words: &[&str], input: Option<String>) -> Result<String> {
        let mut command = Command::new(&self.place.kubectl);
        command.arg(format!("--kubeconfig={}", self.place.kubeconfig.display()));
        command.arg(format!("--namespace={}", self.namespace)).args(words);
        call(command, input).await
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let what = match &self.place.namespace {
            Some(_) => ["job", self.name.as_str()],
            None => ["namespace", self.namespace.as_str()],
        };
        let mut command = std::process::Command::new(&self.place.kubectl);
        command.arg(format!("--kubeconfig={}", self.place.kubeconfig.display()));
        command.args([
            "--namespace",
            &self.namespace,
            "--request-timeout=10s",
            "delete",
            "--wait=false",
            "--ignore-not-found",
        ]);
        command.args(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = match ended(command, REMOVE_LIMIT) {
            Ok(Some(status)) if status.success() => return,
            Ok(Some(status)) => status.to_string(),
            Ok(None) => format!("kubectl had no answer for {} s", REMOVE_LIMIT.as_secs()),
            Err(error) => error.to_string(),
        };
        let [kind, name] = what;
        crate::out::err!(
            "longhaul: {kind} {name} was not removed ({failed}): `kubectl --namespace {} delete {kind} {name}`",
            self.namespace
        );
    }
}

/// Waits for a command. `None` means that the command was killed at the limit. Blocks, because a destructor cannot
/// await.
fn ended(mut command: std::process::Command, limit: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let (mut child, began) = (command.spawn()?, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The Pod runs; its index and name.
    Runs(u64, String),
    /// The Pod does not run yet, with the reason.
    Waits(String),
    /// The Pod will never run, with the reason.
    Failed(String),
}

fn state(pod: &Value) -> State {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let status = &pod["status"];
    let container = &status["containerStatuses"][0]["state"];
    if container["running"].is_object() {
        let index = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
        return State::Runs(index.as_str().and_then(|index| index.parse().ok()).unwrap_or(u64::MAX), name);
    }
    let waiting = &container["waiting"];
    let reason = waiting["reason"].as_str().unwrap_or_default();
    let says = |about: &Value| about["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
    if let Some(ended) = container["terminated"].as_object() {
        let code = ended.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        return State::Failed(format!("{name} ended with {code}{}", says(&container["terminated"])));
    }
    if [
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerError",
        "CreateContainerConfigError",
        "ImagePullBackOff",
    ]
    .contains(&reason)
    {
        return State::Failed(format!("{name}: {reason}{}", says(waiting)));
    }
    if status["phase"] == "Failed" {
        return State::Failed(format!("{name}{}", says(status)));
    }
    let unscheduled = status["conditions"].as_array().into_iter().flatten().find(|one| one["status"] == "False");
    let why = if reason.is_empty() {
        unscheduled.map(says).unwrap_or_default()
    } else {
        format!(": {reason}{}", says(waiting))
    };
    State::Waits(format!("{name} is not running{why}"))
}

/// Runs kubectl with a timeout.
async fn call(mut command: Command, input: Option<String>) -> Result<String> {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let done = tokio::time::timeout(CALL_LIMIT, async {
        let mut child = command.spawn()?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // If it does not read all of its input, its own message says why.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    });
    let output = done.await.with_context(|| format!("kubectl did not end in {} s", CALL_LIMIT.as_secs()))?;
    let output = output.context("failed to start kubectl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl: {}", crate::shown::text(said.trim()));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An image archive with this program, named [`OWN_IMAGE`].
pub(crate) async fn own_image() -> Result<Vec<u8>> {
    let program = std::env::current_exe().context("failed to find this program")?;
    let made =
        tokio::task::spawn_blocking(move || kind::node::image::Image::of_program(OWN_IMAGE, &program, USER)?.archive());
    made.await?.context("failed to make an image of this program")
}

/// Makes an image of this program and loads it into a node that Longhaul started. Returns the image's name on the node.
pub(crate) async fn load_own_image(state: &Path, node: &str) -> Result<String> {
    let folder = tempfile::tempdir().context("failed to make a folder for the image")?;
    let archive = folder.path().join("longhaul.tar");
    tokio::fs::write(&archive, own_image().await?).await.context("failed to write the image of this program")?;
    kind::cluster::load(state, node, &[archive]).await.context("failed to load the image of the workers")?;
    Ok(OWN_IMAGE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_has_no_end_is_ended() {
        let shell = |script: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert!(ended(shell("exit 3"), REMOVE_LIMIT).unwrap().is_some_and(|status| status.code() == Some(3)));
        assert!(ended(shell("exec sleep 1000"), Duration::from_millis(50)).unwrap().is_none());
    }

    fn job(namespace: Option<&str>) -> Job {
        let place = JobSettings {
            kubectl: "/nowhere/kubectl".into(),
            kubeconfig: "/my files/config".into(),
            namespace: namespace.map(str::to_owned),
            image: OWN_IMAGE.to_owned(),
            workers: 3,
            deadline: Duration::from_secs(90),
            mark: None,
        };
        Job {
            place,
            namespace: namespace.unwrap_or("longhaul-load-1").to_owned(),
            name: "longhaul-worker-1".to_owned(),
        }
    }

    /// The Job has one Pod per worker, does not replace Pods, has no rights, and creates no other objects.
    #[test]
    fn what_is_made_is_small_and_ends_by_itself() {
        let job = std::mem::ManuallyDrop::new(job(None));
        let objects = job.objects();
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "ResourceQuota", "Job"]);
        assert_eq!(objects[1]["spec"]["hard"]["pods"], "3");
        let spec = &objects[2]["spec"];
        assert_eq!(
            (&spec["completions"], &spec["completionMode"], &spec["backoffLimit"]),
            (&json!(3), &json!("Indexed"), &json!(0))
        );
        assert_eq!((&spec["activeDeadlineSeconds"], &spec["ttlSecondsAfterFinished"]), (&json!(90), &json!(60)));
        let pod = &spec["template"]["spec"];
        assert_eq!((&pod["automountServiceAccountToken"], &pod["restartPolicy"]), (&json!(false), &json!("Never")));
        assert_eq!(pod["containers"][0]["args"], json!(["worker", "--attached"]));
        let there = std::mem::ManuallyDrop::new(self::job(Some("team")));
        let kinds: Vec<Value> = there.objects().iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["Job"], "a namespace that exists is left as it is");
        let attach = there.attach("w-0");
        let words: Vec<_> = attach.as_std().get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(
            words.join(" "),
            "--kubeconfig=/my files/config --namespace=team attach --stdin --quiet --container worker w-0"
        );
    }

    #[test]
    fn a_pod_runs_or_waits_or_never_will() {
        let pod = |status: Value| {
            let index = json!({"batch.kubernetes.io/job-completion-index": "2"});
            state(&json!({"metadata": {"name": "w-2", "annotations": index}, "status": status}))
        };
        let container = |state: Value| json!({"containerStatuses": [{"state": state}]});
        assert_eq!(pod(container(json!({"running": {}}))), State::Runs(2, "w-2".to_owned()));
        let never = pod(container(json!({"waiting": {"reason": "ErrImageNeverPull", "message": "not here"}})));
        assert_eq!(never, State::Failed("w-2: ErrImageNeverPull: not here".to_owned()));
        let ended = pod(container(json!({"terminated": {"exitCode": 64}})));
        assert_eq!(ended, State::Failed("w-2 ended with 64".to_owned()));
        let full = pod(json!({"conditions": [{"status": "False", "message": "0/1 nodes are available"}]}));
        assert_eq!(full, State::Waits("w-2 is not running: 0/1 nodes are available".to_owned()));
    }
}
