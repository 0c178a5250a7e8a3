//! Runs `longhaul` as a user does, and reads the results.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A finished run of `longhaul`, with a folder of its own for records.
pub struct Soak {
    pub output: Output,
    runs: tempfile::TempDir,
}

/// The folder of the tested programs. `cargo xtask test` builds these programs optimized, as `cargo xtask soak` does,
/// because slower programs would keep the machine busy. Under plain `cargo test` this folder is Cargo's output folder
/// for the tests' profile.
pub fn programs() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_longhaul")).parent().unwrap();
    std::env::var_os("LONGHAUL_PROGRAMS").map_or(built.to_owned(), PathBuf::from)
}

pub fn itself() -> PathBuf {
    programs().join("longhaul")
}

/// The path of a tested program. Prints a message and returns `None` if the program was not built, because the test
/// does not run by `cargo xtask test`.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = programs().join(name);
    if path.is_file() {
        return Some(path);
    }
    println!("skipped: needs {name} (run `cargo xtask test`, or build it first)");
    None
}

/// The command `longhaul` with these arguments, not yet started.
pub fn longhaul(arguments: &[&str]) -> Command {
    let mut command = Command::new(itself());
    command.args(arguments).stdin(Stdio::null()).env_remove("GITHUB_STEP_SUMMARY");
    command
}

/// A child process that is killed on drop.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether Python is installed. Prints a message if Python is missing.
pub fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: needs python3");
    }
    found
}

/// Exit code and output of a program, for the message of a failing test.
pub fn story(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("exit {:?}\n{}\n{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub fn rows(record: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(record.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a run whose record is in this folder sends load already.
pub fn sends(runs: &Path) -> bool {
    let record = std::fs::read_dir(runs).ok().and_then(|mut all| all.next()).map(|one| one.unwrap().path());
    let rows = record.and_then(|record| std::fs::read_to_string(record.join("intervals.jsonl")).ok());
    rows.is_some_and(|rows| rows.lines().count() > 2)
}

/// Every commit of a run with `--keep-events`.
pub fn commits(record: &Path) -> Vec<Value> {
    let packed = std::fs::File::open(record.join("commits.jsonl.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(packed).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The oldest minor version of kube-apiserver that current client software supports. Current clients use features that
/// older kube-apiservers lack.
const CURRENT: u32 = 34;

/// Whether `$KUBEBUILDER_ASSETS` has kube-apiserver of version [`CURRENT`] or later. Prints a message if it is not
/// there.
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

/// Runs `longhaul soak` with a scenario that is given as text.
pub fn soak_text(text: &str, arguments: &[&str]) -> Soak {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    soak(&[&[file.path().to_str().unwrap()][..], arguments].concat())
}

impl Soak {
    /// Checks that the run failed with exactly these budgets broken.
    #[track_caller]
    pub fn fails_by(&self, broken: &[&str]) {
        assert_eq!(self.code(), Some(1), "{}", self.story());
        assert_eq!(self.broken(), broken, "{}", self.story());
    }

    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The folder with the only record of the run.
    pub fn record(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.runs.path()).unwrap();
        entries.next().expect("the run left a record").unwrap().path()
    }

    pub fn verdict(&self) -> Value {
        verdict(&self.record())
    }

    /// The broken budgets, sorted.
    pub fn broken(&self) -> Vec<String> {
        findings(&self.verdict(), "fail")
    }

    pub fn finding(&self, budget: &str) -> Value {
        let verdict = self.verdict();
        let found = verdict["findings"].as_array().unwrap().iter().find(|finding| finding["budget"] == budget);
        found.unwrap_or_else(|| panic!("{}", self.story())).clone()
    }

    pub fn rows(&self, file: &str) -> Vec<Value> {
        rows(&self.record(), file)
    }

    /// Output, exit code and findings of the run, for the message of a failing test.
    pub fn story(&self) -> String {
        story(&self.output)
    }
}

pub fn verdict(record: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(record.join("verdict.json")).unwrap()).unwrap()
}

/// The budgets that have the verdict `wanted`, sorted and without repetition.
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
