//! `cargo xtask soak`, `matrix`, `worlds`, `calibrate` and `longhaul`: build, then hand over to `longhaul`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo;

/// Builds `longhaul` and the subjects that a command needs, and runs it.
pub(crate) fn longhaul(command: Option<&str>, arguments: Vec<String>) -> Result<ExitCode> {
    let all: Vec<String> = command.map(str::to_owned).into_iter().chain(arguments).collect();
    let program = cargo::build_soak(&all)?;
    if plays_planted(&all) {
        cargo::build_planted()?;
    }
    hand_over(&program, &all)
}

/// Whether a command plays planted bugs.
fn plays_planted(arguments: &[String]) -> bool {
    // Behind it stands the command of a client.
    let ours = arguments.iter().take_while(|argument| *argument != "--");
    let has = |option: &str| ours.clone().any(|argument| argument.split('=').next() == Some(option));
    match arguments.first().map(String::as_str) {
        Some("calibrate") => !["--synthetic", "--list", "--help", "-h", "--planted"].into_iter().any(has),
        Some("soak") => has("--plant"),
        Some("worlds") => !["--table", "--help", "-h"].into_iter().any(has),
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
            !plays("calibrate --synthetic")
                && !plays("calibrate --list")
                && !plays("soak smoke -- x --plant")
                && !plays("matrix")
        );
    }
}
