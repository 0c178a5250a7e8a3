//! The connection by which faults change the clock of a subject's running process.
//!
//! This module remembers all changes of the clock, so that a restarted process gets the clock of the process that it
//! replaces. The code in `mocks/clock` changes the clock inside the process.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use mock_clock::{Shift, TimedShift};
use parking_lot::Mutex;

/// Time limit of a process's answer, which usually takes a tenth of a millisecond. A subject's process listens on this
/// connection as soon as it runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a valid answer, in bytes.
const ANSWER_BYTES_MAX: usize = 512;

/// The connections to a process and to the processes that replace it.
#[derive(Debug, Default)]
pub struct ClockLine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    told: Vec<TimedShift>,
    open: Vec<UnixStream>,
}

impl ClockLine {
    /// Arguments and standard input for a process that is about to start.
    pub(super) fn connect(&self) -> std::io::Result<(Vec<OsString>, OwnedFd)> {
        let mut state = self.0.lock();
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        ours.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        state.open.push(ours);
        let told = state.told.iter().flat_map(|told| ["--shift".to_owned(), told.to_string()]);
        let words = std::iter::once("--control".to_owned()).chain(told).map(OsString::from).collect();
        Ok((words, theirs.into()))
    }

    /// Changes the clock of the running processes. Returns the number of processes whose clock was changed. The error
    /// says why the clock of a process could not be changed.
    pub fn tell(&self, shift: Shift) -> Result<usize, String> {
        let mut state = self.0.lock();
        let told = TimedShift { at_ns: mock_clock::now(), shift };
        state.told.push(told);
        let mut refused = None;
        state.open.retain_mut(|line| match ask(line, told) {
            Ok(answer) if answer == "ok" => true,
            Ok(answer) => {
                refused = Some(answer);
                true
            }
            Err(error) if has_ended(&error) => false,
            // A later answer on this connection would be the one to this request.
            Err(error) => {
                refused = Some(format!("it did not answer: {error}"));
                false
            }
        });
        refused.map_or(Ok(state.open.len()), Err)
    }
}

fn has_ended(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | BrokenPipe | ConnectionReset)
}

/// Sends one line with a change of the clock to a process, and reads the answer.
fn ask(line: &mut UnixStream, told: TimedShift) -> std::io::Result<String> {
    writeln!(line, "{told}")?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while answer.len() < ANSWER_BYTES_MAX {
        line.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        answer.extend(byte);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
