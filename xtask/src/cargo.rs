//! Running cargo and the programs that it builds.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The packages whose programs a soak runs. All are always named, because another choice would change the features of
/// the dependencies and rebuild all of them.
const PACKAGES: [&str; 3] = ["--package=scenarios", "--package=service", "--package=example-watcher"];
/// The programs that every soak runs.
const PROGRAMS: [&str; 2] = ["--bin=longhaul", "--bin=longhaul-service"];
/// The example subject, which only scenarios about it run.
const EXAMPLE: &str = "example-watcher";
/// The build profile: for a quick first verdict (Cargo.toml, decision 023).
const PROFILE: &str = "soak";
/// The service with every feature, as it is released and tested. By default it is built lean.
pub(crate) const FULL: &str = "--features=service/full";
/// The features of tests: everything, and planted bugs.
pub(crate) const PLANTED_FEATURES: &str =
    "--features=service/full,service-seed/planted-bugs,example-watcher/planted-bugs";
/// The programs with planted bugs. Names of their own keep them from ever replacing the clean ones.
pub(crate) const PLANTED_PROGRAMS: [&str; 4] = [
    "--package=service-planted",
    "--features=service/full,example-watcher/planted-bugs",
    "--bin=longhaul-service-planted",
    "--bin=example-watcher-planted",
];

/// Programs of tests only.
const ONLY_TESTED: [&str; 4] = ["planted-client", "kube-rs-subject", "longhaul-seed", "longhaul-seed-planted"];

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Runs a command and fails with its name unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// A command in the form of a shell.
pub(crate) fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The folder of cargo's output.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Builds `longhaul` and the subjects that its arguments need, the service with `features`; returns the path of
/// `longhaul`.
pub(crate) fn build_soak(arguments: &[String], features: &str) -> Result<PathBuf> {
    let example = arguments.iter().any(|argument| argument.contains(EXAMPLE)).then(|| format!("--bin={EXAMPLE}"));
    run(cargo().args(["build", "--profile", PROFILE]).args(PACKAGES).args(PROGRAMS).args(example).arg(features))?;
    Ok(target().join(PROFILE).join("longhaul"))
}

/// Builds the programs with planted bugs beside them.
pub(crate) fn build_planted() -> Result<()> {
    run(cargo().args(["build", "--profile", PROFILE]).args(PACKAGES).args(PLANTED_PROGRAMS))
}

/// Builds the programs that the tests run, like a soak, and returns their folder: with planted bugs, or without.
/// Programs of tests only, which cargo has built with them, are linked beside them.
pub(crate) fn build_tested(planted: bool) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--profile", PROFILE]).args(PACKAGES).args(PROGRAMS).arg(FULL);
    build.arg(format!("--bin={EXAMPLE}"));
    if planted {
        build.args(PLANTED_PROGRAMS);
    }
    run(&mut build)?;
    let (programs, built) = (target().join(PROFILE), target().join("debug"));
    for name in ONLY_TESTED {
        let link = programs.join(name);
        if link.symlink_metadata().is_ok() {
            std::fs::remove_file(&link).with_context(|| format!("failed to remove {}", link.display()))?;
        }
        let program = built.join(name);
        std::os::unix::fs::symlink(&program, &link).with_context(|| format!("failed to link {}", link.display()))?;
    }
    Ok(programs)
}

/// Builds `longhaul` and the service in their release form, for measurements.
pub(crate) fn build_release() -> Result<()> {
    run(cargo().args(["build", "--release", "--features=service/full,service/inject"]).args(PACKAGES).args(PROGRAMS))
}
