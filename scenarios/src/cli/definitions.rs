//! `completions` and `man`, generated from the definitions of the command line. They exist only in builds of
//! `cargo xtask dist`, which checks that no command is missing in them.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;
use reports::exit;

use super::Cli;

/// Prints the completion script of a shell. All its text is ours, so that nothing in it has to be escaped for a
/// terminal.
pub(super) fn completions(shell: Shell) -> u8 {
    crate::out::note(std::io::stdout().write_all(&script(shell)));
    exit::PASS
}

/// Writes one man page per command.
pub(super) fn man(directory: &Path) -> Result<u8> {
    let written = clap_mangen::generate_to(Cli::command(), directory);
    written.with_context(|| format!("failed to write man pages into {}", directory.display()))?;
    Ok(exit::PASS)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut definition = Cli::command();
    let name = definition.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    script
}
