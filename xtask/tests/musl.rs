//! Tests that the code which calls the C library compiles for the C library of released programs, musl.
//!
//! Musl declares some types differently from glibc. A release is built seldom, so this test finds such a difference
//! earlier. It checks the one crate of the workspace with many such calls and without dependencies in C.

use std::path::Path;
use std::process::Command;

const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];
const PACKAGE: &str = "mock-clock";

/// Whether Rust's standard library for a target is installed.
fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print=target-libdir", "--target", target]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

#[test]
fn code_with_calls_of_the_c_library_compiles_for_musl() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is below the root");
    let folder = tempfile::tempdir().unwrap();
    for target in TARGETS {
        if !is_installed(target) {
            println!("skipped: needs rustup target add {target}");
            continue;
        }
        let mut check = Command::new(env!("CARGO"));
        check.args(["check", "--quiet", "--package", PACKAGE, "--target", target, "--target-dir"]).arg(folder.path());
        let output = check.current_dir(root).output().unwrap();
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
