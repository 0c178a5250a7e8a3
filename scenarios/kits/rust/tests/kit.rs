//! Tests of the kit for Rust with a running API server. The tests send requests by curl, so that only the kit is
//! tested.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it must be")]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use longhaul_kit::{Error, Fault, Longhaul, Plane};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Starts the API server by the `longhaul` that `cargo xtask test` built. Prints a message and returns `None` if
/// `longhaul` or curl is missing.
fn start(longhaul: &Longhaul) -> Option<Plane> {
    if !Command::new("curl").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: needs curl");
        return None;
    }
    let built = std::env::var_os("LONGHAUL_PROGRAMS").map(|folder| PathBuf::from(folder).join("longhaul"));
    let started = built.map_or_else(|| longhaul.clone().start(), |program| longhaul.clone().start_with(&program));
    match started {
        Ok(plane) => Some(plane),
        Err(Error::NotInstalled) => {
            println!("skipped: needs longhaul");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The HTTP status codes of curl's requests over one connection.
fn statuses(plane: &Plane, method: &str, urls: &str, body: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code} "])
        .arg("--cacert")
        .arg(plane.authority());
    curl.args(["--request", method, "--header", "Content-Type: application/apply-patch+yaml"]);
    if !body.is_empty() {
        curl.args(["--data", body]);
    }
    let output = curl.arg(format!("{}{urls}", plane.server())).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_plane_without_faults_passes() {
    let Some(plane) = start(&Longhaul::new()) else { return };
    assert_eq!(statuses(&plane, "GET", "/api/v1/namespaces/default", ""), "200");
    let verdict = plane.stop();
    assert!(verdict.passed() && verdict.record().is_some(), "{verdict}");
}

#[test]
fn a_fault_by_name_and_keys_is_met() {
    let refusal =
        Fault::named("http-error").on("configmaps").with("on", "list").with("status", "500").with("count", "1");
    let Some(plane) = start(&Longhaul::new().fault(refusal)) else { return };
    let both = [(); 2].map(|()| statuses(&plane, "GET", CONFIG_MAPS, ""));
    assert_eq!(both, ["500", "200"]);
}

#[test]
fn a_fault_that_hits_nothing_is_undecided() {
    let never = Fault::named("watch-410").at(Duration::from_hours(1));
    let Some(plane) = start(&Longhaul::new().fault(never.clone())) else { return };
    let verdict = plane.stop();
    assert!(verdict.code == 2 && verdict.to_string().contains("watch-410"), "{verdict}");
    // Dropped without a look, it fails its test.
    let Some(plane) = start(&Longhaul::new().fault(never.clone())) else { return };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(plane))).is_err());
    drop(start(&Longhaul::new().fault(never).allow_undecided()));
}

#[test]
fn a_hot_loop_fails() {
    let Some(plane) = start(&Longhaul::new()) else { return };
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hot"},"data":{"one":"two"}}"#;
    let began = Instant::now();
    // Each further manager of the field is another version; curl expands the range over one connection.
    let written = statuses(&plane, "PATCH", &format!("{CONFIG_MAPS}/hot?fieldManager=n[1-60]"), body);
    let took = began.elapsed();
    assert!(written.starts_with("201 200"), "{written}");
    let verdict = plane.stop();
    if took > Duration::from_secs(2) {
        println!("skipped: needs a machine with time for 60 writes within 2 s");
        return;
    }
    assert!(verdict.code == 1 && verdict.to_string().contains("hot loop"), "{verdict}");
}

#[test]
fn a_mistake_in_a_fault_is_shown() {
    let built = std::env::var_os("LONGHAUL_PROGRAMS").map(|folder| PathBuf::from(folder).join("longhaul"));
    let wrong = Longhaul::new().fault(Fault::named("watch-411"));
    match built.map_or_else(|| wrong.clone().start(), |program| wrong.clone().start_with(&program)) {
        Err(Error::NotInstalled) => println!("skipped: needs longhaul"),
        Err(error) => assert!(error.to_string().contains("watch-411"), "{error}"),
        Ok(_) => panic!("it started with a fault that does not exist"),
    }
}
