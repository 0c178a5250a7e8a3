//! The commands `completions` and `man`, generated from the definitions of the command line. Only builds of `cargo
//! xtask dist` have these two commands. A test of `cargo xtask dist` checks that the output of `completions` and `man`
//! names every command.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;

/// Prints the completion script for a shell.
pub(super) fn completions(shell: Shell) -> Result<()> {
    let mut definition = Cli::command();
    let name = definition.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    std::io::stdout().write_all(&script).context("failed to write to stdout")
}

/// Writes one man page for each command.
pub(super) fn man(directory: &Path) -> Result<()> {
    let written = clap_mangen::generate_to(Cli::command(), directory);
    written.with_context(|| format!("failed to write man pages into {}", directory.display()))
}
