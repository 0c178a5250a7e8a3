//! The tracer's action after a system call: converts times that the kernel wrote to the program's time.
//!
//! Pure except for the memory of the thread, which is behind [`Memory`].

use crate::change::{Memory, Then};
use crate::clock::{Clock, REALTIME};
use crate::forms::{Form, SECOND};
use crate::sys;

/// `ERESTARTNOHAND`: the kernel repeats the call if no signal handler runs; with a handler the call ends with
/// [`libc::EINTR`].
pub const RESTART_WITHOUT_HANDLER: i64 = -514;
/// `ERESTART_RESTARTBLOCK`: as [`RESTART_WITHOUT_HANDLER`], but the kernel repeats the call by `restart_syscall` with
/// the end time that it saved.
pub const RESTART_BY_BLOCK: i64 = -516;
const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// The result of the tracer's action after a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The result that the program gets instead of the kernel's result of the call.
    pub result: Option<i64>,
    /// The number and the clock of a new timer.
    pub timer: Option<(i32, i32)>,
    /// The remaining time in real nanoseconds, if the kernel repeats the call.
    pub rest_ns: Option<i128>,
    /// Whether the kernel continues the interrupted wait and will write its remaining time again.
    pub goes_on: bool,
}

/// Acts after a system call, as `then` says.
pub fn finish(then: Then, result: i64, clock: &Clock, memory: &impl Memory) -> Outcome {
    let mut outcome = Outcome { goes_on: result == RESTART_BY_BLOCK, ..Outcome::default() };
    match then {
        Then::Nothing => {}
        Then::Rest { from, written, to, form } => {
            if let Some(rest) = memory.time(from).filter(|rest| *rest != written) {
                // Memory that cannot be written is left unchanged, as by the kernel.
                let _ = longer(rest, form, clock).and_then(|rest| memory.set_time(to, rest));
            }
        }
        Then::Interrupted { at, form } => {
            if result == INTERRUPTED || result == RESTART_BY_BLOCK {
                multiply(at, form, clock, memory);
            }
        }
        Then::Polled { from } => {
            if result == RESTART_WITHOUT_HANDLER {
                outcome.rest_ns = memory.time(from).and_then(|rest| Form::Nanos.nanos(rest));
            }
        }
        // All other steps apply only if the call succeeded.
        _ if result < 0 => {}
        Then::Longer { at, form } => multiply(at, form, clock, memory),
        Then::LongerTimer { at, form } => {
            if let Some(period) = memory.time(at).and_then(|period| form.nanos(period)) {
                let _ = memory.set_time(at, form.words(clock.period(period)));
            }
            multiply(at + 16, form, clock, memory);
        }
        Then::Own { at, form, clock: id } => {
            if let Some(real) = memory.time(at).and_then(|real| form.nanos(real)) {
                let _ = memory.set_time(at, form.words(clock.own(id, real)));
            }
        }
        Then::Now { at, form } => {
            let _ = memory.set_time(at, form.words(wall_clock(clock)));
        }
        Then::NowSeconds { at } => {
            let [seconds, _] = Form::Nanos.words(wall_clock(clock));
            if at != 0 {
                let _ = memory.write(at, &seconds.to_ne_bytes());
            }
            outcome.result = Some(seconds);
        }
        Then::Alarm { old } => {
            let left = memory.time(old + 16).and_then(|left| Form::Micros.nanos(left)).unwrap_or(0);
            outcome.result = Some(alarm_seconds(clock.longer(left)));
        }
        Then::Created { at, clock } => outcome.timer = memory.int(at).map(|timer| (timer, clock)),
        Then::LongerInt { at } => {
            if let Some(real) = memory.int(at) {
                let own = i32::try_from(clock.longer(i128::from(real))).unwrap_or(i32::MAX);
                let _ = memory.write(at, &own.to_ne_bytes());
            }
        }
    }
    outcome
}

/// The program's wall-clock time. The kernel's clock is read again in nanoseconds, because multiplied seconds or
/// microseconds would be too coarse.
fn wall_clock(clock: &Clock) -> i128 {
    let real = sys::reading(REALTIME).and_then(|now| Form::Nanos.nanos(now)).unwrap_or(0);
    clock.own(REALTIME, real)
}

/// Whole seconds of an alarm, rounded as `alarm` does: never 0 while time is left.
fn alarm_seconds(left_ns: i128) -> i64 {
    let second = i128::from(SECOND);
    let rounded = (left_ns + second / 2) / second;
    i64::try_from(rounded.max(i128::from(left_ns > 0))).unwrap_or(i64::MAX)
}

fn longer(real: [i64; 2], form: Form, clock: &Clock) -> Option<[i64; 2]> {
    form.nanos(real).map(|nanos| form.words(clock.longer(nanos)))
}

fn multiply(at: u64, form: Form, clock: &Clock, memory: &impl Memory) {
    let _ = memory.time(at).and_then(|real| longer(real, form, clock)).and_then(|own| memory.set_time(at, own));
}
