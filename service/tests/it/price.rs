//! Measures the cost of splitting the service (`cargo xtask bench topology`). The service is measured as one process,
//! as one process that calls itself over the network, as two processes, and as two processes with a network delay of 1
//! ms and of 5 ms. Each variant is measured cold (every image is new) and warm (every result is cached).
//!
//! The registry and the load generator run in the test's process, so that the measured processor time is that of the
//! service alone. The load is closed: a fixed number of callers each send the next review as soon as the last review is
//! answered.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on must fail where it stands")]
#![allow(dead_code, reason = "what tests share is more than this needs")]

mod support;
#[path = "topology/world.rs"]
mod world;

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use service::run::{App, Options};
use service_core::role::Role;
use service_core::wire::{Client, Limits, Origin, Protocol, Trust, client_config};
use support::signed::{Key, Signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use world::{Pki, all, config, cosign};

const CALLERS: usize = 4;
/// Clock ticks per second in `/proc` (`getconf CLK_TCK`), equal on all supported Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;

/// The environment variable with the role that this program must run instead of measuring.
const ROLE: &str = "TOPOLOGY_ROLE";
const CONFIG: &str = "TOPOLOGY_CONFIG";
/// How the service is split into processes.
#[derive(Clone, Copy)]
enum Form {
    One,
    Itself,
    Two(Duration),
}

const FORMS: [(&str, Form); 5] = [
    ("one process", Form::One),
    ("one process, serialised", Form::Itself),
    ("two processes", Form::Two(Duration::ZERO)),
    ("two, 1 ms apart", Form::Two(Duration::from_millis(1))),
    ("two, 5 ms apart", Form::Two(Duration::from_millis(5))),
];

/// The started processes of the service, which end on drop.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    fn start(&mut self, role: &str, folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, role).env(CONFIG, &path);
        let log = std::fs::File::create(folder.join(format!("{name}.log"))).unwrap();
        self.0.push(command.stderr(log).spawn().unwrap());
    }

    /// Processor time that all processes of the service have used so far, in seconds.
    fn cpu_s(&self) -> f64 {
        let ticks = |child: &Child| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect();
            fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
        };
        self.0.iter().map(ticks).sum::<f64>() / TICKS_PER_SECOND
    }

    /// Resident memory of all processes of the service at present, in MiB.
    fn resident_mib(&self) -> f64 {
        let kib = |child: &Child| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
        };
        self.0.iter().map(kib).sum::<f64>() / 1024.0
    }
}

