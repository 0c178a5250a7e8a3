//! Compares the memory of a program at 10,000 objects of a real kube-apiserver with its memory at the same objects of
//! the mock.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kind::local::{Config, Local, User};
use mock_kube::KindOf;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::objects::{Maker, namespace};
use super::*;
use crate::observe::Api;
use crate::observer;
use crate::scenario::Source;

const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/sized.py");
const STEP: Step = Step { objects: 10_000, bytes: 10 << 10 };
const SEED: u64 = 1;
/// Number of creations at one time.
const AT_ONCE: u64 = 16;
/// The uid of the owner of every third object. Nothing looks the owner up.
const UID: &str = "00000000-0000-4000-8000-000000000001";
/// Maximum difference of the two memories, in percent.
const DIFFERENCE_PCT: f64 = 10.0;

/// The highest memory of the program against the mock.
async fn against_mock(folder: &Path) -> u64 {
    let text = format!(
        "{{apiVersion: longhaul/v1, name: size, description: x, phases: {{warmUp: 0s, steady: 10s, drain: 1s}}, \
         subject: {{command: [python3, {CACHE}, secrets], witness: {{kind: http}}}}, churn: {{resource: \
         packages.longhaul.dev/v1alpha1, population: 1, rate: 1/s, mix: {{update: 1}}}}}}"
    );
    let source = Source::parse(&text, "size", Path::new(".")).unwrap();
    let options = Options::new(source, folder.to_owned(), String::new());
    let (patience, stop) = (Duration::from_mins(2), CancellationToken::new());
    let ground = Ground { options: &options, folder, limit: None, seed: SEED, patience, settle: SETTLE, stop: &stop };
    let measured = Box::pin(measure(&ground, &["secrets".to_owned()], STEP, None, 0)).await.unwrap().unwrap();
    assert_eq!(measured.row.fate, Fate::Lived);
    measured.row.figures.unwrap().highest_bytes
}

/// Creates the objects of the step in a real API server.
async fn fill(api: &Arc<Api>) {
    let kind = Arc::new(KindOf {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        is_namespaced: true,
        definition: None,
    });
    for number in 0..STEP.objects.div_ceil(objects::PER_NAMESPACE) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(number)}});
        api.create(&object, None, false).await.unwrap().unwrap();
    }
    let mut creators = JoinSet::new();
    for first in 0..AT_ONCE {
        let (api, kind) = (api.clone(), kind.clone());
        creators.spawn(async move {
            let maker = Maker { kind: &kind, seed: SEED, bytes: STEP.bytes };
            for number in (first..STEP.objects).filter(|number| number % AT_ONCE == first) {
                let owner = number.is_multiple_of(3).then_some(UID);
                let place = maker.namespace(number);
                api.create(&maker.object(number, owner), place.as_deref(), false).await.unwrap().unwrap();
            }
        });
    }
    while let Some(created) = creators.join_next().await {
        created.unwrap();
    }
}

/// Starts the program and returns its highest memory until it rests.
async fn highest(kubeconfig: &Path) -> u64 {
    let mut program = Command::new("python3")
        .args([CACHE, "secrets"])
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (began, mut before) = (Instant::now(), None::<u64>);
    let highest = loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let cpu_ms = observer::used(program.id()).unwrap().cpu_ms;
        let is_at_rest = before.replace(cpu_ms).is_some_and(|before| cpu_ms - before < 20);
        if is_at_rest || began.elapsed() > Duration::from_mins(2) {
            break observer::peak(program.id()).unwrap();
        }
    };
    program.kill().unwrap();
    program.wait().unwrap();
    highest
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: creates 10,000 objects in a real API server"]
async fn a_real_server_costs_a_program_the_same_memory() {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) else {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: needs python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(&assets, folder.path().join("plane"));
    config.users.push(User { name: "size".to_owned(), groups: vec!["system:masters".to_owned()] });
    let local = Local::start(config).await.unwrap();
    let access = local.access();
    let token = access.token("size").unwrap().to_owned();
    fill(&Arc::new(Api::new(access.url(), access.ca_pem().to_owned(), token))).await;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, access.kubeconfig("size").unwrap()).unwrap();
    let real = highest(&kubeconfig).await;
    local.stop().await;
    let mock = against_mock(folder.path()).await;
    println!("highest memory: {} with the real server, {} with the mock", words::bytes(real), words::bytes(mock));
    let difference = (mock as f64 / real as f64 - 1.0).abs() * 100.0;
    assert!(difference <= DIFFERENCE_PCT, "{real} with the real server, {mock} with the mock");
}
