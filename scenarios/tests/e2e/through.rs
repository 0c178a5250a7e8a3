//! Tests of load through the API server, on the mock and on a real kube-apiserver. Images in stored objects have
//! digests, and a run reports each image without a digest.

use crate::support::{Soak, program, soak};

const THROUGH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/through.yaml");

fn run(service: &str, more: &[&str]) -> Option<Soak> {
    let service = program(service)?;
    Some(soak(&[&[THROUGH, "--service", service.to_str().unwrap()], more].concat()))
}

/// Number of stored objects in all intervals of the record.
fn stored(soak: &Soak) -> u64 {
    soak.rows("intervals.jsonl").iter().filter_map(|row| row["admission"]["stored"]["versions"].as_u64()).sum()
}

#[test]
#[ignore = "slow"]
fn everything_is_pinned_and_no_right_is_missing() {
    let Some(soak) = run("longhaul-service", &[]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(stored(&soak) > 50, "{}", soak.story());
    assert!(!soak.stdout().contains("answered 403"), "the manifests give every right: {}", soak.story());
}

#[test]
#[ignore = "slow"]
fn a_wrong_allow_is_stored_unpinned_and_nothing_else() {
    let Some(soak) = run("longhaul-service-planted", &["--plant", "wrong-allow"]) else { return };
    soak.fails_by(&["admission.unpinned"]);
    assert!(soak.stdout().contains("was stored with the image"), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn everything_is_pinned_on_a_real_control_plane_too() {
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none_or(|assets| assets.is_empty()) {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return;
    }
    let Some(soak) = run("longhaul-service", &["--control-plane", "local"]) else { return };
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(stored(&soak) > 50, "{}", soak.story());
    assert!(!soak.stdout().contains("answered 403"), "{}", soak.story());
}
