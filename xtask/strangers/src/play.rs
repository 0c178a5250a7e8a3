//! Tries one published program from the download to a verdict: fetch, init, build, soak, and the program's own test
//! suite.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bounded::{Ended, Limits};
use crate::facts::Facts;
use crate::source::{self, Checkout, Got};
use crate::table::Stranger;

/// The scenario file that `longhaul init` writes.
const FILE: &str = "longhaul.yaml";
/// Number of last output lines of a program that docs/measured/strangers.md shows.
const LAST_WORDS: usize = 3;
/// Maximum number of characters of an output line in docs/measured/strangers.md.
const LINE_MAX: usize = 200;
/// The exit codes with which `longhaul` reports a verdict.
const VERDICTS: std::ops::RangeInclusive<i32> = 0..=3;

/// The outcome of trying a published program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Played {
    pub(crate) name: String,
    pub(crate) published: String,
    /// The revision of Longhaul that tried the program; empty if the revision is not in git.
    pub(crate) revision: String,
    /// The requirement that the machine lacks, if the program was skipped.
    pub(crate) needs: Option<String>,
    /// The step that failed, and why; `None` if there is a verdict.
    pub(crate) stopped: Option<Stopped>,
    pub(crate) fetch_s: u64,
    pub(crate) init_s: u64,
    pub(crate) build_s: u64,
    pub(crate) soak_s: u64,
    /// Whether `init` left the build of the program to the user.
    pub(crate) built_by_hand: bool,
    /// Number of lines with `check:` in the scenario file that `init` wrote.
    pub(crate) checks: u64,
    pub(crate) facts: Option<Facts>,
    /// The result of the program's own test suite, if it ran.
    pub(crate) suite: Option<String>,
}

/// The step of trying a program that failed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stopped {
    /// The name of the step: `fetch`, `init`, `build` or `soak`.
    pub(crate) step: String,
    pub(crate) why: String,
}

/// The paths and settings of a trial.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) longhaul: PathBuf,
    pub(crate) revision: String,
    /// The flags that answer the questions of `init` in advance.
    pub(crate) init_flags: Vec<&'static str>,
    /// Whether `longhaul init` accepts the main package as an argument.
    pub(crate) takes_main: bool,
    /// The cache folder, with one folder for each published program.
    pub(crate) cache: PathBuf,
    /// Whether the programs' own test suites run too.
    pub(crate) suites: bool,
}

