//! Tests of Gatekeeper's own client package (`gatekeeper/main.go`) with this project's provider: each understands the
//! messages of the other.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::external::provider;
use super::world::{Pki, at, has, signed};
use crate::support::signed::Key;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: builds a Go program that holds OPA"]
async fn gatekeepers_own_client_reads_our_answers() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/topology/gatekeeper");
    if !has("go") {
        eprintln!("skipped: needs go");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("gatekeeper");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(&source).env("GOFLAGS", "-mod=readonly");
    let built = build.output().unwrap();
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        eprintln!("skipped: needs the modules of gatekeeper/go.mod, from the Go proxy or the cache: {said}");
        return;
    }
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, digest) = signed(&key).await;
    let provider = provider(&registry, &pki, &key).await;
    let (good, bad) = (registry.image("good"), registry.image("bad"));
    let mut ask = tokio::process::Command::new(&program);
    ask.arg(format!("https://{}/externaldata/v1beta1", at(&provider, "validator")));
    ask.args([pki.path("ca.crt"), pki.path("client.crt"), pki.path("client.key")]).args([&good, &bad]);
    let asked = ask.output().await.unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let said: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let (raw, rego) = (&said["raw"], &said["rego"]);
    assert_eq!(raw["kind"], "ProviderResponse");
    // The input of a constraint's template: pairs of key and value, and pairs of key and error.
    assert_eq!(rego["responses"][0][0], good.as_str(), "{rego}");
    assert_eq!(rego["responses"][0][1]["digest"], digest.as_str(), "{rego}");
    assert_eq!(rego["errors"][0][0], bad.as_str(), "{rego}");
    assert!(rego["errors"][0][1].as_str().unwrap().starts_with("unsigned: "), "{rego}");
    assert_eq!((&rego["status_code"], &rego["system_error"]), (&200.into(), &"".into()), "{rego}");
}
