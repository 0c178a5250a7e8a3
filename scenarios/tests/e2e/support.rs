//! Running `longhaul` as a user does, and reading what it left behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A run of `longhaul` with its own folder for records.
pub struct Soak {
    pub output: Output,
    runs: tempfile::TempDir,
}

/// Where the programs lie that are tested: `cargo xtask test` builds them as `cargo xtask soak` does, because unoptimized ones would
/// keep the machine busy for most of the tests' time; else where cargo puts all programs of this profile.
pub fn programs() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().unwrap();
    std::env::var_os("LONGHAUL_PROGRAMS").map_or(built.to_owned(), PathBuf::from)
}

/// The program `longhaul` itself.
pub fn itself() -> PathBuf {
    programs().join("longhaul")
}

/// A program beside it. `None` (and a message) when a test is run without `cargo xtask test`, which builds them.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = programs().join(name);
    if path.is_file() {
        return Some(path);
    }
    println!("skipped: needs {name} (run `cargo xtask test`, or build it first)");
    None
}

/// `longhaul` with these arguments, ready to start.
pub fn longhaul(arguments: &[&str]) -> Command {
    let mut command = Command::new(itself());
    command.args(arguments).stdin(Stdio::null()).env_remove("GITHUB_STEP_SUMMARY");
    command
}

/// The oldest kube-apiserver that software of today is played on: clients of today ask for what older ones have not.
const CURRENT: u32 = 34;

/// Whether `$KUBEBUILDER_ASSETS` has a kube-apiserver of today. False (and a message) when it has not.
pub fn has_current_apiserver() -> bool {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|assets| !assets.is_empty()) else {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return false;
    };
    let said = Command::new(Path::new(&assets).join("kube-apiserver")).arg("--version").output();
    let version = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    let is_current = minor.is_some_and(|minor| minor >= CURRENT);
    if !is_current {
        println!("skipped: needs kube-apiserver 1.{CURRENT} (this is {version:?})");
    }
    is_current
}

/// Runs `longhaul soak` to its end.
pub fn soak(arguments: &[&str]) -> Soak {
    let runs = tempfile::tempdir().unwrap();
    let mut command = longhaul(&["soak", "--quiet", "--runs"]);
    let output = command.arg(runs.path()).args(arguments).output().unwrap();
    Soak { output, runs }
}

impl Soak {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The only record of the run.
    pub fn record(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.runs.path()).unwrap();
        entries.next().expect("the run left a record").unwrap().path()
    }

    pub fn verdict(&self) -> Value {
        verdict(&self.record())
    }

    /// The budgets that are broken, sorted.
    pub fn broken(&self) -> Vec<String> {
        findings(&self.verdict(), "fail")
    }

    /// Everything there is to say when a test fails.
    pub fn story(&self) -> String {
        format!("exit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code(), self.stdout(), self.stderr())
    }
}

pub fn verdict(record: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(record.join("verdict.json")).unwrap()).unwrap()
}

/// The budgets whose finding has this verdict, sorted and without repetition.
pub fn findings(verdict: &Value, wanted: &str) -> Vec<String> {
    let findings = verdict["findings"].as_array().unwrap();
    let mut budgets: Vec<String> = findings
        .iter()
        .filter(|finding| finding["verdict"] == wanted)
        .map(|finding| finding["budget"].as_str().unwrap().to_owned())
        .collect();
    budgets.sort();
    budgets.dedup();
    budgets
}
