//! Tests that released programs are optimized: the profile `release` of the root manifest has few exceptions, and those
//! for crates of this workspace optimize the size of code that no measurement runs.
//!
//! The tests read optimization levels and do not measure the effect of these levels. To measure the effect, a test
//! would count instructions, which needs a release build. If a mock crate had optimization level 1, such a count would
//! not fail, because its tolerance for other compilers is larger (decision 023). Reading the manifest is fast and finds
//! every exception.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Maximum number of third-party packages with other optimization levels. Reviewers would not check a longer list of
/// exceptions.
const EXCEPTIONS_MAX: usize = 10;
const PROFILE: &str = "profile.release";
/// Crates of this workspace that may be optimized for size: they read scenarios, start processes, play the controllers of
/// a cluster and write reports. The servers, the load generator, the ledger and the service are not among them.
const FOR_SIZE: [&str; 7] = ["kind", "mock-envtest", "mock-workloads", "record", "reports", "scenario", "scenarios"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The names of the packages in the workspace.
fn members() -> BTreeSet<String> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--no-deps", "--format-version=1", "--offline"]).current_dir(root());
    let output = metadata.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// The tables `[name…]` of a manifest, with their keys. A table must be written as `[name]` and a key as `key = value`;
/// [`broken`] reports any other notation as an unknown table.
fn tables(text: &str, name: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found = BTreeMap::<String, BTreeMap<String, String>>::new();
    let mut table = String::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']', ' ']).replace(['"', '\''], "");
            if table.starts_with(name) {
                found.entry(table.clone()).or_default();
            }
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim().to_owned(), value.trim().trim_matches(['"', '\'']).to_owned());
            if format!("{table}.{key}").starts_with(name) {
                found.entry(table.clone()).or_default().insert(key, value);
            }
        }
    }
    found
}

/// The profile settings among `keys` that make a program slower, or that this test does not know.
fn slower(keys: &BTreeMap<String, String>) -> Vec<String> {
    let slow = keys.iter().filter(|(key, value)| match key.as_str() {
        "opt-level" => *value != "3",
        "debug-assertions" | "overflow-checks" | "incremental" => *value != "false",
        key => key.contains('.') || value.starts_with('{'),
    });
    slow.map(|(key, value)| format!("{key} = {value}")).collect()
}

/// Whether the settings do nothing but optimize for size.
fn is_for_size(keys: &BTreeMap<String, String>) -> bool {
    keys.iter().all(|(key, value)| key == "opt-level" && ["s", "z"].contains(&value.as_str()))
}

/// The forbidden settings in a manifest's profile.
fn broken(manifest: &str, members: &BTreeSet<String>) -> Vec<String> {
    let (mut wrong, mut exceptions) = (Vec::new(), Vec::new());
    for (table, keys) in tables(manifest, PROFILE) {
        let slower = slower(&keys).join(", ");
        let of_package = table.strip_prefix(PROFILE).and_then(|rest| rest.strip_prefix(".package."));
        match of_package.map(|package| package.split(['@', ':']).next().unwrap_or_default()) {
            Some(_) if slower.is_empty() => {}
            Some("*") => wrong.push(format!("[{table}] {slower}: all packages of others at once")),
            Some(package) if FOR_SIZE.contains(&package) && is_for_size(&keys) => exceptions.push(package.to_owned()),
            Some(package) if members.contains(package) => wrong.push(format!("[{table}] {slower}: a crate of ours")),
            Some(package) => exceptions.push(package.to_owned()),
            None if table == PROFILE && slower.is_empty() => {}
            None if table == PROFILE => wrong.push(format!("[{table}] {slower}")),
            // Code that runs during the build.
            None if table == format!("{PROFILE}.build-override") => {}
            None => wrong.push(format!("[{table}]: write [{PROFILE}.package.NAME], which this test reads")),
        }
    }
    if exceptions.len() > EXCEPTIONS_MAX {
        wrong.push(format!("{} exceptions, {EXCEPTIONS_MAX} at most: {}", exceptions.len(), exceptions.join(", ")));
    }
    wrong
}

/// Programs for measurements and released programs are both optimized.
#[test]
fn a_release_is_optimized() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(tables(&manifest, PROFILE).contains_key(PROFILE), "there is no [{PROFILE}]");
    let wrong = broken(&manifest, &members());
    assert!(wrong.is_empty(), "Cargo.toml:\n{}", wrong.join("\n"));
    let config = std::fs::read_to_string(root().join(".cargo/config.toml")).unwrap();
    assert!(tables(&config, "profile").is_empty(), ".cargo/config.toml: profiles are in Cargo.toml alone");
}

#[test]
fn a_slower_release_is_seen() {
    let members = members();
    let broken = |text: &str| broken(text, &members);
    let fine = "[profile.release]\nlto = \"off\"\n[profile.release.package.nom]\nopt-level = 0 # runs once\n[profile.release.package.scenarios]\nopt-level = \"s\"\n[profile.soak]\nopt-level = 1\n[profile.soak.package.mock-kube]\nopt-level = 0\n";
    assert_eq!(broken(fine), Vec::<String>::new());
    for (text, says) in [
        ("[profile.release.package.mock-kube]\nopt-level = 1\n", "a crate of ours"),
        ("[profile.release.package.\"mock-objects@0.1.0\"]\nopt-level = \"s\"\n", "a crate of ours"),
        ("[profile.release.package.mock-store]\noverflow-checks = true\n", "a crate of ours"),
        ("[profile.release.package.scenarios]\nopt-level = 1\n", "a crate of ours"),
        ("[profile.release.package.\"*\"]\nopt-level = 1\n", "all packages"),
        ("[profile.release]\nopt-level = 2\n", "opt-level = 2"),
        ("[profile.release]\ndebug-assertions = true\n", "debug-assertions"),
        ("[profile.release]\npackage.mock-kube.opt-level = 1\n", "package.mock-kube"),
        ("[profile.release.package]\nmock-kube = { opt-level = 1 }\n", "which this test reads"),
        ("[profile]\nrelease = { opt-level = 1 }\n", "which this test reads"),
    ] {
        let wrong = broken(text);
        assert!(wrong.iter().any(|one| one.contains(says)), "{text}: {wrong:?}");
    }
    let many = |count: usize| {
        let tables: Vec<_> = (0..count).map(|one| format!("[{PROFILE}.package.x{one}]\nopt-level = 0\n")).collect();
        tables.concat()
    };
    assert!(broken(&many(EXCEPTIONS_MAX)).is_empty());
    assert_eq!(broken(&many(EXCEPTIONS_MAX + 1)).len(), 1);
}
