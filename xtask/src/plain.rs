//! Runs `cargo test` if cargo-nextest is missing. This module ends tests that hang, and lists skipped tests, because
//! `cargo test` does neither.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::skipped::Missing;

/// The time without output after which a test counts as hanging. Each test prints a line at its end; the slowest test
/// and the build take three minutes each.
const SILENCE: Duration = Duration::from_mins(10);

/// Runs the tests and shows their output. If the tests print nothing for too long, all their processes are ended.
pub(crate) fn run(tests: &mut Command) -> Result<()> {
    run_until(tests.arg("--show-output"), SILENCE)
}

fn run_until(tests: &mut Command, silence: Duration) -> Result<()> {
    let shown = cargo::shown(tests);
    let began = Instant::now();
    let mut child =
        tests.stdout(Stdio::piped()).process_group(0).spawn().with_context(|| format!("failed to start `{shown}`"))?;
    let missing = follow(&mut child, silence);
    if missing.is_none() {
        end(&child);
    }
    let status = child.wait().with_context(|| format!("failed to wait for `{shown}`"))?;
    println!("tests took {} s", began.elapsed().as_secs());
    let Some(missing) = missing else {
        bail!(
            "`{shown}` was ended: no test ended for {} s, the last that are named above are those that hang",
            silence.as_secs()
        );
    };
    missing.report();
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Prints the output lines of the tests and collects the skipped tests; `None` if the tests printed nothing for too
/// long.
fn follow(child: &mut Child, silence: Duration) -> Option<Missing> {
    let (lines, heard) = mpsc::sync_channel(64);
    let output = child.stdout.take();
    // The thread ends with the output, which ends with the last process that holds it.
    std::thread::spawn(move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok)) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let mut missing = Missing::default();
    let mut test = String::new();
    loop {
        match heard.recv_timeout(silence) {
            Ok(line) => {
                println!("{line}");
                if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
                    name.clone_into(&mut test);
                }
                missing.line(&test, &line);
            }
            Err(RecvTimeoutError::Disconnected) => return Some(missing),
            Err(RecvTimeoutError::Timeout) => return None,
        }
    }
}

/// Ends all processes in the process group of `child`.
fn end(child: &Child) {
    let group = format!("-{}", child.id());
    let ended = Command::new("kill").args(["-KILL", "--", &group]).status();
    if !ended.is_ok_and(|status| status.success()) {
        eprintln!("xtask: failed to end the process group {group}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_hangs_is_ended_with_what_it_started() {
        let (mut held, holder) = std::io::pipe().unwrap();
        let mut command = shell("echo one; sleep 1000 & wait");
        let ended = run_until(command.stderr(holder), Duration::from_millis(300));
        drop(command);
        assert!(ended.is_err_and(|error| error.to_string().contains("hang")));
        // The pipe closes when no process holds it any more, including the sleeping one.
        assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 0);
    }

    #[test]
    fn what_ends_is_told_by_its_status() {
        assert!(run_until(&mut shell("echo one"), SILENCE).is_ok());
        assert!(
            run_until(&mut shell("echo one; exit 101"), SILENCE).is_err_and(|error| error.to_string().contains("101"))
        );
    }
}
