//! Tests of `longhaul-service inject`, which brings images into a cluster without a registry. The injector and the
//! injected program are processes; the mock API server and a simulated kubelet run in the test.
//!
//! Each scenario of an injection is a test function (`inject_small`, …). All scenarios of an injection have the same
//! checks: the served content equals the input, no object is left, the injected program's memory stays below its limit,
//! and each chunk is sent once. Each planted bug fails exactly one of the checks.

mod api;
mod kubelet;
mod link;
mod node;
mod pulls;
mod signed;
mod watched;
mod world;

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use mock_faults::{Fault, FaultId};
use serde_json::{Value, json};

use api::ask;
use kubelet::{Files, Tamper};
use watched::{Churn, Watcher};
use world::{Programs, Setup, World};

/// Waits until a condition becomes true without further action of the test.
async fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let until = tokio::time::Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(tokio::time::Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_small() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    let said = world.applied().await;
    assert!(said.contains(&format!("team/app@{} (team/app:1)", world.image.digest)), "{said}");
    assert!(said.contains("the seed will run on node in registry.example/base:1 (seen in default/base)"), "{said}");
    assert_eq!(world.served().await, Vec::<String>::new());
    assert_eq!(world.memory(), Vec::<String>::new());
    let (code, status) = world.status().await;
    assert!(code == 0 && status.contains("chunks: 13 of 13") && status.contains("the seed serves"), "{code}: {status}");
    // The Pod has no rights and uses an existing image, and with a known digest no webhook had to look up a tag.
    let (_, pod) = world.api.get("/api/v1/namespaces/default/pods/longhaul-seed").await;
    assert_eq!(
        (&pod["spec"]["nodeName"], &pod["spec"]["automountServiceAccountToken"]),
        (&json!("node"), &json!(false))
    );
    let (code, said) = world.clean().await;
    assert_eq!((code, world.left().await), (0, Vec::new()), "{said}");
    let (ended, words) = world.kubelet.seen.lock().ended.clone().unwrap();
    assert_eq!(ended, 0, "SIGTERM is no failure: {words}");
    let (code, said) = world.clean().await;
    assert!(code == 0 && said.contains("nothing was there"), "{said}");
}

/// The injected program refuses all requests of a registry client except pulls, as a read-only registry does.
/// `pulls.rs` tests the pulls from the injected program.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn the_seed_is_a_registry() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    world.applied().await;
    let address = world.kubelet.seen.lock().address.unwrap();
    let (blob, _) = world.image.blobs.iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    for (method, path, status, code) in [
        // A layer is no manifest, in any form of request.
        ("GET", &*format!("/v2/team/app/manifests/sha256:{blob}"), 404, "MANIFEST_UNKNOWN"),
        ("GET", "/v2/team/app/blobs/latest", 400, "DIGEST_INVALID"),
        ("GET", "/v2/team/app/blobs/sha256:..%2f..%2fcatalog", 400, "DIGEST_INVALID"),
        ("GET", "/v2/../app/tags/list", 404, "NAME_INVALID"),
        ("GET", "/metrics", 404, "UNSUPPORTED"),
        ("POST", "/v2/team/app/blobs/uploads/", 405, "UNSUPPORTED"),
        ("PUT", "/v2/team/app/manifests/1", 405, "UNSUPPORTED"),
        ("DELETE", "/v2/team/app/manifests/1", 405, "UNSUPPORTED"),
    ] {
        let answer = ask(address, method, path, None).await.unwrap();
        let (head, body) = (answer.status().as_u16(), String::from_utf8_lossy(answer.body()));
        assert_eq!(
            (head, answer.headers()["content-type"].as_bytes()),
            (status, &b"application/json"[..]),
            "{method} {path}: {body}"
        );
        assert!(body.starts_with(&format!(r#"{{"errors":[{{"code":"{code}""#)), "{method} {path}: {body}");
    }
}

/// With more than 999 chunks, the index still decides the order of the chunks.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_large() {
    let Some(programs) = Programs::find() else { return };
    let setup = Setup { layer_bytes: 6_600_000, chunk_bytes: 4_096, ..Setup::new(programs) };
    let world = World::new(setup).await;
    world.applied().await;
    assert!(world.chunks().await.len() >= 1_500);
    assert_eq!(world.sent(), world.chunks().await.len(), "each chunk is sent once");
    assert_eq!((world.served().await, world.memory()), (Vec::new(), Vec::new()));
    let (code, said) = world.clean().await;
    assert_eq!((code, world.left().await), (0, Vec::new()), "{said}");
}

/// The allowed growth of the watching service while large foreign objects come and go. The Packages that the service
/// watches need a few kilobytes.
const WATCHER_GROWTH_KIB_MAX: u64 = 8 << 10;

/// A service that watches Packages in the same API server ignores the injector's chunks. The watching service misses no
/// event, breaks off no watch, and its memory hardly grows.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_while_watched() {
    let Some(programs) = Programs::find() else { return };
    let setup = Setup { layer_bytes: 98_500_000, chunk_bytes: 65_536, ..Setup::new(programs) };
    let world = World::new(setup).await;
    let watcher = Watcher::start(&world).await;
    let commits = watched::commits(&world, "last");
    watcher.forget_peak();
    let before = watcher.peak_kib();
    let lists = watcher.metric("longhaul_watch_lists_total").await;
    let churn = Churn::start(Arc::clone(&world.api));
    world.applied().await;
    let chunks = world.chunks().await.len();
    assert!(chunks >= 1_500, "{chunks}");
    let (code, said) = world.clean().await;
    assert_eq!((code, world.left().await), (0, Vec::new()), "{said}");
    churn.stop().await;
    let last =
        json!({"apiVersion": "longhaul.dev/v1alpha1", "kind": "Package", "metadata": {"name": "last"}, "spec": {}});
    world.api.create(watched::PATH, &last).await;
    let commits = tokio::time::timeout(Duration::from_secs(30), commits).await.expect("the last commit comes").unwrap();
    eventually("every version of a Package reaches the service", || commits.is_subset(&watcher.seen())).await;
    let peak = watcher.peak_kib();
    println!(
        "{chunks} chunks came and went; {} versions of Packages; the service needed {before} KiB before and {peak} KiB at most",
        commits.len()
    );
    assert!(commits.len() > 50, "{}", commits.len());
    assert!(peak <= before + WATCHER_GROWTH_KIB_MAX, "{peak} KiB, {before} before");
    assert_eq!(watcher.metric("longhaul_watch_lost_events_total").await, 0);
    assert_eq!(watcher.metric("longhaul_watch_lists_total").await, lists, "no watch had to begin anew");
}

