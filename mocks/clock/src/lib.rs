//! A faster clock for any Linux program, unmodified: dynamic or static, of C, Go, Java, Node or Python.
//!
//! The program starts under `ptrace`. In each new program the time functions of the vDSO (the kernel's code in every
//! program) are changed to return a faster time. A kernel filter stops only system calls with a time argument: the
//! tracer divides their time limits by the rate, and multiplies the times that the kernel writes back.
//! `docs/decisions/028-a-faster-clock.md` explains the mechanism, and `docs/clock.md` lists the times that stay real.
//! This crate knows nothing of the harness.

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
pub use shift::{DRIFT_PPM_MAX, JUMP_NS_MAX, Shift, TimedShift, Which};
pub use summary::Summary;

/// The highest rate. At this rate a second of the program's clock is a real millisecond, which a busy machine needs to
/// wake a thread.
pub const RATE_MAX: u32 = 1000;
/// Exit code for wrong usage, or for a program that cannot have another clock (`sysexits.h`).
const USAGE: u8 = 64;
/// Exit code if the machine does not allow tracing (`sysexits.h`).
const UNAVAILABLE: u8 = 69;
/// Exit code for a missing program, as in shells.
const MISSING: u8 = 127;
const HOW: &str = "usage: longhaul-clock --rate N [--since NANOSECONDS] [--shift LINE]… [--control] [--with-parent] [--summary FILE] -- PROGRAM [ARGUMENT…]";

/// The settings of a program under a faster clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// How many times as fast the clock runs, from 1 to [`RATE_MAX`].
    pub rate: u32,
    /// The time at which the clock becomes faster, as [`now`] returns it: programs with different starts can share one
    /// clock. Default: the start of the program.
    pub since_ns: Option<i64>,
    /// The changes of the clock between `since_ns` and the start of the program.
    pub shifts: Vec<TimedShift>,
    /// Whether standard input is a socket for changes of the clock. Each line on the socket is a change, which the
    /// tracer answers by `ok` or an error. The program then has no standard input.
    pub control: bool,
    /// Whether the program is killed when the process that started it ends.
    pub with_parent: bool,
    /// The file for the [`Summary`], written when all programs have ended.
    pub summary: Option<PathBuf>,
}

/// Checks, as far as a program's file shows it, whether the program can run under another clock.
pub fn check(program: &OsStr) -> Result<(), Error> {
    Ok(program::check(program)?)
}

/// The machine's monotonic clock, in nanoseconds.
pub fn now() -> i64 {
    sys::reading(libc::CLOCK_MONOTONIC).map_or(0, |[seconds, nanos]| seconds * forms::SECOND + nanos)
}

/// Replaces this process by the program, under a faster clock. The program keeps the process id, files and parent of
/// this process. The function returns only on failure.
///
/// The caller must have only one thread, because this process is copied.
pub fn run(settings: &Settings, program: &OsStr, arguments: &[OsString]) -> Error {
    launch::run(settings, program, arguments)
}

/// The main function of `longhaul-clock`: replaces this process by the program on the command line, or prints an error.
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
                // The tracer runs in another folder, so that it keeps none busy.
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
