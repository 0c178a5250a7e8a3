//! The current clock, which is the same for all traced programs, and the threads of programs whose clock can change
//! during the run.
//!
//! Owns the update of programs: the new clock is written into each program's memory beside the old clock, and then one
//! byte selects the new clock. No program stops for the update.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, WORDS};
use crate::room::{SET_BYTES, SETS_COUNT, WHICH, set};
use crate::shift::TimedShift;
use crate::sys::{self, Tid};

const _: () = assert!(WORDS * 8 <= 256 && SET_BYTES == 256);
/// Longest line with a change of the clock; a longer line is refused.
const LINE_BYTES_MAX: u64 = 256;

/// The current clock, shared by the tracer and the thread that changes the clock.
#[derive(Debug)]
pub struct Live(Mutex<State>);

#[derive(Debug)]
struct State {
    clock: Clock,
    /// The number of the selected set of clock data (`crate::room::SETS`).
    which: u8,
    /// Threads of programs that have memory for further clocks, so that their clock can change.
    told: HashSet<Tid>,
    /// Threads of programs without memory for further clocks, so that their clock cannot change.
    untold: HashSet<Tid>,
}

impl Live {
    pub fn new(clock: Clock) -> Self {
        Self(Mutex::new(State { clock, which: 0, told: HashSet::new(), untold: HashSet::new() }))
    }

    pub fn clock(&self) -> Clock {
        self.state().clock
    }

    /// Adds a thread that has not run yet, and writes the current clock into its program.
    pub fn add(&self, tid: Tid, has_room: bool) {
        let mut state = self.state();
        let (threads, others) = if has_room { (&mut state.told, false) } else { (&mut state.untold, true) };
        threads.insert(tid);
        if !others {
            state.tell(tid);
        }
    }

    /// Removes a thread after its end or the end of its program.
    pub fn remove(&self, tid: Tid) {
        let mut state = self.state();
        state.told.remove(&tid);
        state.untold.remove(&tid);
    }

    /// Changes the clock of all programs. The error names the number of threads whose clock could not be changed.
    pub fn shift(&self, told: TimedShift) -> Result<(), String> {
        let mut state = self.state();
        if !state.untold.is_empty() {
            return Err(format!(
                "{} threads are of programs that have something at {:#x}, where the clock must be: a program of more than \
                 180 MB; build it with `-buildmode=pie`",
                state.untold.len(),
                crate::room::CODE
            ));
        }
        state.clock = state.clock.shifted(told);
        state.which = (state.which + 1) % SETS_COUNT;
        let threads: Vec<Tid> = state.told.iter().copied().collect();
        for tid in threads {
            state.tell(tid);
        }
        Ok(())
    }

    /// Reads lines from the file `line` until its end. Each line changes the clock and is answered by `ok` or an error.
    pub fn serve(&self, line: &std::fs::File) {
        let mut reader = BufReader::new(line);
        loop {
            let mut text = String::new();
            match reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut text) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let outcome = text.trim_end().parse().map_err(|error: crate::shift::Error| error.to_string());
            let answer = match outcome.and_then(|told| self.shift(told)) {
                Ok(()) => "ok\n".to_owned(),
                Err(why) => format!("{why}\n"),
            };
            let mut to = line;
            if to.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is never half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes the current clock into a program's memory, then the byte that selects that clock. Nothing is written if
    /// the program has ended.
    fn tell(&self, tid: Tid) {
        let bytes: Vec<u8> = self.clock.words().into_iter().flat_map(u64::to_ne_bytes).collect();
        let _ = sys::write(tid, set(self.which), &bytes).and_then(|()| sys::write(tid, WHICH, &[self.which]));
    }
}
