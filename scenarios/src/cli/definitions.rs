//! `completions` and `man`: what others read out of the definitions of the command line. Only in what
//! `cargo xtask dist` builds, which checks that no command is missing in them.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;

/// Prints the script of a shell. It is ours alone, so that nothing in it has to be hidden from a terminal.
pub(super) fn completions(shell: Shell) -> ExitCode {
    crate::out::note(std::io::stdout().write_all(&script(shell)));
    ExitCode::from(reports::exit::PASS)
}

/// Writes a page for each command.
pub(super) fn man(directory: &Path) -> ExitCode {
    let written = clap_mangen::generate_to(Cli::command(), directory);
    match written.with_context(|| format!("failed to write man pages into {}", directory.display())) {
        Ok(()) => ExitCode::from(reports::exit::PASS),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

fn script(shell: Shell) -> Vec<u8> {
    let mut definition = Cli::command();
    let name = definition.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    script
}
