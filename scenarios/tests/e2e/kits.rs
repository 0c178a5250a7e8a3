//! Tests of the kits with which tests in Go, Python and Java start `longhaul envtest`. Each kit runs its own tests,
//! among them one example that is equal in all languages. The tests of the kit for Rust are in the kit's own crate.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::operator::copy;
use crate::support::{has_python, itself, story};

/// A copy of a kit, so that no build writes into the checkout.
fn kit(language: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let kit = folder.path().join(language);
    std::fs::create_dir(&kit).unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("kits").join(language), &kit);
    (folder, kit)
}

/// Runs a command of a kit in a folder, with the `longhaul` that is under test. The variable `CI` is set, because
/// without it a kit skips its tests if `longhaul` is missing.
fn run(command: &mut Command, folder: &Path) -> Output {
    command.current_dir(folder).stdin(Stdio::null()).env("LONGHAUL", itself()).env("CI", "true");
    command.env_remove("LONGHAUL_RUNS").output().unwrap()
}

#[track_caller]
fn passes(output: &Output) {
    assert!(output.status.success(), "{}", story(output));
}

#[test]
#[ignore = "slow: Go builds client-go the first time"]
fn the_kit_for_go_and_its_example_pass() {
    let Some(go) = installer::on_path("go") else {
        println!("skipped: needs a Go toolchain");
        return;
    };
    let (_folder, kit) = kit("go");
    passes(&run(Command::new(&go).args(["vet", "."]), &kit));
    passes(&run(Command::new(&go).args(["test", "-count=1", "."]), &kit));
    let example = kit.join("example");
    if !run(Command::new(&go).args(["mod", "download"]), &example).status.success() {
        println!("skipped: needs k8s.io/client-go v0.37.0 from Go's proxy");
        return;
    }
    passes(&run(Command::new(&go).args(["test", "-count=1", "."]), &example));
}

#[test]
#[ignore = "slow: pip installs a client the first time"]
fn the_kit_for_python_and_its_example_pass() {
    if !has_python() {
        return;
    }
    let (_folder, kit) = kit("python");
    passes(&run(Command::new("python3").args(["-m", "unittest"]), &kit));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let package = installer::package("kubernetes", "37.0.2").unwrap();
    let installed = match runtime.block_on(package.install()) {
        Ok(installed) => installed,
        Err(missing) => {
            println!("skipped: needs {missing}");
            return;
        }
    };
    let mut pytest = Command::new(&installed.interpreter);
    pytest.args(["-m", "pytest"]);
    if !run(pytest.arg("--version"), &kit).status.success() {
        println!("skipped: needs pytest");
        return;
    }
    let path = std::env::join_paths([&kit, &installed.folder]).unwrap();
    let mut pytest = Command::new(&installed.interpreter);
    pytest.args(["-m", "pytest", "-p", "longhaul", "."]).env("PYTHONPATH", path);
    passes(&run(&mut pytest, &kit));
}

#[test]
#[ignore = "slow: Maven fetches a client the first time"]
fn the_kit_for_java_and_its_example_pass() {
    let Some(maven) = installer::on_path("mvn") else {
        println!("skipped: needs Maven");
        return;
    };
    let (_folder, kit) = kit("java");
    let output = run(Command::new(maven).args(["-B", "test"]), &kit);
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("Could not resolve") || said.contains("Could not transfer") {
        println!("skipped: needs io.fabric8:kubernetes-client 7.5.2 from Maven");
        return;
    }
    assert!(output.status.success() && said.contains("Tests run: 6, Failures: 0, Errors: 0"), "{}", story(&output));
}
