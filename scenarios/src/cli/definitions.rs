//! `completions` and `man`: what others read out of the definitions of the command line.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_know_the_commands_and_their_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell)).unwrap();
            for word in ["soak", "control-plane", "capacity"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn a_page_is_written_for_each_command_that_is_not_hidden() {
        let folder = tempfile::tempdir().unwrap();
        clap_mangen::generate_to(Cli::command(), folder.path()).unwrap();
        let page = |name: &str| folder.path().join(name);
        let soak = std::fs::read_to_string(page("longhaul-soak.1")).unwrap();
        assert!(soak.contains("control\\-plane"), "{soak}");
        assert!(page("longhaul.1").exists() && page("longhaul-mock-kube.1").exists());
        assert!(!page("longhaul-keeper.1").exists() && !page("longhaul-man.1").exists());
    }
}
