//! A faster clock for any Linux program, unmodified: dynamic or static, of C, Go, Java, Node or Python.
//!
//! The program is started under `ptrace`. In each new program the time functions of the kernel's page are made to tell a time that goes
//! faster, and a filter of the kernel stops only those calls in which a time is said: their limits are divided, and what the kernel writes
//! back is multiplied. The mechanism is in `docs/decisions/028-a-faster-clock.md`, what stays real in `docs/clock.md`. This crate knows
//! nothing of the harness.

mod calls;
mod change;
mod clock;
mod detour;
mod filter;
mod finish;
mod forms;
mod launch;
mod live;
mod page;
mod places;
mod plan;
#[cfg(test)]
mod pretended;
mod program;
mod registers;
mod room;
mod shift;
mod stack;
mod summary;
mod sys;
mod tracer;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

pub use launch::Error;
pub use shift::{DRIFT_PPM_MAX, JUMP_NS_MAX, Shift, Told, Which};
pub use summary::Summary;

/// The highest rate. At it a second of the program is a millisecond, which is what waking a thread takes on a busy machine.
pub const RATE_MAX: u32 = 1000;
/// Wrong usage, or a program that cannot have another clock; as `sysexits.h` numbers it.
const USAGE: u8 = 64;
/// The machine does not allow it.
const UNAVAILABLE: u8 = 69;
/// A program that is not there, as shells number it.
const MISSING: u8 = 127;
const HOW: &str = "usage: longhaul-clock --rate N [--since NANOSECONDS] [--shift LINE]… [--control] [--with-parent] [--summary FILE] -- PROGRAM [ARGUMENT…]";

/// How a program is started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// How many times as fast its clock goes, from 1 to [`RATE_MAX`].
    pub rate: u32,
    /// Since which reading of [`now`] it goes so fast: programs that were started one after the other have one clock. Without one, from its
    /// start on.
    pub since_ns: Option<i64>,
    /// What was done to the clock since then.
    pub shifts: Vec<Told>,
    /// Standard input is a socket by which the clock is told of more: a line for each, which is answered by `ok` or why not. The program has
    /// nothing to read then.
    pub control: bool,
    /// It is killed when the process that started it ends.
    pub with_parent: bool,
    /// A file for the [`Summary`], written when everything has ended.
    pub summary: Option<PathBuf>,
}

/// Says why a program cannot have another clock, if that can be told from its file.
pub fn check(program: &OsStr) -> Result<(), Error> {
    Ok(program::check(program)?)
}

/// The machine's monotonic clock, in nanoseconds.
pub fn now() -> i64 {
    sys::reading(libc::CLOCK_MONOTONIC).map_or(0, |[seconds, nanos]| seconds * forms::SECOND + nanos)
}

/// Becomes the program, under a faster clock: it has the number of this process, its files and its parent. Returns only if that fails.
///
/// The caller has one thread, since this process is copied.
pub fn run(settings: &Settings, program: &OsStr, arguments: &[OsString]) -> Error {
    launch::run(settings, program, arguments)
}

/// A whole program: becomes the program of a command line, or says why not.
pub fn command_line(words: impl Iterator<Item = OsString>) -> ExitCode {
    let (settings, command) = match parse(words) {
        Ok(parsed) => parsed,
        Err(why) => {
            eprintln!("longhaul-clock: {why}\n{HOW}");
            return ExitCode::from(USAGE);
        }
    };
    let error = run(&settings, &command[0], &command[1..]);
    eprintln!("longhaul-clock: {error}");
    ExitCode::from(match error {
        Error::Program(program::Error::Missing(_)) => MISSING,
        Error::Rate(_) | Error::Program(_) | Error::Start { .. } => USAGE,
        _ => UNAVAILABLE,
    })
}

fn parse(mut words: impl Iterator<Item = OsString>) -> Result<(Settings, Vec<OsString>), String> {
    let mut settings = Settings::default();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--rate") => {
                let rate = words.next().unwrap_or_default();
                let rate = rate.to_string_lossy();
                settings.rate = rate.parse().map_err(|_| format!("`--rate {rate}`: write a whole number"))?;
            }
            Some("--since") => {
                let since = words.next().unwrap_or_default();
                let since = since.to_string_lossy();
                let parsed = since.parse().ok().filter(|since| (0..=now()).contains(since));
                settings.since_ns = Some(
                    parsed.ok_or_else(|| format!("`--since {since}`: write a past reading of the monotonic clock"))?,
                );
            }
            Some("--shift") => {
                let line = words.next().unwrap_or_default();
                settings.shifts.push(line.to_string_lossy().parse().map_err(|error: shift::Error| error.to_string())?);
            }
            Some("--control") => settings.control = true,
            Some("--with-parent") => settings.with_parent = true,
            Some("--summary") => {
                let file = words.next().ok_or("`--summary` needs a file")?;
                // The tracer is somewhere else, so that it keeps no folder busy.
                settings.summary = Some(std::path::absolute(file).map_err(|error| format!("`--summary`: {error}"))?);
            }
            Some("--") => break,
            _ => return Err(format!("`{}` is not known; the program comes after `--`", word.to_string_lossy())),
        }
    }
    let command: Vec<OsString> = words.collect();
    if command.is_empty() {
        return Err("there is no program to start".to_owned());
    }
    Ok((settings, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_read_or_refused() {
        let parsed = |line: &str| parse(line.split(' ').map(OsString::from));
        let (settings, command) = parsed("--rate 30 --since 1 --summary /s -- sleep --rate 5").unwrap();
        let read = Settings { rate: 30, since_ns: Some(1), summary: Some("/s".into()), ..Settings::default() };
        assert_eq!(settings, read);
        assert_eq!(command, ["sleep", "--rate", "5"]);
        assert_eq!(parsed("--rate 1.5 -- sleep 1").unwrap_err(), "`--rate 1.5`: write a whole number");
        assert!(parsed("--since 9000000000000000000 -- sleep 1").is_err());
        assert_eq!(parsed("sleep 1").unwrap_err(), "`sleep` is not known; the program comes after `--`");
        assert_eq!(parsed("--rate 3 --").unwrap_err(), "there is no program to start");
    }
}
