//! Removes the objects of a run in a foreign cluster by their label, also after the run was killed.
//!
//! An object without the label is never deleted.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::step::{self, Failed, Step, Tool};

/// The key of the label of every object that a run makes in a foreign cluster. Each run has its own value of this
/// label.
pub(crate) const LABEL: &str = "longhaul.dev/run";
const ASK_LIMIT: Duration = Duration::from_secs(20);
/// The time limit until a deleted namespace has disappeared. A namespace with hundreds of objects takes half a minute
/// to disappear.
const GONE_LIMIT: Duration = Duration::from_mins(3);
/// The argument of `kubectl logs` that limits the kept lines of a container.
const TAIL: &str = "--tail=2000";
/// Maximum number of Pods whose output is kept.
const PODS_MAX: usize = 64;
/// How often namespaces that are being deleted are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Kinds of objects that are deleted first: a webhook without a server would block all other deletions.
const WEBHOOKS: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
/// Cluster-wide kinds of objects that are deleted after the namespaces.
const CLUSTER: &str = "clusterroles,clusterrolebindings,customresourcedefinitions";
/// Kinds of objects that are deleted in namespaces which existed before the run.
const ELSEWHERE: &str =
    "deployments,pods,services,secrets,configmaps,serviceaccounts,networkpolicies,roles,rolebindings";

/// The data with which any process can remove a run's objects from a foreign cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Labelled {
    kubectl: PathBuf,
    words: Vec<String>,
    /// The value of the label on the run's objects.
    pub mark: String,
    /// The key of a taint that the run put on the nodes.
    taint: Option<String>,
}

impl Labelled {
    pub(crate) fn new(tool: &Tool, mark: &str, taint: Option<&str>) -> Self {
        let words = tool.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self { kubectl: tool.program.clone(), words, mark: mark.to_owned(), taint: taint.map(str::to_owned) }
    }

    /// The same data for another run in the same cluster, whose objects have the label value `mark`.
    pub(crate) fn with_mark(&self, mark: &str) -> Self {
        Self { mark: mark.to_owned(), ..self.clone() }
    }

    fn tool(&self) -> Tool {
        Tool::new(self.kubectl.clone()).with(&self.words)
    }

    fn mend(&self) -> String {
        let selector = self.selector();
        format!(
            "kubectl delete {WEBHOOKS},namespaces,{CLUSTER} -l {selector}; kubectl delete {ELSEWHERE} -A -l {selector}"
        )
    }

    fn selector(&self) -> String {
        format!("{LABEL}={}", self.mark)
    }

    /// Removes all objects of the run, and waits until they are gone.
    pub(crate) async fn take_away(&self) -> Result<(), Failed> {
        let namespaces = self.take_namespaces().await;
        if let Some(taint) = &self.taint {
            // Not before: Pods that never ran would start, only to be ended one by one by their kubelet. Refused if
            // there is no taint.
            let _ = self.ask(&["taint", "nodes", "--all", &format!("{taint}-")]).await;
        }
        let hangs = namespaces?;
        self.delete(CLUSTER, &["--timeout=60s"]).await?;
        self.delete(ELSEWHERE, &["--all-namespaces"]).await?;
        if hangs {
            return Err(self.failed(format!("some still exist after {} s", GONE_LIMIT.as_secs())));
        }
        Ok(())
    }

