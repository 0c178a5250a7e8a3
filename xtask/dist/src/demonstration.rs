//! Plays docs/start/operator-go.md word by word: from an operator's project, the release files and Go to a suite, a
//! soak and a hunt.
//!
//! The project is the operator of `scenarios/subjects/kubebuilder`, with a test suite as kubebuilder scaffolds one. The
//! commands run in a terminal, because `longhaul init` asks.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{page, root};

const PAGE: &str = include_str!("../../../docs/start/operator-go.md");
const SUITE: &str = include_str!("demonstration/suite_test.go");
const TEST_TARGET: &str = "\n.PHONY: test\ntest:\n\tGOFLAGS=-mod=mod go test -count=1 ./internal/controller\n";
/// The time that the page may take with a filled module cache of Go.
const LONGEST: Duration = Duration::from_mins(10);
/// Programs that the demonstration needs, besides those of docs/ci.md.
const PROGRAMS: [&str; 2] = ["go", "script"];
/// The line that is printed after each command, before the exit code and the command.
const ENDED: &str = "exit code";
/// Exit code of a verdict that a busy machine does not allow.
const INCONCLUSIVE: i32 = 2;

/// Runs the commands of the page with the release files in the folder `out`.
pub(crate) fn check(out: &Path) -> Result<()> {
    let lacks = |program: &&&str| Command::new(program).arg("--help").output().is_err();
    if let Some(what) = PROGRAMS.iter().find(lacks) {
        println!("docs/start/operator-go.md: skipped: needs {what}");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    project(folder.path())?;
    let mut warm = Command::new("go");
    warm.args(["test", "-mod=mod", "-count=1", "-run=^$", "./..."]).current_dir(folder.path()).stdin(Stdio::null());
    let warmed = warm.output().context("failed to start go")?;
    if !warmed.status.success() {
        println!("docs/start/operator-go.md: skipped: needs Go's module proxy ({})", page::printed(&warmed));
        return Ok(());
    }
    let commands = commands(PAGE);
    let begun = Instant::now();
    let printed = play(&commands, out, folder.path())?;
    let codes = codes(&printed);
    ensure!(codes.len() == commands.len(), "{} of {} commands ended:\n{printed}", codes.len(), commands.len());
    for (command, code) in commands.iter().zip(&codes) {
        let undecided = *code == INCONCLUSIVE && command.starts_with("longhaul");
        ensure!(*code == 0 || undecided, "`{command}` ended with {code}:\n{printed}");
    }
    println!(
        "docs/start/operator-go.md: {} commands in {:.1} min: exit codes {codes:?}",
        commands.len(),
        begun.elapsed().as_secs_f64() / 60.0
    );
    Ok(())
}

/// Writes the operator's project into a folder.
fn project(folder: &Path) -> Result<()> {
    let from = root().join("scenarios/subjects/kubebuilder");
    let copied = Command::new("cp").arg("--recursive").arg(from.join(".")).arg(folder).status()?;
    ensure!(copied.success(), "failed to copy {}", from.display());
    std::fs::write(folder.join("internal/controller/suite_test.go"), SUITE)?;
    let makefile = std::fs::read_to_string(folder.join("Makefile"))? + TEST_TARGET;
    std::fs::write(folder.join("Makefile"), makefile).context("failed to write the Makefile")
}

/// The commands in the console blocks of a page.
fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("console\n"));
    blocks.flat_map(|block| block.lines().filter_map(|line| line.strip_prefix("$ "))).collect()
}

/// Runs the commands in one shell in a terminal; returns the printed text.
fn play(commands: &[&str], out: &Path, folder: &Path) -> Result<String> {
    let mut script = String::new();
    for command in commands {
        let _ = writeln!(script, "{command}\necho \"{ENDED} $?\"");
    }
    let file = folder.join("commands.sh");
    std::fs::write(&file, script)?;
    let mut shell = Command::new("timeout");
    shell.arg(LONGEST.as_secs().to_string()).args(["script", "--quiet", "--return", "--command"]);
    shell.arg(format!("bash --noprofile --norc {}", file.display())).arg("/dev/null").current_dir(folder);
    shell.env("LONGHAUL_RELEASES", format!("file://{}", out.canonicalize()?.display()));
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("failed to start `script`")?;
    // The answer to the question of `longhaul init`; the pipe stays open, because `script` ends the commands with it.
    let mut answers = child.stdin.take().context("no standard input")?;
    answers.write_all(b"y\n").context("failed to answer")?;
    let output = child.wait_with_output().context("failed to wait for the commands")?;
    drop(answers);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(124) {
        bail!("the page takes more than {} min:\n{printed}", LONGEST.as_secs() / 60);
    }
    Ok(printed)
}

/// The exit codes in the printed text, in order.
fn codes(printed: &str) -> Vec<i32> {
    printed.lines().filter_map(|line| line.trim().strip_prefix(ENDED)?.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_commands_from_the_download_to_a_hunt() {
        let commands = commands(PAGE);
        assert!(commands[0].contains("install.sh"), "{commands:?}");
        for begins in ["longhaul envtest", "longhaul init", "longhaul soak", "longhaul hunt"] {
            assert!(commands.iter().any(|command| command.starts_with(begins)), "{begins}: {commands:?}");
        }
    }

    #[test]
    fn exit_codes_are_read_from_a_terminal() {
        assert_eq!(codes("a\r\nexit code 0\r\nexit code 2\r\n"), [0, 2]);
    }

    #[test]
    #[ignore = "slow"]
    fn nightly_the_page_for_operators_does_what_it_says() {
        page::tests::with_shipped(check);
    }
}
