//! Follows the subject's Pods: their processes, ended containers, and output.
//!
//! Lists the Pods twice a second. A kill by the run itself is no crash: [`crate::run::trouble`] announces each kill
//! beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::rollout::{Container, Pod};
use super::stats::Stats;
use super::{Cluster, Rollout, logs};
use crate::subject::{Crash, Log, Pods};

const EVERY: Duration = Duration::from_millis(500);
/// The longest time without an answer of the API server, longer than any fault. After this time, the run cannot observe
/// the subject.
const BLIND_AFTER: Duration = Duration::from_secs(210);
/// Maximum number of containers whose output is read at the same time.
const LOGS_MAX: usize = 256;

/// Number of restarts of each container, by the uid of its Pod and its name.
pub(super) type Restarts = BTreeMap<(String, String), u64>;

/// Restarts before the run, which are no crashes of this run.
pub(super) fn before(all: &[Pod]) -> Restarts {
    let of = |pod: &Pod| {
        let uid = pod.uid.clone();
        pod.containers.iter().map(move |one| ((uid.clone(), one.name.clone()), one.restarts)).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// Lists the Pods regularly until the future is dropped.
pub(super) async fn follow(cluster: Cluster, rollout: Arc<Rollout>, mut known: Restarts, pods: Pods, log: Log) {
    // Starts of containers whose output is read.
    let mut read = BTreeSet::new();
    let mut logs = JoinSet::new();
    let mut seen = Instant::now();
    let mut stats = Stats::default();
    loop {
        match rollout.pods().await {
            Ok(all) => {
                seen = Instant::now();
                if !tell(&rollout, &all, &pods) {
                    stats.read(&cluster, &all, &pods, &log).await;
                }
                for pod in &all {
                    for container in &pod.containers {
                        let key = (pod.uid.clone(), container.name.clone());
                        let before = known.insert(key, container.restarts);
                        ended(pod, container, before.unwrap_or(0), &pods);
                        let start = (pod.uid.clone(), container.name.clone(), container.restarts);
                        if container.runs && logs.len() < LOGS_MAX && read.insert(start) {
                            let Pod { namespace, name, .. } = pod;
                            let path = format!(
                                "/api/v1/namespaces/{namespace}/pods/{name}/log?container={}&follow=true",
                                container.name
                            );
                            logs.spawn(logs::follow(
                                cluster.api.clone(),
                                path,
                                name.clone(),
                                log.clone(),
                                pods.clone(),
                            ));
                        }
                    }
                }
            }
            Err(error) if seen.elapsed() > BLIND_AFTER => {
                pods.blind(format!("the subject's Pods cannot be looked at: {error:#}"));
                return;
            }
            Err(_) => {}
        }
        while logs.try_join_next().is_some() {}
        tokio::time::sleep(EVERY).await;
    }
}

/// Reports the processes of the Pods. Returns whether this machine sees any process of a Pod.
fn tell(rollout: &Rollout, all: &[Pod], pods: &Pods) -> bool {
    let mut pids: Vec<u32> = all.iter().flat_map(|pod| rollout.first_processes(pod)).collect();
    pids.sort_unstable();
    let are_here = !pids.is_empty();
    pods.are(pids);
    are_here
}

/// Reports a container that was restarted since the last list.
fn ended(pod: &Pod, container: &Container, before: u64, pods: &Pods) {
    if container.restarts <= before {
        return;
    }
    let Some(ended) = &container.ended else { return };
    pods.crashed(Crash {
        container: format!("{}/{}", pod.name, container.name),
        status: ended.status.clone(),
        ran: ended.ran,
        restarts: container.restarts,
    });
}

#[cfg(test)]
mod tests {
    use super::super::rollout::Ended;
    use super::*;

    #[test]
    fn what_ended_before_anybody_looked_is_no_crash() {
        let pod = |restarts| Pod {
            uid: "u".to_owned(),
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            node: None,
            is_ready: true,
            is_going: false,
            address: None,
            containers: vec![Container {
                name: "c".to_owned(),
                restarts,
                runs: true,
                ended: Some(Ended { status: "Error, exit code 1".to_owned(), ran: Duration::ZERO }),
            }],
        };
        let crashes = |known: &Restarts, now: &Pod| {
            let pods = Pods::default();
            let key = ("u".to_owned(), "c".to_owned());
            ended(now, &now.containers[0], known.get(&key).copied().unwrap_or(0), &pods);
            pods.take_crashes().len()
        };
        let known = before(&[pod(3)]);
        assert_eq!((crashes(&known, &pod(3)), crashes(&known, &pod(4))), (0, 1));
        assert_eq!(crashes(&Restarts::new(), &pod(3)), 1, "one that the run made has no past");
    }
}
