//! The resource usage of the subject's Pods, read from the kubelets of their nodes if this machine cannot see their
//! processes.
//!
//! Sends the requests for kubelets' statistics and adds up the usage of all Pods. A kubelet measures containers every
//! ten to fifteen seconds (cAdvisor's housekeeping), independent of requests; a repeated measurement counts once. A
//! kubelet reports processor time and memory, but no descriptors or threads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use reports::record::Process;
use serde_json::Value;

use super::Cluster;
use super::rollout::Pod;
use crate::subject::{Log, Pods};

/// Interval of the requests. An answer covers all Pods of a node.
const EVERY: Duration = Duration::from_secs(3);

/// State that is kept between two requests.
#[derive(Debug, Default)]
pub(super) struct Stats {
    due: Option<Instant>,
    /// Times of the measurements in the last answer, to notice repeated measurements.
    told: BTreeSet<String>,
    /// Whether a message about kubelets that do not answer was already printed.
    refused: bool,
}

impl Stats {
    /// Asks the kubelets of these Pods if the interval is over. Reports new measurements.
    pub(super) async fn read(&mut self, cluster: &Cluster, all: &[Pod], pods: &Pods, log: &Log) {
        let now = Instant::now();
        if all.is_empty() || self.due.is_some_and(|due| now < due) {
            return;
        }
        self.due = Some(now + EVERY);
        let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for pod in all {
            if let Some(node) = &pod.node {
                wanted.entry(node).or_default().insert(&pod.uid);
            }
        }
        let (mut sum, mut whole) = (Used::default(), true);
        for (node, uids) in wanted {
            match cluster.get(&format!("/api/v1/nodes/{node}/proxy/stats/summary")).await {
                Ok(summary) => sum.add(&summary, &uids),
                // A sum without this node would be too low.
                Err(error) if !self.refused => {
                    (self.refused, whole) = (true, false);
                    log.note(&format!(
                        "its Pods are on other machines, and the kubelet of {node} does not report their memory; the harness needs `get` \
                         on `nodes/proxy` for that: {error:#}"
                    ));
                }
                Err(_) => whole = false,
            }
        }
        if whole && !sum.at.is_empty() && sum.at != self.told {
            self.told = sum.at;
            pods.use_now(sum.process);
        }
    }
}

/// The sum over the subject's containers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Used {
    process: Process,
    /// Time of each measurement, with the container's name.
    at: BTreeSet<String>,
}

impl Used {
    /// Adds the figures of one node for the Pods with these uids (`stats.k8s.io` of the kubelet's API, v1alpha1).
    fn add(&mut self, summary: &Value, uids: &BTreeSet<&str>) {
        let pods = summary["pods"].as_array().into_iter().flatten();
        for pod in pods.filter(|pod| pod["podRef"]["uid"].as_str().is_some_and(|uid| uids.contains(uid))) {
            for container in pod["containers"].as_array().into_iter().flatten() {
                let memory = &container["memory"];
                // A container that was just started has no figures yet.
                let (Some(set), Some(time)) = (memory["workingSetBytes"].as_u64(), memory["time"].as_str()) else {
                    continue;
                };
                let process = &mut self.process;
                process.told = true;
                process.processes += 1;
                process.rss_bytes = process.rss_bytes.saturating_add(set);
                process.anon_bytes = process.anon_bytes.saturating_add(memory["rssBytes"].as_u64().unwrap_or(0));
                let cpu_ns = container["cpu"]["usageCoreNanoSeconds"].as_u64().unwrap_or(0);
                process.cpu_ms = process.cpu_ms.saturating_add(cpu_ns / 1_000_000);
                self.at.insert(format!("{} {} {time}", pod["podRef"]["uid"], container["name"]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The sum has the figures of the subject's containers. Pods of other owners, and containers without figures, are
    /// skipped. The answer was recorded from kubelet 1.34.
    #[test]
    fn containers_of_its_pods_are_added_up() {
        let container = |name: &str, set: u64, rss: u64, cpu_ns: u64| {
            json!({"name": name, "startTime": "2026-01-01T00:00:00Z",
                "cpu": {"time": "2026-01-01T00:01:00Z", "usageNanoCores": 1, "usageCoreNanoSeconds": cpu_ns},
                "memory": {"time": "2026-01-01T00:01:00Z", "usageBytes": set * 2, "workingSetBytes": set, "rssBytes": rss}})
        };
        let pod =
            |uid: &str, containers: Vec<Value>| json!({"podRef": {"name": "p", "uid": uid}, "containers": containers});
        let summary = json!({"node": {"nodeName": "n"}, "pods": [
            pod("a", vec![container("one", 30, 20, 5_000_000), container("two", 3, 2, 1_900_000)]),
            pod("b", vec![container("one", 300, 200, 50_000_000)]),
            pod("c", vec![json!({"name": "new", "startTime": "2026-01-01T00:00:59Z"})]),
        ]});
        let mut used = Used::default();
        used.add(&summary, &BTreeSet::from(["a", "c"]));
        let expected =
            Process { told: true, processes: 2, rss_bytes: 33, anon_bytes: 22, cpu_ms: 6, ..Process::default() };
        assert_eq!((used.process, used.at.len()), (expected, 2));
        used.add(&summary, &BTreeSet::from(["b"]));
        assert_eq!((used.process.rss_bytes, used.at.len()), (333, 3));
        let mut nothing = Used::default();
        nothing.add(&json!({"pods": null}), &BTreeSet::from(["a"]));
        assert_eq!(nothing, Used::default());
    }
}