impl Ground {
    fn longhaul(&self, checkout: &Checkout) -> Command {
        let mut command = Command::new(&self.longhaul);
        command.current_dir(&checkout.folder).envs(checkout.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Tries one published program. A failure of the published program is a result, not an error.
    ///
    /// # Errors
    ///
    /// The error is one of this machine: a file cannot be written, or a program cannot be started.
    pub(crate) fn play(&self, stranger: &Stranger, limits: &Limits) -> Result<Played> {
        let home = self.cache.join(stranger.folder());
        let mut played = Played {
            name: stranger.name.clone(),
            published: stranger.published(),
            revision: self.revision.clone(),
            ..Played::default()
        };
        let began = Instant::now();
        let got = source::checkout(stranger, &home, limits)?;
        played.fetch_s = began.elapsed().as_secs();
        match got {
            Got::Missing(what) => played.needs = Some(what),
            Got::Checkout(checkout) => {
                played.stopped = self.through(stranger, &checkout, &home, limits, &mut played)?;
            }
        }
        Ok(played)
    }

    fn through(
        &self,
        stranger: &Stranger,
        checkout: &Checkout,
        home: &Path,
        limits: &Limits,
        played: &mut Played,
    ) -> Result<Option<Stopped>> {
        let began = Instant::now();
        forget(&checkout.folder)?;
        let log = home.join("init.log");
        let mut init = self.longhaul(checkout);
        init.arg("init").args(&self.init_flags);
        if let Some(go) = stranger.go.as_ref().filter(|go| go.chosen && self.takes_main) {
            init.args(["--main", &go.main]);
        }
        let ended = limits.run(init.arg("."), &log)?;
        played.init_s = began.elapsed().as_secs();
        if !ended.is_fine() {
            return Ok(Some(stopped("init", ended, &log)));
        }
        let file = std::fs::read_to_string(checkout.folder.join(FILE)).context("init wrote no file")?;
        played.checks = file.lines().filter(|line| line.contains("check:")).count().try_into()?;
        if let Some(program) = program(&file).filter(|program| !checkout.folder.join(program).exists()) {
            let began = Instant::now();
            let log = home.join("build.log");
            if let Some(ended) = build(stranger, checkout, &program, limits, &log)? {
                played.built_by_hand = true;
                played.build_s = began.elapsed().as_secs();
                if !ended.is_fine() {
                    return Ok(Some(stopped("build", ended, &log)));
                }
            }
        }
        let stop = self.soak(checkout, home, limits, played)?;
        if self.suites && !stranger.suite.is_empty() {
            played.suite = Some(self.suite(stranger, checkout, home, limits)?);
        }
        Ok(stop)
    }

    fn soak(&self, checkout: &Checkout, home: &Path, limits: &Limits, played: &mut Played) -> Result<Option<Stopped>> {
        let (began, record, log) = (Instant::now(), home.join("run"), home.join("soak.log"));
        if record.exists() {
            std::fs::remove_dir_all(&record)?;
        }
        let mut soak = self.longhaul(checkout);
        soak.args(["soak", "--quiet", FILE, "--run-dir"]).arg(&record);
        let ended = limits.run(&mut soak, &log)?;
        played.soak_s = began.elapsed().as_secs();
        played.facts = Facts::read(&record).ok();
        let has_verdict =
            matches!(ended, Ended::Exit(Some(code)) if VERDICTS.contains(&code)) && played.facts.is_some();
        Ok((!has_verdict).then(|| stopped("soak", ended, &log)))
    }

    /// Runs the program's own test suite unchanged, without network faults: `longhaul envtest -- go test PACKAGES`.
    fn suite(&self, stranger: &Stranger, checkout: &Checkout, home: &Path, limits: &Limits) -> Result<String> {
        let log = home.join("suite.log");
        let mut suite = self.longhaul(checkout);
        suite
            .arg("envtest")
            .arg("--runs")
            .arg(home.join("suite-runs"))
            .args(["--", "go", "test"])
            .args(&stranger.suite);
        let ended = limits.run(&mut suite, &log)?;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let packages = |start: &str| said.lines().filter(|line| line.starts_with(start)).count();
        let (fine, bad) = (packages("ok  \t"), packages("FAIL\t"));
        Ok(format!("{fine} packages passed, {bad} failed ({})", ended.text()))
    }
}

/// Removes the files that an earlier `init` wrote among the project's own files.
fn forget(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with("longhaul");
        if is_ours && path.extension().is_some_and(|ending| ending == "yaml") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The path, in the project's folder, of the program that the scenario file starts; `None` for a program of the
/// machine.
fn program(file: &str) -> Option<PathBuf> {
    let scenario: Value = serde_saphyr::from_str(file).ok()?;
    let command = scenario.pointer("/subject/command")?;
    let first = command["run"].get(0)?.as_str()?;
    let folder = command["cwd"].as_str().unwrap_or(".");
    first.contains('/').then(|| Path::new(folder).join(first))
}

/// Builds the program at the path in the scenario file, by the command in the file's comment; `None` if the program
/// needs no build.
fn build(
    stranger: &Stranger,
    checkout: &Checkout,
    program: &Path,
    limits: &Limits,
    log: &Path,
) -> Result<Option<Ended>> {
    let mut command = match (&stranger.go, &stranger.cargo) {
        (Some(go), _) => {
            let mut command = Command::new("go");
            command.args(["build", "-o"]).arg(checkout.folder.join(program)).arg(&go.main);
            command
        }
        (None, Some(_)) => {
            let mut command = Command::new("cargo");
            command.args(["build", "--release"]);
            command
        }
        (None, None) => return Ok(None),
    };
    command.current_dir(&checkout.folder).envs(checkout.environment.iter().map(|(name, value)| (name, value)));
    limits.run(&mut command, log).map(Some)
}

fn stopped(step: &str, ended: Ended, log: &Path) -> Stopped {
    let said = String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_WORDS)..].iter();
    let last: Vec<String> = last.map(|line| line.chars().take(LINE_MAX).collect()).collect();
    Stopped { step: step.to_owned(), why: format!("{}: {}", ended.text(), last.join(" / ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_file_is_below_its_folder() {
        let file = |run: &str, cwd: &str| format!("subject:\n  command:\n    run: [{run}]\n    cwd: {cwd}\n");
        assert_eq!(program(&file("bin/manager, --x", ".")), Some(PathBuf::from("./bin/manager")));
        assert_eq!(program(&file("./a", "deep")), Some(PathBuf::from("deep/./a")));
        assert_eq!(program(&file("python3, a.py", ".")), None);
        assert_eq!(program("subject: ["), None);
    }

    #[test]
    fn last_words_are_short() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "one\n\ntwo\nthree\nfour\n").unwrap();
        let stopped = stopped("build", Ended::Exit(Some(1)), &log);
        assert_eq!(stopped.why, "exit code 1: two / three / four");
    }
}