/// A change to the mounted files of a payload.
type Damage = fn(&mut Files);

/// If a mounted chunk differs from the sent chunk, the injected program names the chunk and serves nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_corrupt() {
    let cases: [(&str, Damage, i32, &str); 5] = [
        ("corrupt", flipped, 65, "chunk 00003 (4 of 13): corrupt: "),
        ("missing", |files| drop(files.remove("00003")), 66, "chunk 00003 (4 of 13): missing"),
        ("truncated", |files| files.get_mut("00003").unwrap().truncate(100), 65, "truncated: 100 of 16384 bytes"),
        ("doubled", doubled, 65, "chunk 00003 (4 of 13): doubled: it holds the bytes of chunk 00002"),
        ("swapped", swapped, 65, "chunk 00003 (4 of 13): swapped with chunk 00004"),
    ];
    for (name, change, code, message) in cases {
        let Some(programs) = Programs::find() else { return };
        let world = World::new(Setup { tamper: of_chunks(change), ..Setup::new(programs) }).await;
        let (exit, said) = world.run(world.apply(&[])).await;
        assert!(exit == 1 && said.contains(message), "{name}: {exit}: {said}");
        let (ended, words) = world.kubelet.seen.lock().ended.clone().unwrap();
        assert!(ended == code && words.contains(message), "{name}: {ended}: {words}");
        assert_eq!(world.served().await, ["nothing is served"], "{name}");
        let (exit, said) = world.status().await;
        assert!(exit == 1 && said.contains(message), "{name}: {said}");
        assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()), "{name}");
    }
}

/// A change to the volume that holds chunk 3.
fn of_chunks(change: fn(&mut Files)) -> Arc<Tamper> {
    Arc::new(move |files: &mut Files| {
        if files.contains_key("00003") {
            change(files);
        }
    })
}

fn flipped(files: &mut Files) {
    files.get_mut("00003").unwrap()[1_000] ^= 1;
}

fn doubled(files: &mut Files) {
    let other = files["00002"].clone();
    files.insert("00003".to_owned(), other);
}

fn swapped(files: &mut Files) {
    let (a, b) = (files["00003"].clone(), files["00004"].clone());
    files.extend([("00003".to_owned(), b), ("00004".to_owned(), a)]);
}

