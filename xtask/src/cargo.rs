//! Runs Cargo and the programs that it builds.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The packages whose programs a soak runs. A build always names all these packages, because another selection would
/// change features of dependencies and rebuild all dependencies.
const PACKAGES: [&str; 3] = ["--package=scenarios", "--package=service", "--package=example-watcher"];
/// The programs that every soak runs.
const PROGRAMS: [&str; 2] = ["--bin=longhaul", "--bin=longhaul-service"];
/// The example subject, which only some scenarios run.
const EXAMPLE: &str = "example-watcher";
/// The Cargo profile for a quick first verdict (Cargo.toml, decision 023).
const PROFILE: &str = "soak";
/// The features of the service as it is released and tested. Without these features, Cargo builds the lean service.
pub(crate) const FULL: &str = "--features=service/full";
/// The features of the programs that tests run: all features, and planted bugs.
pub(crate) const PLANTED_FEATURES: &str =
    "--features=service/full,service-seed/planted-bugs,example-watcher/planted-bugs";
/// The programs with planted bugs. Programs with planted bugs have names of their own, so they never replace programs
/// without bugs.
pub(crate) const PLANTED_PROGRAMS: [&str; 4] = [
    "--package=service-planted",
    "--features=service/full,example-watcher/planted-bugs",
    "--bin=longhaul-service-planted",
    "--bin=example-watcher-planted",
];

/// Programs that only tests run.
const ONLY_TESTED: [&str; 4] = ["planted-client", "kube-rs-subject", "longhaul-seed", "longhaul-seed-planted"];

/// The path of the Cargo that runs this program, as a command.
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

/// Runs a command. If the command's exit code is not 0, returns an error that names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// A command as text, as it would be typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The folder of Cargo's output.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// Builds `longhaul`, and the subjects that the arguments of `longhaul` need; builds the service with `features`.
/// Returns the path of `longhaul`.
pub(crate) fn build_soak(arguments: &[String], features: &str) -> Result<PathBuf> {
    let example = arguments.iter().any(|argument| argument.contains(EXAMPLE)).then(|| format!("--bin={EXAMPLE}"));
    run(cargo().args(["build", "--profile", PROFILE]).args(PACKAGES).args(PROGRAMS).args(example).arg(features))?;
    Ok(target().join(PROFILE).join("longhaul"))
}

/// Builds the programs with planted bugs.
pub(crate) fn build_planted() -> Result<()> {
    run(cargo().args(["build", "--profile", PROFILE]).args(PACKAGES).args(PLANTED_PROGRAMS))
}

/// Builds the programs that the tests run, in the same way as for a soak, with or without planted bugs. Programs that
/// only tests run are linked into the same folder. Returns the folder of the built programs.
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

/// Builds `longhaul` and the service for measurements, with the release profile.
pub(crate) fn build_release() -> Result<()> {
    run(cargo().args(["build", "--release", "--features=service/full,service/inject"]).args(PACKAGES).args(PROGRAMS))
}
