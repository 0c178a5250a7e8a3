//! `cargo xtask test`: the tests, with the programs that some of them run. Slow tests (whole soaks, libraries of bugs,
//! crowds of clients) are `#[ignore = "slow…"]` in the code, so that plain `cargo test` skips them as well. A test of a
//! whole library, or one that repeats a shorter test on another world, is slow as well, and its name begins with
//! `nightly_`.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Result;

use crate::{cargo, plain, seed, skipped};

/// Tests side by side on each processor: they wait for sockets and clocks more than they compute.
const SIDE_BY_SIDE: usize = 4;
/// The profile of slow tests. Other programs on the machine may disturb a soak of seconds, so it is repeated once,
/// twenty seconds later, and the repetition is reported: decision 064.
const SECOND_TRY: &str = "--profile=slow";
/// The file that `.config/nextest.toml` requests: below the workspace, whatever cargo's target directory is.
const JUNIT: &str = "target/nextest/default/junit.xml";
const JUNIT_SLOW: &str = "target/nextest/slow/junit.xml";
/// If set to 0, nextest does not start itself once more for each test. It does so only for Ctrl-Z while a test is being
/// started, and that takes a thirtieth of the time of the quick tests.
const TWICE: &str = "NEXTEST_DOUBLE_SPAWN";
/// The variable with the folder of the programs that tests run.
const PROGRAMS: &str = "LONGHAUL_PROGRAMS";

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Run the quick and the slow tests, which every change must pass.
    #[arg(long)]
    full: bool,
    /// Run only the slow tests of `--full`, after a run of the quick ones.
    #[arg(long, conflicts_with = "full")]
    rest: bool,
    /// Run the tests that `--full` skips: whole libraries, further worlds, every gate. For each night and before a release.
    #[arg(long, conflicts_with_all = ["full", "rest"])]
    nightly: bool,
    /// Run only tests whose name contains this text, quick or slow.
    #[arg(conflicts_with_all = ["full", "rest", "nightly"])]
    filter: Vec<String>,
}

impl Arguments {
    /// The arguments for all tests.
    pub(crate) fn full() -> Self {
        Self { full: true, ..Self::default() }
    }

    /// The selection of tests, as arguments of nextest and of the tests themselves.
    fn chosen(&self) -> (&'static [&'static str], &'static [&'static str]) {
        if self.rest {
            (&["--run-ignored=only", "-E", "not test(/(^|::)nightly_/)"], &["--ignored", "--skip=nightly_"])
        } else if self.nightly {
            (&["--run-ignored=only", "-E", "test(/(^|::)nightly_/)"], &["--ignored", "nightly_"])
        } else if self.full {
            (&["--run-ignored=all", "-E", "not test(/(^|::)nightly_/)"], &["--include-ignored", "--skip=nightly_"])
        } else if !self.filter.is_empty() {
            (&["--run-ignored=all"], &["--include-ignored"])
        } else {
            (&[], &[])
        }
    }

    /// Whether only quick tests run. None of them plants a bug in a program or needs the static seed.
    fn only_quick(&self) -> bool {
        !(self.full || self.rest || self.nightly) && self.filter.is_empty()
    }

    /// Whether only slow tests run.
    fn only_slow(&self) -> bool {
        self.rest || self.nightly
    }
}

/// Runs tests of the workspace: with cargo-nextest if it is installed, which is faster, else with `cargo test`. In both
/// cases a test that hangs is ended.
///
/// All crates are built once, as one workspace with one set of features, including planted bugs: any smaller choice
/// would change the features of crates and build them once more. An unused planted bug changes nothing; the lints check
/// that the programs build without them.
pub(crate) fn test(arguments: &Arguments) -> Result<ExitCode> {
    cargo::run(cargo::cargo().args(["build", "--workspace", "--bins", "--tests", cargo::PLANTED_FEATURES]))?;
    if !arguments.only_quick() {
        seed::for_tests()?;
    }
    let programs = cargo::build_tested(!arguments.only_quick())?;
    let (nextest_flags, libtest_flags) = arguments.chosen();
    let threads = SIDE_BY_SIDE * std::thread::available_parallelism().map_or(1, usize::from);
    if has_nextest() {
        cargo::run(with_features(&["nextest", "run"]).arg("--no-run"))?;
        let mut tests = with_features(&["nextest", "run"]);
        tests.env(PROGRAMS, &programs).arg(format!("--test-threads={threads}"));
        if std::env::var_os(TWICE).is_none() {
            tests.env(TWICE, "0");
        }
        if arguments.only_slow() {
            tests.arg(SECOND_TRY);
        }
        let began = Instant::now();
        let result = cargo::run(tests.arg("--no-fail-fast").args(nextest_flags).args(&arguments.filter));
        let junit = if arguments.only_slow() { JUNIT_SLOW } else { JUNIT };
        skipped::report_junit(&cargo::root().join(junit), began.elapsed());
        result?;
        if arguments.filter.is_empty() && !arguments.only_slow() {
            cargo::run(with_features(&["test"]).args(["--doc", "--quiet"]))?;
        }
    } else {
        let mut tests = with_features(&["test"]);
        tests.env(PROGRAMS, &programs).arg("--no-fail-fast").args(&arguments.filter).arg("--").args(libtest_flags);
        tests.arg(format!("--test-threads={threads}"));
        plain::run(&mut tests)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A command of cargo for the whole workspace, with the features of the common build.
fn with_features(command: &[&str]) -> Command {
    let mut cargo = cargo::cargo();
    cargo.args(command).args(["--workspace", cargo::PLANTED_FEATURES]);
    cargo
}

fn has_nextest() -> bool {
    let mut command = cargo::cargo();
    command.args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// Whether rustdoc would run an example of this text.
    fn has_example(text: &str) -> bool {
        let mut inside = false;
        text.lines().map(str::trim_start).any(|line| {
            let fence = ["/// ```", "//! ```"].iter().find_map(|start| line.strip_prefix(start));
            inside ^= fence.is_some();
            let rust = |word: &str| {
                ["", "rust", "should_panic", "no_run", "compile_fail"].contains(&word) || word.starts_with("edition")
            };
            inside && fence.is_some_and(|what| what.split(',').map(str::trim).all(rust))
        })
    }

    /// rustdoc compiles a crate again to look for examples, so crates without any have `doctest = false`. An example
    /// that is added later would not run.
    #[test]
    fn no_crate_has_an_example_that_is_not_run() {
        let mut command = cargo::cargo();
        command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
        let listed: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let mut looked_at = 0;
        let packages = listed["packages"].as_array().unwrap();
        for target in packages.iter().filter_map(|package| package["targets"].as_array()).flatten() {
            if target["doctest"] == true || target["kind"] != serde_json::json!(["lib"]) {
                continue;
            }
            let mut found = Vec::new();
            sources(Path::new(target["src_path"].as_str().unwrap()).parent().unwrap(), &mut found);
            looked_at += found.len();
            for path in found {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!has_example(&text), "{}: its crate says `doctest = false` in Cargo.toml", path.display());
            }
        }
        assert!(looked_at > 500, "{looked_at} files");
        assert!(has_example("/// Text.\n    /// ```\n/// assert!(true);\n/// ```\n"));
        assert!(has_example("/// ```rust,no_run\n/// run();\n/// ```\n"));
        assert!(!has_example("//! ```text\n//! a\n//! ```\n"));
    }
}