/// If the injector is killed after any chunk, the same command continues after this chunk and sends no existing chunk
/// again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_killed() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup { layer_bytes: 600_000, ..Setup::new(programs) }).await;
    let mut sent = 0;
    for after in [1, 3, 5] {
        world.killed_after(after).await;
        sent += world.sent();
        let (code, status) = world.status().await;
        assert!(code == 1 && status.contains("missing: from "), "{code}: {status}");
    }
    let said = world.applied().await;
    sent += world.sent();
    let chunks = world.chunks().await.len();
    assert!(!said.contains("kept: 0"), "{said}");
    // A chunk that was on its way when the injector was killed may be sent once more.
    assert!((chunks..=chunks + 3).contains(&sent), "{sent} requests for {chunks} chunks");
    assert_eq!(world.served().await, Vec::<String>::new());
    let again = world.applied().await;
    assert!(
        again
            .contains(&format!("sent: 0 chunks in 0 requests of 0 bytes together (0 refused for now); kept: {chunks}")),
        "{again}"
    );
    assert_eq!(world.kubelet.seen.lock().started, 1, "a seed that serves is left alone");
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
    // A run that died is removed as well.
    world.killed_after(4).await;
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
}

/// An existing chunk with wrong bytes is found and sent again. Chunks of another injection are not used.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_chunk_that_was_changed_is_sent_again_and_runs_are_not_mixed() {
    let Some(programs) = Programs::find() else { return };
    let mut world = World::new(Setup::new(programs)).await;
    world.killed_after(6).await;
    let path = "/api/v1/namespaces/default/configmaps/longhaul-seed-payload-00002";
    let (_, mut object) = world.api.get(path).await;
    // It is immutable, so a change needs a deletion first; the annotation still states that all is well.
    world.api.call(Method::DELETE, path, None).await;
    object["binaryData"]["00002"] = "AAAA".into();
    object["metadata"]["resourceVersion"].take();
    object["metadata"]["managedFields"].take();
    world.api.create("/api/v1/namespaces/default/configmaps", &object).await;
    world.chunk_bytes = 8_192;
    let (code, said) = world.run(world.apply(&[])).await;
    assert!(code == 1 && said.contains("would be mixed with") && said.contains("`inject clean`"), "{code}: {said}");
    world.chunk_bytes = 16_384;
    world.applied().await;
    assert_eq!(world.served().await, Vec::<String>::new());
    world.chunk_bytes = 8_192;
    let (code, said) = world.run(world.apply(&["--replace"])).await;
    assert!(code == 0 && said.contains("objects of an earlier run"), "{code}: {said}");
    assert_eq!(world.served().await, Vec::<String>::new());
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
}

/// Foreign objects with the injector's names or labels are neither used nor deleted.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn what_belongs_to_others_stays() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    let of = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "b"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let ours =
        json!({"app.kubernetes.io/managed-by": "longhaul-inject", "app.kubernetes.io/instance": "longhaul-seed"});
    for name in ["longhaul-seed-index", "longhaul-seed-binary", "longhaul-seed-payload-00002"] {
        // The index is known by its labels alone: the other objects belong to it.
        let labels = if name.ends_with("index") { json!({}) } else { ours.clone() };
        world.api.create(path, &of(name, labels)).await;
        let (code, said) = world.run(world.apply(&["--replace"])).await;
        assert!(code == 1 && said.contains(name) && said.contains("under another --name"), "{code}: {said}");
        assert_eq!(world.api.get(&format!("{path}/{name}")).await.1["data"], json!({"a": "b"}));
        world.api.call(Method::DELETE, &format!("{path}/{name}"), None).await;
    }
    world
        .api
        .create(
            path,
            &of("theirs", {
                let mut labels = ours.clone();
                labels["longhaul.dev/part"] = "payload".into();
                labels
            }),
        )
        .await;
    world.applied().await;
    let (code, said) = world.clean().await;
    assert!(code == 0 && said.contains("configmaps/theirs has the labels of this injection"), "{code}: {said}");
    assert_eq!(world.left().await, ["configmaps/theirs"]);
}