    /// Deletes the run's namespaces with all their objects; returns whether some namespaces still exist.
    async fn take_namespaces(&self) -> Result<bool, Failed> {
        self.delete(WEBHOOKS, &[]).await?;
        self.delete("namespaces", &["--wait=false"]).await?;
        let began = Instant::now();
        loop {
            let left = self.ask(&["get", "namespaces", "-l", &self.selector(), "-o", "json"]).await?;
            let left: Value = serde_json::from_str(&left).map_err(|error| self.failed(error.to_string()))?;
            let left = left["items"].as_array().cloned().unwrap_or_default();
            if left.is_empty() || began.elapsed() >= GONE_LIMIT {
                return Ok(!left.is_empty());
            }
            for namespace in &left {
                self.release(namespace).await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn failed(&self, reason: String) -> Failed {
        let command = format!("kubectl get namespaces -l {}", self.selector());
        Failed { step: "take away namespaces", command, reason, mend: self.mend() }
    }

    /// Removes all objects of the run, for code that cannot await.
    pub(crate) fn take_away_now(&self) -> Result<(), Failed> {
        let labelled = self.clone();
        step::now(async move { labelled.take_away().await })
    }

    /// Removes the finalizers of objects in a namespace that is being deleted, because the controllers of those
    /// finalizers have ended.
    async fn release(&self, namespace: &Value) {
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        for resource in remaining(namespace) {
            // Its definition may be deleted at this moment; the next poll shows it.
            let Ok(listed) = self.ask(&["get", &resource, "-n", name, "-o", "json"]).await else { continue };
            let mut list: Value = serde_json::from_str(&listed).unwrap_or_default();
            let items = list["items"].as_array_mut().into_iter().flatten();
            items.for_each(|object| object["metadata"]["finalizers"] = Value::Array(Vec::new()));
            let tool = self.tool();
            let step = Step::new("let go what hangs in deletion", self.mend(), &tool, ["replace", "-f", "-"]);
            // An object deleted meanwhile cannot be replaced.
            let _ = step.reading(list.to_string().into_bytes()).within(ASK_LIMIT).call().await;
        }
    }

    async fn delete(&self, kinds: &str, more: &[&str]) -> Result<(), Failed> {
        let selector = self.selector();
        let words = ["delete", kinds, "-l", &selector, "--ignore-not-found"].into_iter().chain(more.iter().copied());
        let tool = self.tool();
        let step = Step::new("take away what was made", self.mend(), &tool, words);
        step.within(GONE_LIMIT).tried(2).call().await.map(drop)
    }

    async fn ask(&self, words: &[&str]) -> Result<String, Failed> {
        let tool = self.tool();
        Step::new("look at what was made", self.mend(), &tool, words.iter().copied()).within(ASK_LIMIT).call().await
    }

    /// The output of the Pods in the run's namespaces, and the Kubernetes events there, as pairs of file name and text.
    pub(crate) async fn logs(&self) -> Result<Vec<(String, String)>, Failed> {
        let ask = async |words: &[&str]| self.ask(words).await;
        let selector = self.selector();
        let namespaces =
            ask(&["get", "namespaces", "-l", &selector, "-o", "jsonpath={.items[*].metadata.name}"]).await?;
        let namespaces: HashSet<&str> = namespaces.split_whitespace().collect();
        // One request for all of them: a long churn leaves hundreds that are being deleted and have no Pod. Pods of the
        // load run nowhere and have no output.
        let each = "jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{\"\\n\"}{end}";
        let pods =
            ask(&["get", "pods", "--all-namespaces", "--field-selector=status.phase!=Pending", "-o", each]).await?;
        let mut files = Vec::new();
        let mut heard = BTreeSet::new();
        let ours = pods.lines().filter_map(|line| line.split_once(' ')).filter(|(space, _)| namespaces.contains(space));
        for (namespace, pod) in ours.take(PODS_MAX) {
            // A Pod that is being deleted may be gone.
            if let Ok(text) = ask(&["logs", "-n", namespace, pod, "--all-containers", "--prefix", TAIL]).await {
                files.push((format!("{namespace}.{pod}.log"), text));
            }
            if heard.insert(namespace) {
                files.push((format!("{namespace}.events.txt"), ask(&["get", "events", "-n", namespace]).await?));
            }
        }
        Ok(files)
    }
}

/// The objects that remain in a namespace which is being deleted, as the namespace's condition states:
/// `packages.longhaul.dev has 3 resource instances`.
fn remaining(namespace: &Value) -> Vec<String> {
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let hangs =
        |condition: &&Value| condition["type"] == "NamespaceFinalizersRemaining" && condition["status"] == "True";
    let all: Vec<&Value> = conditions.collect();
    if !all.iter().any(hangs) {
        return Vec::new();
    }
    let content = all.iter().find(|condition| condition["type"] == "NamespaceContentRemaining");
    let message = content.and_then(|condition| condition["message"].as_str()).unwrap_or_default();
    let named = message.split([',', ':']).filter_map(|part| part.trim().split_once(" has "));
    named.map(|(resource, _)| resource.to_owned()).filter(|resource| !resource.contains(' ')).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_hangs_in_a_namespace_is_read_from_its_conditions() {
        let condition = |kind: &str, message: &str| json!({"type": kind, "status": "True", "message": message});
        let content = condition(
            "NamespaceContentRemaining",
            "Some resources are remaining: packages.longhaul.dev has 3 resource instances, pods. has 1 resource instances",
        );
        let hangs = condition("NamespaceFinalizersRemaining", "longhaul.dev/cleanup in 3 resource instances");
        let namespace = |conditions: Value| json!({"status": {"conditions": conditions}});
        assert_eq!(remaining(&namespace(json!([content, hangs]))), ["packages.longhaul.dev", "pods."]);
        assert_eq!(remaining(&namespace(json!([content]))), Vec::<String>::new(), "it goes by itself");
    }

    /// Tests deletion with a fake kubectl that records its arguments.
    #[tokio::test]
    async fn everything_is_deleted_by_label_and_webhooks_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let asked = folder.path().join("asked");
        let script = format!("echo \"$@\" >>{}; case \"$*\" in *' get '*) echo '{{}}';; esac", asked.display());
        let tool = Tool::new("/bin/sh".into()).with(["-c", &script, "kubectl", "--context", "c"]);
        Labelled::new(&tool, "0badcafe", Some("t")).take_away().await.unwrap();
        let asked = std::fs::read_to_string(asked).unwrap();
        let deleted: Vec<&str> = asked.lines().filter(|line| line.contains(" delete ")).collect();
        assert!(
            deleted
                .iter()
                .all(|line| line.starts_with("--context c delete ") && line.contains("-l longhaul.dev/run=0badcafe")),
            "{asked}"
        );
        assert!(deleted[0].contains("mutatingwebhook") && deleted[1].contains(" namespaces "), "{asked}");
        let line = |part: &str| asked.lines().position(|line| line.contains(part)).unwrap();
        assert!(
            line(" get namespaces ") < line(" taint nodes --all t-"),
            "Pods that never ran do not begin to: {asked}"
        );
    }
}
