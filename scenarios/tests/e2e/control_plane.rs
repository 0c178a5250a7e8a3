//! Tests of soaks against a real kube-apiserver. These tests are skipped if etcd and kube-apiserver are missing.

use crate::support::{has_python, program, soak, soak_text};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");

fn assets() -> bool {
    let there = std::env::var_os("KUBEBUILDER_ASSETS").is_some_and(|assets| !assets.is_empty());
    if !there {
        println!("skipped: needs KUBEBUILDER_ASSETS");
    }
    there
}

/// The built-in service passes on a real API server. On a real server a resourceVersion is not a position in the audit
/// log, so the harness finds its own canary writes by their versions.
#[test]
#[ignore = "slow"]
fn the_service_passes_on_a_real_control_plane_and_canaries_are_seen() {
    let Some(service) = program("longhaul-service") else { return };
    if !assets() {
        return;
    }
    let text = std::fs::read_to_string(SMALL).unwrap();
    let cut = text.replace("name: watch-410, at: 4s, resource: packages", "name: net-reset, at: 4s");
    assert_ne!(cut, text);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.yaml");
    std::fs::write(&file, cut).unwrap();
    let soak = soak(&[file.to_str().unwrap(), "--control-plane", "local", "--service", service.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let faults = std::fs::read_to_string(soak.record().join("faults.jsonl")).unwrap();
    let canaries: Vec<_> = faults.lines().filter(|line| line.contains("canary")).collect();
    assert_eq!(canaries.len(), 2, "one before and one after: {}", soak.story());
    assert!(canaries.iter().all(|line| line.contains("the subject saw it after")), "{canaries:#?}");
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    assert!(manifest.contains("kube-apiserver v"), "the record names the real version: {manifest}");
    assert!(soak.record().join("control-plane").read_dir().unwrap().count() > 0, "its logs are kept");
    let rows = soak.rows("intervals.jsonl");
    let api = |name: &str| rows.iter().filter_map(|row| row["api"][name].as_u64()).max().unwrap_or_default();
    assert!(
        api("subjectOpenWatches") > 0 && api("subjectRequests") > 0,
        "its audit log tells what was asked: {rows:?}"
    );
    assert_eq!(soak.finding("events.hotLoop")["verdict"], "pass", "{}", soak.story());
}

/// The real server's audit log shows a client that opens more and more watches. The same client without this bug
/// passes.
#[test]
#[ignore = "slow"]
fn watches_that_become_more_are_counted_on_a_real_control_plane_too() {
    if !assets() || !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("watcher.py"), include_str!("../../subjects/watcher.py")).unwrap();
    let leaks = folder.path().join("leaks.py");
    let script = "\
import runpy, sys, threading, time
w = runpy.run_path(sys.path[0] + '/watcher.py')['Watcher']()
kept = []
def leak():
    while sys.argv[1] == 'leaks':
        kept.append(w.api.open(w.path + '?watch=1&resourceVersion=0', 60))
        time.sleep(1)
threading.Thread(target=leak, daemon=True).start()
w.run()
";
    std::fs::write(&leaks, script).unwrap();
    let played = |how: &str| {
        let text = format!(
            "apiVersion: longhaul/v1\nname: leaks\ndescription: Are watches counted?\nphases: {{warmUp: 6s, steady: 24s, drain: 6s}}\n\
             controlPlane: {{kind: local}}\nsubject: {{command: [python3, {}, {how}], witness: {{kind: http}}}}\n\
             churn: {{resource: packages.longhaul.dev/v1alpha1, population: 20, rate: 5/s, mix: {{create: 1, update: 1, delete: 1}}}}\n\
             budgets: {{openWatches: {{growth: 2}}}}\n",
            leaks.display()
        );
        soak_text(&text, &[])
    };
    let (leaks, clean) = std::thread::scope(|scope| {
        let leaks = scope.spawn(|| played("leaks"));
        let clean = played("keeps");
        (leaks.join().unwrap(), clean)
    });
    leaks.fails_by(&["openWatches.growth"]);
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    assert_eq!(clean.finding("openWatches.growth")["verdict"], "pass", "{}", clean.story());
}

#[test]
#[ignore = "slow"]
fn a_missed_delete_is_a_ghost_on_a_real_control_plane_too() {
    let Some(service) = program("longhaul-service-planted") else { return };
    if !assets() {
        return;
    }
    let arguments = ["--control-plane", "local", "--plant", "missed-delete", "--service", service.to_str().unwrap()];
    let soak = soak(&[&[SMALL][..], &arguments].concat());
    let mut broken = soak.broken();
    // The bug also loses deletions of a package's children: a deletion that waits for them hangs, which is also right.
    broken.retain(|budget| budget != "finalizers.stuck");
    assert_eq!(broken, ["events.ghost"], "{}", soak.story());
}

/// A foreign definition of a custom resource is applied and established before objects of its kind are churned.
#[test]
#[ignore = "slow"]
fn manifests_are_applied_on_a_real_control_plane_too() {
    if program("example-watcher").is_none() || !assets() {
        return;
    }
    let (_folder, path) = crate::strangers::folder();
    let soak = crate::strangers::play(&path, "memcached.yaml", crate::strangers::SAME, &["--control-plane", "local"]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    assert!(manifest.contains("kube-apiserver v"), "{manifest}");
}

#[test]
#[ignore = "slow"]
fn without_the_binaries_the_remedy_is_named() {
    let Some(service) = program("longhaul-service") else { return };
    let mut command = crate::support::longhaul(&["soak", "-q", SMALL, "--control-plane", "local"]);
    let output = command.arg("--service").arg(service).env_remove("KUBEBUILDER_ASSETS").output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{message}");
    assert!(message.contains("KUBEBUILDER_ASSETS"), "{message}");
}
