//! Runs the commands of `docs/first-hour-go.md` exactly as written, in one shell that changes folders as a reader
//! would.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::operator::project;
use crate::support::programs;

const PAGE: &str = include_str!("../../../docs/first-hour-go.md");
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A block of commands, and the output that the document shows for the last command.
struct Step<'a> {
    commands: Vec<&'a str>,
    shown: Vec<&'a str>,
}

/// The blocks of commands in the document, in order.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for block in page.split("```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').unwrap();
        match (language, steps.last_mut()) {
            ("console", _) => {
                let commands = body.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
                steps.push(Step { commands, shown: Vec::new() });
            }
            ("text", Some(step)) => step.shown = body.lines().collect(),
            _ => {}
        }
    }
    steps
}

/// Runs a command in the folder in which the previous command ended. Returns the folder in which the command ends, its
/// exit code and its output.
fn run(command: &str, at: &Path) -> (PathBuf, Option<i32>, String) {
    let path = std::env::join_paths(
        std::iter::once(programs()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let output = Command::new("bash")
        .args(["-c", &format!("{command}\ncode=$?\npwd >&2\nexit $code")])
        .current_dir(at)
        .env("PATH", path.unwrap())
        .env("LONGHAUL_CHECKOUT", CHECKOUT)
        .env_remove("GITHUB_STEP_SUMMARY")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let folder = said.lines().last().map(PathBuf::from).unwrap();
    (folder, output.status.code(), format!("{}{said}", String::from_utf8_lossy(&output.stdout)))
}

/// A line of output without the text that differs in each run: numbers, and the text after `…`.
fn fixed(line: &str) -> String {
    line.chars().take_while(|char| *char != '…').filter(|char| !char.is_ascii_digit()).collect()
}

#[test]
#[ignore = "slow"]
fn nightly_the_page_on_the_first_hour_with_go_is_played_word_by_word() {
    // Built before, so that the page waits for nothing.
    if project().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut at = folder.path().to_owned();
    let steps = steps(PAGE);
    assert!(steps.len() > 4, "the page has {} blocks of commands", steps.len());
    for step in steps {
        let fails = step.shown.first().is_some_and(|line| line.starts_with("FAIL"));
        for (index, command) in step.commands.iter().enumerate() {
            let (next, code, said) = run(command, &at);
            at = next;
            let is_last = index + 1 == step.commands.len();
            assert_eq!(code, Some(i32::from(fails && is_last)), "{command}\n{said}");
            for line in step.shown.iter().filter(|line| is_last && !line.is_empty()) {
                let wanted = fixed(line);
                assert!(
                    said.lines().any(|line| fixed(line).starts_with(&wanted)),
                    "{command} does not say `{line}`:\n{said}"
                );
            }
        }
    }
}