/// If the API server refuses requests, hangs, reports conflicts or is slow, all chunks still arrive, and the injector
/// waits as long as the server's `Retry-After` says.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn inject_sick_apiserver() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup { layer_bytes: 600_000, ..Setup::new(programs) }).await;
    let refuses = |status: u16, every: &str| json!({"name": "http-error", "on": "patch", "status": status, "every": every, "count": 6});
    let mut asks_to_wait = refuses(429, "7th");
    asks_to_wait["retryAfter"] = "1s".into();
    let faults = [
        asks_to_wait,
        refuses(503, "5th"),
        refuses(500, "11th"),
        refuses(409, "13th"),
        json!({"name": "delay-answer", "on": "any", "delay": "40ms"}),
        json!({"name": "no-answer", "on": "any", "nth": 20, "for": "3s"}),
    ];
    let faults = faults.map(|fault| serde_json::from_value::<Fault>(fault).unwrap());
    for (number, fault) in faults.iter().enumerate() {
        world.server.faults().begin(FaultId(u32::try_from(number).unwrap()), fault).unwrap();
    }
    let (code, said) = world.run(world.apply(&[])).await;
    assert_eq!(code, 0, "{said}");
    for number in 0..4 {
        assert!(world.server.faults().hits(FaultId(number)) > 0, "fault {number} was never hit: {said}");
    }
    assert!(!said.contains("(0 refused for now)"), "{said}");
    assert_eq!(world.served().await, Vec::<String>::new());
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
}

/// If an injection is impossible, the message has the reason and a remedy.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn what_stands_in_the_way_is_explained() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    let (code, said) = world.run(world.apply(&["--node", "nowhere"])).await;
    assert!(code == 1 && said.contains("no node accepts the seed: node: another node is asked for"), "{code}: {said}");
    assert!(
        world
            .api
            .merge(
                "/api/v1/nodes/node",
                &json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}})
            )
            .await
    );
    let (code, said) = world.run(world.apply(&[])).await;
    assert!(code == 1 && said.contains("it has the taint k=v:NoExecute (see --tolerate)"), "{code}: {said}");
    let (code, said) = world.run(world.apply(&["--tolerate", "k", "--name", "other", "--namespace", "nowhere"])).await;
    assert!(code == 1 && said.contains("kubectl create namespace"), "{code}: {said}");
    assert_eq!(world.clean().await.0, 0);
    let (code, said) = world.run(world.apply(&["--tolerate", "k", "--service", "cluster-ip"])).await;
    assert!(code == 0 && said.contains(":5000/team/app@sha256:"), "{code}: {said}");
    // A chunk that was removed is named by the kubelet, and by the injector.
    assert_eq!((world.clean().await.0, world.left().await), (0, Vec::new()));
}

/// Deleting the index deletes all other objects of the injection, because the index owns them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn one_delete_takes_all() {
    let Some(programs) = Programs::find() else { return };
    let world = World::new(Setup::new(programs)).await;
    world.applied().await;
    let path = "/api/v1/namespaces/default/configmaps/longhaul-seed-index?propagationPolicy=Background";
    world.api.call(Method::DELETE, path, None).await;
    let until = tokio::time::Instant::now() + Duration::from_secs(40);
    while !world.left().await.is_empty() {
        assert!(tokio::time::Instant::now() < until, "still there: {:?}", world.left().await);
    }
    eventually("the seed ends", || world.kubelet.seen.lock().ended.is_some()).await;
}

/// Each bug that can be planted in the injector or the injected program fails exactly one check.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn planted_bugs_are_found() {
    let Some(programs) = Programs::planted() else { return };
    let mut setup = Setup::new(programs);
    setup.environment = vec![("LONGHAUL_PLANTED_BUG".to_owned(), "skips-a-checksum".to_owned())];
    setup.tamper = of_chunks(flipped);
    let world = World::new(setup).await;
    let (code, said) = world.run(world.apply(&[])).await;
    assert_eq!(code, 0, "a seed that does not compare serves what it got: {said}");
    let wrong = world.served().await;
    assert!(wrong.len() == 1 && wrong[0].contains("/blobs/sha256:"), "{wrong:?}");
    let mut clean = world.clean_command();
    clean.env("LONGHAUL_PLANTED_BUG", "leaves-a-chunk");
    let (code, said) = world.run(clean).await;
    let left = world.left().await;
    assert!(code == 0 && left.len() == 1 && left[0].contains("-payload-"), "{code} {said}: {left:?}");
    // It has no owner any more, so its origin is unknown: this is reported, and it stays.
    let (code, said) = world.clean().await;
    assert!(
        code == 0 && said.contains("does not belong to it: it is kept") && world.left().await == left,
        "{code} {said}"
    );
    // The clean programs have no bugs to switch on.
    let Some(clean) = Programs::find() else { return };
    let mut command = tokio::process::Command::new(&clean.service);
    command.args(["inject", "status"]).env("LONGHAUL_PLANTED_BUG", "leaves-a-chunk");
    assert_eq!(command.output().await.unwrap().status.code(), Some(64));
}
