//! `cargo xtask soak`, `cargo xtask repro` and `cargo xtask longhaul`: build, then hand over to `longhaul`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo;

/// Arguments of `cargo xtask soak`; all but `--plant` are passed on as they are.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Plant this bug in the service, to see the judges catch it.
    #[arg(long)]
    plant: Option<String>,
    /// A scenario file or the name of one in the library, and further arguments of `longhaul soak`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds what a soak needs and runs it.
pub(crate) fn soak(arguments: Arguments) -> Result<ExitCode> {
    let mut all = vec!["soak".to_owned()];
    if let Some(plant) = &arguments.plant {
        all.extend(["--plant".to_owned(), plant.clone()]);
    }
    all.extend(arguments.arguments);
    let program = cargo::build_soak(&all)?;
    if arguments.plant.is_some() {
        cargo::build_planted()?;
    }
    hand_over(&program, &all)
}

/// Builds `longhaul` and its subjects and plays a documented bug.
pub(crate) fn repro(arguments: Vec<String>) -> Result<ExitCode> {
    longhaul(&[vec!["repro".to_owned()], arguments].concat())
}

/// Builds `longhaul` and runs it with any arguments.
pub(crate) fn longhaul(arguments: &[String]) -> Result<ExitCode> {
    let program = cargo::build_soak(arguments)?;
    if plays_planted(arguments) {
        cargo::build_planted()?;
    }
    hand_over(&program, arguments)
}

/// Whether a command plays planted bugs.
fn plays_planted(arguments: &[String]) -> bool {
    let has = |option: &str| arguments.iter().any(|argument| argument.split('=').next() == Some(option));
    match arguments.first().map(String::as_str) {
        Some("calibrate") => !["--synthetic", "--list", "--help", "-h", "--planted"].into_iter().any(has),
        Some("soak") => has("--plant"),
        _ => false,
    }
}

/// Becomes `longhaul`, in the caller's own folder, so that paths on the command line mean what they say.
///
/// Nothing stays between the terminal and the run: Ctrl-C reaches `longhaul` alone and its verdict is the exit code.
fn hand_over(program: &Path, arguments: &[String]) -> Result<ExitCode> {
    let error = Command::new(program).args(arguments).env("LONGHAUL_STARTED_AS", "cargo xtask").exec();
    Err(error).with_context(|| format!("failed to start {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_programs_are_built_for_what_plays_them() {
        let plays = |line: &str| plays_planted(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(plays("calibrate --repeats 2") && plays("soak --plant step") && plays("soak smoke --plant=step"));
        assert!(
            !plays("calibrate --synthetic") && !plays("calibrate --list") && !plays("soak smoke") && !plays("matrix")
        );
    }
}