fn port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Forwards connections between `from` and `to`, and delays all data by `delay`.
async fn apart(from: tokio::net::TcpListener, to: SocketAddr, delay: Duration) {
    loop {
        let Ok((near, _)) = from.accept().await else { return };
        tokio::spawn(async move {
            let Ok(far) = tokio::net::TcpStream::connect(to).await else { return };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
            let (pieces, mut late) = tokio::sync::mpsc::channel::<(tokio::time::Instant, Vec<u8>)>(1024);
            tokio::spawn(async move {
                while let Some((due, piece)) = late.recv().await {
                    tokio::time::sleep_until(due).await;
                    if far_out.write_all(&piece).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = near_in.read(&mut buffer).await {
                if pieces.send((tokio::time::Instant::now() + delay, buffer[..count].to_vec())).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn review(image: &str) -> Bytes {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": image}]}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "shop", "operation": "CREATE", "object": pod}});
    review.to_string().into()
}

async fn call(client: &Client, body: Bytes) -> Result<Value, String> {
    let request = Request::post("/mutate?timeout=10s").header("content-type", "application/json").body(body).unwrap();
    let answer = client.fetch(request, 1 << 20, tokio::time::Instant::now() + Duration::from_secs(10)).await;
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::from_slice(answer.body()).map_err(|error| format!("{}: {error}", answer.status()))
}

/// Sends one review for each image; returns the sorted latencies in milliseconds.
async fn play(client: &Arc<Client>, images: &Arc<Vec<String>>) -> Vec<f64> {
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (client, images, next) = (Arc::clone(client), Arc::clone(images), Arc::clone(&next));
        callers.spawn(async move {
            let mut took = Vec::new();
            while let Some(image) = images.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                let started = Instant::now();
                let answer = call(&client, review(image)).await.unwrap();
                took.push(started.elapsed().as_secs_f64() * 1e3);
                assert_eq!(answer["response"]["allowed"], true, "{answer}");
            }
            took
        });
    }
    let mut took = callers.join_all().await.concat();
    took.sort_by(f64::total_cmp);
    took
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a list"
    )]
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[at]
}

#[expect(clippy::cast_precision_loss, reason = "counts of some thousands")]
async fn measure(
    name: &str,
    form: Form,
    (registry, key): (&Signed, &Key),
    images: &Arc<Vec<String>>,
    warm: usize,
) -> String {
    let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
    let (webhook, validator) = (port(), port());
    let host = registry.host();
    let files = json!({"listen": webhook, "certificate": pki.path("server.crt"), "key": pki.path("server.key")});
    let (trust, remote) =
        (cosign(&[("default", key)]), |at| json!({"name": "default", "type": "remote", "remote": pki.remote(&[at])}));
    let mut running = Running(Vec::new());
    match form {
        Form::One => running.start(
            "admission",
            folder.path(),
            "one.yaml",
            &config(&host, &[trust], &all(), &json!({"admission": files})),
        ),
        Form::Itself => {
            // The rules ask the process itself, whose own validator has another name.
            let mut own = trust;
            own["name"] = "own".into();
            let mut asked = remote(validator);
            asked["remote"]["validator"] = "own".into();
            let more = json!({"admission": files, "validator": pki.listen_at(validator)});
            running.start("all", folder.path(), "m.yaml", &config(&host, &[own, asked], &all(), &more));
        }
        Form::Two(delay) => {
            let mut at = validator;
            if !delay.is_zero() {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                at = listener.local_addr().unwrap();
                tokio::spawn(apart(listener, validator, delay));
            }
            let more = json!({"validator": pki.listen_at(validator)});
            running.start("validator", folder.path(), "v.yaml", &config(&host, &[trust], &json!({}), &more));
            running.start(
                "admission",
                folder.path(),
                "m.yaml",
                &config(&host, &[remote(at)], &all(), &json!({"admission": files})),
            );
        }
    }
    let tls = client_config(Trust::Pem(&std::fs::read(pki.path("ca.crt")).unwrap()), None).unwrap();
    let origin = Origin { host: "127.0.0.1".into(), port: webhook.port(), tls: Some(Arc::new(tls)), server_name: None };
    let client = Arc::new(Client::new(origin, Protocol::Http1, Limits { open_max: CALLERS, idle_max: CALLERS }));
    // The first review, about an image of its own, waits until all processes are up.
    let started = Instant::now();
    while call(&client, review(&registry.image("first")))
        .await
        .is_ok_and(|answer| answer["response"]["allowed"] == true)
        .eq(&false)
    {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{name} does not start: {}",
            std::fs::read_to_string(folder.path().join("m.yaml.log")).unwrap_or_default()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut lines = String::new();
    let again: Arc<Vec<String>> = Arc::new((0..warm).map(|index| images[index % images.len()].clone()).collect());
    for (kind, images) in [("cold", images), ("warm", &again)] {
        registry.requests();
        let (cpu, started) = (running.cpu_s(), Instant::now());
        let took = play(&client, images).await;
        let (cpu, asked, count) = (running.cpu_s() - cpu, registry.requests().len(), images.len() as f64);
        let _ = writeln!(
            lines,
            "| {name} | {kind} | {:.2} ms | {:.2} ms | {:.0} µs | {:.0}/s | {:.1} MiB | {:.2} |",
            quantile(&took, 0.5),
            quantile(&took, 0.99),
            cpu / count * 1e6,
            count / started.elapsed().as_secs_f64(),
            running.resident_mib(),
            asked as f64 / count
        );
    }
    lines
}

/// Runs this process as the service, with the measured roles.
async fn serve(role: String, path: std::path::PathBuf) {
    let config = service::config::load(&path).unwrap();
    // The roles to measure; none needs an API server.
    let roles: [Arc<dyn Role>; 2] =
        [Arc::new(service_admission::AdmissionRole), Arc::new(service_validator::ValidatorRole)];
    let options = Options { roles: Arc::new(roles), ..Options::default() };
    let mut app = App::start(&role, config, options).await.unwrap();
    app.broken().await.unwrap();
}

fn main() {
    if let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(CONFIG)) {
        service_core::allocator::give_memory_back();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(serve(role, path.into()));
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (cold, warm) = if quick { (100, 400) } else { (1_000, 8_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (registry, key) = (Signed::start().await, Key::new());
        for index in 0..cold {
            let repository = format!("app-{index}");
            let digest = registry.push(&repository);
            registry.sign_in_bundle(&repository, &digest, &digest, &key);
        }
        let digest = registry.push("first");
        registry.sign_in_bundle("first", &digest, &digest, &key);
        let images = Arc::new((0..cold).map(|index| registry.image(&format!("app-{index}"))).collect::<Vec<_>>());
        println!("{cold} reviews cold, {warm} warm, one image each, {CALLERS} callers\n");
        println!("| form | | p50 | p99 | CPU a review | reviews | memory | requests to the registry |");
        println!("|---|---|---|---|---|---|---|---|");
        for (name, form) in FORMS {
            print!("{}", measure(name, form, (&registry, &key), &images, warm).await);
        }
    });
}
