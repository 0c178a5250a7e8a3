//! The programs of the tests, and commands under the clock.

use std::path::{Path, PathBuf};
use std::process::Command;

pub const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// The rate of most tests.
pub const RATE: u32 = 30;

/// A command under a clock with that rate.
pub fn under(rate: u32, program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
    command.args(["--rate", &rate.to_string(), "--"]).arg(program);
    command
}

/// Whether a program exists; prints that the test is skipped if not.
pub fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: needs {program}");
    }
    is_there
}

/// A C program, built into a folder with further compiler arguments.
pub fn compiled(name: &str, more: &[&str], folder: &Path) -> Option<PathBuf> {
    if !has("gcc") {
        return None;
    }
    let program = folder.join(name);
    let source = format!("{PROGRAMS}/{name}.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-w", "-o"]).arg(&program).arg(source).args(["-lrt", "-pthread"]).args(more);
    assert!(compiler.status().unwrap().success(), "{name}");
    Some(program)
}

/// A shell script under the clock.
pub fn shell(text: &str) -> Command {
    let mut command = under(RATE, Path::new("sh"));
    command.args(["-c", text]);
    command
}
