//! Tests of several processes that share a Redis: a verdict of one process saves all other processes a signature check,
//! and values of other programs are ignored.

mod container;

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use service_core::wire::Client;

use crate::admission::{ask, pod, review};
use crate::support::signed::{Key, Signed};
use crate::support::{Service, until};
use crate::verify::{config, start};

const IMAGES: usize = 24;
/// Number of replicas that start one after the other.
const PROCESSES: usize = 4;
/// Response time of a registry in the same region.
const REGISTRY_DELAY: Duration = Duration::from_millis(20);
const RULES: &str = "rules: [{pattern: \"*\", with: {verifyInTransparencyLog: false}}]";

/// A redis-server that is killed when it is dropped.
struct Redis {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Redis {
    async fn start() -> Option<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "k".repeat(64)).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]).current_dir(folder.path());
        let Ok(child) = command.stdout(Stdio::null()).spawn() else {
            println!("skipped: needs redis-server");
            return None;
        };
        until("redis-server", || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()).await;
        Some(Self { child, folder, port })
    }

    fn section(&self) -> String {
        let key = self.folder.path().join("key");
        format!(
            "sharedCache: {{address: '127.0.0.1:{}', plain: true, keyFile: {}, timeout: 2s}}\n",
            self.port,
            key.display()
        )
    }
}

/// Sends a review for every image at the same time, and asserts that all may run.
async fn about_all(client: &Client, images: &[String]) {
    let asked = images.iter().map(|image| async move {
        let answer = ask(client, &review("v1", &pod(&[image]))).await;
        assert_eq!(answer["allowed"], true, "{image}: {answer}");
    });
    futures_util::future::join_all(asked).await;
}

/// Starts the processes one after the other, each with an empty cache of its own. Returns the number of registry
/// requests of each process, and the total time.
async fn cold(registry: &Signed, key: &Key, images: &[String], section: &str) -> (Vec<usize>, Duration) {
    let (mut asked, mut took) = (Vec::new(), Duration::ZERO);
    for _ in 0..PROCESSES {
        let (service, client): (Service, _) = start(&config(registry, &[("default", key)], RULES, section)).await;
        if !section.is_empty() {
            connected(&service).await;
        }
        registry.requests();
        let began = Instant::now();
        about_all(&client, images).await;
        took += began.elapsed();
        asked.push(registry.requests().len());
        // Values are stored after the answers.
        if !section.is_empty() {
            let kept = async || {
                service.health("/metrics").await.1.lines().any(|line| {
                    line.strip_prefix("longhaul_shared_cache_kept_total{outcome=\"kept\"} ")
                        .is_some_and(|count| count.parse() == Ok(IMAGES))
                        || line
                            .strip_prefix("longhaul_shared_cache_asked_total{outcome=\"hit\"} ")
                            .is_some_and(|count| count.parse() == Ok(IMAGES))
                })
            };
            poll("all verdicts", kept).await;
        }
        service.app.stop().await;
    }
    (asked, took)
}

/// A slow registry with signed images, the key that signed them, and the images.
async fn signed() -> (Signed, Key, Vec<String>) {
    let (registry, key) = (Signed::start().await, Key::new());
    let signed = |number| {
        let repository = format!("image-{number}");
        let digest = registry.push(&repository);
        registry.sign_in_bundle(&repository, &digest, &digest, &key);
        registry.image(&repository)
    };
    let images = (0..IMAGES).map(signed).collect();
    registry.world.lock().delay = REGISTRY_DELAY;
    (registry, key, images)
}

async fn connected(service: &Service) {
    poll("a connection", async || service.health("/metrics").await.1.contains("longhaul_shared_cache_connected 1"))
        .await;
}

async fn poll(what: &str, so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + crate::support::PATIENCE;
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The first process sends all usual requests to the registry. Later processes look up only the digests of tags and
/// request no signatures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn processes_that_start_cold_ask_for_nothing_that_another_has_verified() {
    let Some(redis) = Redis::start().await else { return };
    let (registry, key, images) = signed().await;
    let (alone, alone_took) = cold(&registry, &key, &images, "").await;
    let (shared, shared_took) = cold(&registry, &key, &images, &redis.section()).await;
    println!(
        "figure: cold start of {PROCESSES} processes, {IMAGES} signed images, {REGISTRY_DELAY:?} a registry answer: without {alone:?} requests, \
         {alone_took:?}; with Redis {shared:?} requests, {shared_took:?}"
    );
    assert!(alone.iter().all(|asked| *asked > 2 * IMAGES), "{alone:?}");
    assert!(shared[1..].iter().all(|asked| *asked <= IMAGES + 4), "{shared:?}");
}
