//! `cargo xtask test`: runs the tests, and builds the programs that some tests run. Slow tests (whole soaks, libraries
//! of bugs, many clients) are marked `#[ignore = "slow…"]`, so plain `cargo test` skips them too. Some slow tests cover
//! a whole library, or repeat a shorter test on another control plane; their names begin with `nightly_`.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Result;

use crate::{cargo, containers, plain, seed, skipped};

/// Number of tests that run at the same time on each CPU. Tests mostly wait for sockets and clocks, so more tests than
/// CPUs can run.
const SIDE_BY_SIDE: usize = 4;
/// The nextest profile of slow tests. Other programs on the machine may disturb a soak of a few seconds, so a failed
/// slow test runs once more after twenty seconds, and the summary names the test (decision 064).
const SECOND_TRY: &str = "--profile=slow";
/// The path of the JUnit file in `.config/nextest.toml`. The JUnit file is below the workspace, whatever Cargo's output
/// folder is.
const JUNIT: &str = "target/nextest/default/junit.xml";
const JUNIT_SLOW: &str = "target/nextest/slow/junit.xml";
/// The variable that, if it is 0, prevents nextest from starting itself a second time for each test. Nextest's second
/// process only helps if Ctrl-Z comes while a test starts, and costs a thirtieth of the quick tests' time.
const TWICE: &str = "NEXTEST_DOUBLE_SPAWN";
/// The environment variable with the folder of the programs that tests run.
const PROGRAMS: &str = "LONGHAUL_PROGRAMS";

/// The filter that selects the tests of `scenarios/containers`.
const CONTAINERS: &str = "containers";

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Run the quick and the slow tests, all of which a change must pass.
    #[arg(long)]
    full: bool,
    /// Run only the slow tests of `--full`, after a run of the quick tests.
    #[arg(long, conflicts_with = "full")]
    rest: bool,
    /// Run the tests that `--full` skips: whole libraries of scenarios, further control planes, every gate. Run these
    /// tests each night and before a release.
    #[arg(long, conflicts_with_all = ["full", "rest"])]
    nightly: bool,
    /// Run only tests whose name contains this text, quick or slow.
    #[arg(conflicts_with_all = ["full", "rest", "nightly"])]
    filter: Vec<String>,
}

impl Arguments {
    /// The arguments that run all quick and slow tests.
    pub(crate) fn full() -> Self {
        Self { full: true, ..Self::default() }
    }

    /// The arguments that select tests, for nextest and for the test programs themselves.
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

    /// Whether only quick tests run. No quick test needs a planted bug or the static injected program.
    fn only_quick(&self) -> bool {
        !(self.full || self.rest || self.nightly) && self.filter.is_empty()
    }

    fn only_slow(&self) -> bool {
        self.rest || self.nightly
    }

    /// Whether the tests that start containers run: with all slow tests, or if they are named.
    fn with_containers(&self) -> bool {
        self.full || self.rest || self.filter.iter().any(|filter| filter == CONTAINERS)
    }
}

/// Runs the tests of the workspace with cargo-nextest, which is faster, or with `cargo test` if cargo-nextest is not
/// installed. With either program, a test that hangs is ended.
///
/// All crates are built once as one workspace with one set of features, including planted bugs. To build fewer crates
/// would change features of crates and build these crates again. A planted bug that is not switched on has no effect.
/// The lints check that the programs also build without planted bugs.
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
    if arguments.with_containers() {
        containers::test(&programs)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A Cargo command for the whole workspace, with the features of the build for tests.
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

    /// Whether a source text contains an example that rustdoc would run.
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

    /// Crates without examples have `doctest = false`, because rustdoc compiles a crate again to search for examples.
    /// In a crate with `doctest = false` an example that is added later would not run.
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
