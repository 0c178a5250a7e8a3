//! Runs the service beside an injection. The service watches Packages in the API server to which the injector sends
//! chunks.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::api::{Api, ask};
use super::world::{WATCHER, World, peak_rss_kib};

/// Interval between two writes of Packages.
const PACE: Duration = Duration::from_millis(25);
/// Number of Packages that exist at the same time.
const PACKAGES: usize = 8;
pub const PATH: &str = "/apis/longhaul.dev/v1alpha1/namespaces/default/packages";

/// A service that watches Packages, and ends on drop.
pub struct Watcher {
    child: Child,
    log: PathBuf,
    health: SocketAddr,
}

/// A background task that writes Packages, and the results of its writes.
pub struct Churn {
    stop: oneshot::Sender<()>,
    writing: JoinHandle<()>,
}

impl Watcher {
    /// Starts the service. Returns after the service's first list.
    pub async fn start(world: &World) -> Self {
        let folder = world.folder.path();
        std::fs::write(folder.join("watcher.kubeconfig"), world.server.kubeconfig(WATCHER).unwrap()).unwrap();
        let health = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let settings = json!({
            "kubernetes": {"kubeconfig": "watcher.kubeconfig"}, "health": {"listen": health},
            "log": {"format": "json", "level": "debug"},
        });
        std::fs::write(folder.join("service.yaml"), settings.to_string()).unwrap();
        let log = folder.join("watcher.log");
        let mut command = Command::new(&world.programs.service);
        command.args(["run", "--role", "packages", "--config"]).arg(folder.join("service.yaml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let watcher = Self { child: command.kill_on_drop(true).spawn().unwrap(), log, health };
        super::eventually("the service has listed", || watcher.log().contains("watch.listed")).await;
        watcher
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The resource versions of all Packages that the service has received.
    pub fn seen(&self) -> BTreeSet<String> {
        let said = self.log();
        let lines = said.lines().filter(|line| line.contains("watch.changed"));
        let revision =
            |line: &str| serde_json::from_str::<Value>(line).ok()?["context"]["revision"].as_str().map(str::to_owned);
        lines.filter_map(revision).collect()
    }

    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id().unwrap()), "5").unwrap();
    }

    /// The service's peak memory in KiB since the kernel's counter was last reset.
    pub fn peak_kib(&self) -> u64 {
        peak_rss_kib(self.child.id().unwrap()).unwrap()
    }

    /// A counter of the service's metrics, summed over all series without the word `periodic`.
    pub async fn metric(&self, name: &str) -> u64 {
        let answer = ask(self.health, "GET", "/metrics", None).await.unwrap();
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        let values = text
            .lines()
            .filter(|line| line.starts_with(name) && !line.contains("periodic"))
            .filter_map(|line| line.rsplit_once(' '));
        values.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
    }
}

impl Churn {
    /// Starts to create, change and delete Packages, until it is stopped.
    pub fn start(api: Arc<Api>) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let writing = tokio::spawn(async move {
            let mut turns = tokio::time::interval(PACE);
            for number in 0.. {
                let name = format!("p{number}");
                let object = json!({
                    "apiVersion": "longhaul.dev/v1alpha1", "kind": "Package",
                    "metadata": {"name": name}, "spec": {"payload": "a"},
                });
                turns.tick().await;
                api.create(PATH, &object).await;
                turns.tick().await;
                assert!(api.merge(&format!("{PATH}/{name}"), &json!({"spec": {"payload": "b"}})).await);
                if number >= PACKAGES {
                    turns.tick().await;
                    api.call(Method::DELETE, &format!("{PATH}/p{}", number - PACKAGES), None).await;
                }
                if !matches!(stopped.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
                    return;
                }
            }
        });
        Self { stop, writing }
    }

    pub async fn stop(self) {
        let _ = self.stop.send(());
        self.writing.await.unwrap();
    }
}

/// Collects the committed versions of Packages. The task ends with the write of the object named `last`.
pub fn commits(world: &World, last: &'static str) -> JoinHandle<BTreeSet<String>> {
    let mut tail = world.server.tail();
    tokio::spawn(async move {
        let mut revisions = BTreeSet::new();
        loop {
            for entry in tail.next_batch(256).await.expect("the tail keeps up") {
                if &*entry.commit.resource == "packages.longhaul.dev" {
                    revisions.insert(entry.commit.revision.to_string());
                    if &*entry.commit.name == last {
                        return revisions;
                    }
                }
            }
        }
    })
}
