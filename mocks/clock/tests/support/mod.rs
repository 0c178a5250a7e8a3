//! The test programs, and commands that run under the clock.

use std::path::{Path, PathBuf};
use std::process::Command;

pub const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// The clock rate of most tests.
pub const RATE: u32 = 30;

pub fn under(rate: u32, program: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
    command.args(["--rate", &rate.to_string(), "--"]).arg(program);
    command
}

/// Whether a program is installed; if not, prints that the test is skipped.
pub fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: needs {program}");
    }
    is_there
}

/// Compiles the C program `name` into a folder, with the compiler arguments `more`.
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

/// A command that runs a shell script under the clock.
pub fn shell(text: &str) -> Command {
    let mut command = under(RATE, Path::new("sh"));
    command.args(["-c", text]);
    command
}
