//! Taking away what a guest made in a cluster, by its label; and what dead labelled left.
//!
//! Nothing without the label is ever deleted.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::step::{Failed, Step, Tool};

/// The label of everything that a guest makes; its value is the guest's own.
pub(crate) const LABEL: &str = "longhaul.dev/run";
const ASK_LIMIT: Duration = Duration::from_secs(20);
/// A namespace with hundreds of objects needs half a minute to be empty.
const GONE_LIMIT: Duration = Duration::from_mins(3);
/// Lines of a container that are kept.
const TAIL: &str = "--tail=2000";
/// Pods whose output is kept.
const PODS_MAX: usize = 64;
/// Webhooks first: one that nobody serves any more would hold up all the rest. Definitions after the namespaces with their objects.
const KINDS: [(&str, bool); 4] = [
    ("mutatingwebhookconfigurations,validatingwebhookconfigurations", false),
    ("namespaces", false),
    ("clusterroles,clusterrolebindings,customresourcedefinitions", false),
    // In namespaces that were there before.
    ("roles,rolebindings", true),
];

/// What a guest has in a cluster, and how another process takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Labelled {
    kubectl: PathBuf,
    words: Vec<String>,
    /// The value of its label.
    pub mark: String,
    /// The key of a taint that its nodes have meanwhile.
    taint: Option<String>,
}

impl Labelled {
    pub(crate) fn new(tool: &Tool, mark: &str, taint: Option<&str>) -> Self {
        let words = tool.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self { kubectl: tool.program.clone(), words, mark: mark.to_owned(), taint: taint.map(str::to_owned) }
    }

    /// Somebody else's there, with this mark.
    pub(crate) fn with_mark(&self, mark: &str) -> Self {
        Self { mark: mark.to_owned(), ..self.clone() }
    }

    fn tool(&self) -> Tool {
        Tool::new(self.kubectl.clone()).with(&self.words)
    }

    fn mend(&self) -> String {
        format!("kubectl delete {} -l {LABEL}={}", KINDS.map(|(kinds, _)| kinds).join(","), self.mark)
    }

    /// The words of each step.
    fn steps(&self) -> Vec<Vec<String>> {
        let selector = format!("{LABEL}={}", self.mark);
        let words = |(kinds, everywhere): (&str, bool)| {
            let mut words: Vec<String> =
                ["delete", kinds, "-l", &selector, "--ignore-not-found", "--timeout=150s"].map(str::to_owned).into();
            if everywhere {
                words.push("--all-namespaces".to_owned());
            }
            words
        };
        KINDS.into_iter().map(words).collect()
    }

    fn untaint(&self) -> Option<[String; 4]> {
        let taint = self.taint.as_ref()?;
        Some(["taint".to_owned(), "nodes".to_owned(), "--all".to_owned(), format!("{taint}-")])
    }

    /// Takes all of it away, and waits until it is gone.
    pub(crate) async fn take_away(&self) -> Result<(), Failed> {
        let tool = self.tool();
        if let Some(words) = self.untaint() {
            // Refused where there is none.
            let _ = Step::new("let Pods on the nodes again", "", &tool, words).within(ASK_LIMIT).call().await;
        }
        for words in self.steps() {
            Step::new("take away what was made", self.mend(), &tool, words).within(GONE_LIMIT).tried(2).call().await?;
        }
        Ok(())
    }

    /// The same, for who cannot wait otherwise.
    pub(crate) fn take_away_now(&self) -> Result<(), Failed> {
        let tool = self.tool();
        if let Some(words) = self.untaint() {
            let _ = Step::new("let Pods on the nodes again", "", &tool, words).within(ASK_LIMIT).call_now();
        }
        for words in self.steps() {
            Step::new("take away what was made", self.mend(), &tool, words).within(GONE_LIMIT).call_now()?;
        }
        Ok(())
    }

    /// The output of the Pods in its namespaces, and what happened there: names of files and their text.
    pub(crate) async fn logs(&self) -> Result<Vec<(String, String)>, Failed> {
        let tool = self.tool();
        let ask = async |words: &[&str]| {
            let step = Step::new("keep the logs of Pods", "kubectl logs", &tool, words.iter().copied());
            step.within(ASK_LIMIT).call().await
        };
        let selector = format!("{LABEL}={}", self.mark);
        let namespaces =
            ask(&["get", "namespaces", "-l", &selector, "-o", "jsonpath={.items[*].metadata.name}"]).await?;
        let mut files = Vec::new();
        for namespace in namespaces.split_whitespace() {
            // What load made runs nowhere, and says nothing.
            let running = "--field-selector=status.phase!=Pending";
            let pods =
                ask(&["get", "pods", "-n", namespace, running, "-o", "jsonpath={.items[*].metadata.name}"]).await?;
            for pod in pods.split_whitespace().take(PODS_MAX - files.len().min(PODS_MAX)) {
                // One that is going may be gone.
                if let Ok(text) = ask(&["logs", "-n", namespace, pod, "--all-containers", "--prefix", TAIL]).await {
                    files.push((format!("{namespace}.{pod}.log"), text));
                }
            }
            if !pods.trim().is_empty() {
                files.push((format!("{namespace}.events.txt"), ask(&["get", "events", "-n", namespace]).await?));
            }
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_deleted_by_label_and_webhooks_go_first() {
        let labelled = Labelled::new(&Tool::new("kubectl".into()).with(["--context", "c"]), "0badcafe", None);
        let steps = labelled.steps();
        assert!(steps.iter().all(|words| words.contains(&"longhaul.dev/run=0badcafe".to_owned())), "{steps:?}");
        assert!(steps[0][1].starts_with("mutatingwebhook") && steps[1][1] == "namespaces", "{steps:?}");
        assert_eq!(labelled.tool().words, ["--context", "c"]);
    }
}
