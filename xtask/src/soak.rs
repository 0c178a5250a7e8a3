//! `cargo xtask soak` and `cargo xtask longhaul`: build, then hand over to `longhaul`.

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
    cargo::build_release()?;
    let mut all = vec!["soak".to_owned()];
    if let Some(plant) = arguments.plant {
        cargo::build_planted(true)?;
        all.extend(["--plant".to_owned(), plant]);
    }
    all.extend(arguments.arguments);
    hand_over(&all)
}

/// Builds `longhaul` and runs it with any arguments.
pub(crate) fn longhaul(arguments: &[String]) -> Result<ExitCode> {
    cargo::build_release()?;
    hand_over(arguments)
}

/// Runs `longhaul` in the caller's own folder, so that paths on the command line mean what they say.
///
/// The terminal sends Ctrl-C to both processes. This one ignores nothing: it waits, because `longhaul` ends the run in
/// order and its verdict is the exit code.
fn hand_over(arguments: &[String]) -> Result<ExitCode> {
    let program = cargo::target().join("release/longhaul");
    let mut command = Command::new(&program);
    command.args(arguments);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // On Unix `longhaul` takes this process over: signals reach it directly and nothing stays between.
        Err(command.exec()).with_context(|| format!("failed to start {}", program.display()))
    }
    #[cfg(not(unix))]
    {
        let status = command.status().with_context(|| format!("failed to start {}", program.display()))?;
        Ok(cargo::exit_code(status))
    }
}
