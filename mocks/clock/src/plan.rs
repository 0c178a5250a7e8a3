//! The plan for a system call before the call is made: a shorter time limit, and the tracer's action after the call.
//!
//! Pure except for the memory of the thread, which is behind [`Memory`].

use crate::calls::{EPOLL_PWAIT2, FUTEX_OPERATION, Finer, Kind, Meaning, OptionUnit, Rest, SOCKET_OPTIONS, Timer};
use crate::change::{Change, Memory, Plan, SCRATCH_OLD, Situation, Then};
use crate::clock::{Clock, REALTIME};
use crate::forms::{Form, MILLISECOND, lower_half};

/// `TFD_TIMER_ABSTIME` and `TIMER_ABSTIME`: the first expiry of a timer, or the end of a sleep, is an instant.
const ABSOLUTE: u64 = 1;
/// `ITIMER_REAL`; all other timers of `setitimer` count CPU time.
const ITIMER_REAL: u64 = 0;

/// Plans how the tracer treats a system call with these arguments.
pub fn plan(kind: Kind, arguments: [u64; 6], situation: &Situation<'_>, memory: &impl Memory) -> Plan {
    if let Kind::Refused { error, why } = kind {
        return Plan::Refuse { error, why };
    }
    changed(kind, arguments, situation, memory).map_or(Plan::Pass, Plan::Change)
}

/// The change of a system call; `None` for a call that stays unchanged or that the kernel refuses anyway.
fn changed(kind: Kind, arguments: [u64; 6], situation: &Situation<'_>, memory: &impl Memory) -> Option<Change> {
    let clock = situation.clock;
    match kind {
        Kind::Wait { limit, form, meaning, rest } => wait((limit, form, meaning, rest), arguments, situation, memory),
        Kind::Millis { limit, finer } => millis(limit, finer, arguments, situation, memory),
        Kind::Arm { new, old, form, timer } => arm((new, old, form, timer), arguments, situation, memory),
        Kind::Left { out, form, timer } => {
            is_own_timer(timer, arguments, clock, memory)?;
            some_address(arguments[out]).map(|at| Change::then(Then::LongerTimer { at, form }))
        }
        Kind::Alarm => alarm(arguments, situation, memory),
        Kind::Read { clock: Some(which), out, form } => {
            let id = Some(int(arguments[which])).filter(|id| clock.is_own(*id))?;
            some_address(arguments[out]).map(|at| Change::then(Then::Own { at, form, clock: id }))
        }
        Kind::Read { clock: None, out, form } => {
            some_address(arguments[out]).map(|at| Change::then(Then::Now { at, form }))
        }
        Kind::Seconds => Some(Change::then(Then::NowSeconds { at: arguments[0] })),
        Kind::Resolution => {
            let at = some_address(arguments[1]).filter(|_| clock.is_own(int(arguments[0])))?;
            Some(Change::then(Then::Longer { at, form: Form::Nanos }))
        }
        Kind::Create => Some(Change::then(Then::Created { at: arguments[2], clock: int(arguments[0]) })),
        Kind::SetOption => set_option(arguments, situation, memory),
        Kind::GetOption => Some(Change::then(match option(arguments)? {
            OptionUnit::Time => Then::Longer { at: arguments[3], form: Form::Micros },
            OptionUnit::Whole => Then::LongerInt { at: arguments[3] },
        })),
        Kind::Restart | Kind::Refused { .. } => None,
    }
}

type Wait = (usize, Form, Meaning, Rest);

fn wait(
    (limit, form, meaning, rest): Wait,
    arguments: [u64; 6],
    situation: &Situation<'_>,
    memory: &impl Memory,
) -> Option<Change> {
    let clock = situation.clock;
    let address = some_address(arguments[limit])?;
    let own = form.nanos(memory.time(address)?)?;
    // `None` for a length from now on, otherwise the clock of an instant.
    let instant = match meaning {
        Meaning::Relative => None,
        Meaning::WallClock => Some(REALTIME),
        Meaning::ClockIn(index) => Some(int(arguments[index])),
        Meaning::Flagged => {
            if !clock.is_own(int(arguments[0])) {
                return None;
            }
            (arguments[1] & ABSOLUTE != 0).then(|| int(arguments[0]))
        }
        Meaning::Futex => futex_instant(arguments[1]),
    };
    let real = match instant {
        None => clock.shorter(own),
        Some(id) => clock.real(id, own)?,
    };
    let written = form.words_up(real);
    memory.set_time(situation.scratch, written)?;
    let then = match rest {
        Rest::InPlace => Then::Rest { from: situation.scratch, written, to: address, form },
        Rest::At(index) if instant.is_none() => {
            some_address(arguments[index]).map_or(Then::Nothing, |at| Then::Interrupted { at, form })
        }
        Rest::At(_) | Rest::Nowhere => Then::Nothing,
    };
    let waits_ns = (instant.is_none() && own > 0).then_some(real);
    Some(Change { waits_ns, ..Change::then(then) }.with(limit, situation.scratch))
}

fn futex_instant(operation: u64) -> Option<i32> {
    let kind = int(operation & FUTEX_OPERATION);
    let is_wall_clock = int(operation) & libc::FUTEX_CLOCK_REALTIME != 0;
    match kind {
        libc::FUTEX_WAIT => None,
        libc::FUTEX_LOCK_PI => Some(REALTIME),
        _ if is_wall_clock => Some(REALTIME),
        _ => Some(libc::CLOCK_MONOTONIC),
    }
}

fn millis(
    limit: usize,
    finer: Finer,
    arguments: [u64; 6],
    situation: &Situation<'_>,
    memory: &impl Memory,
) -> Option<Change> {
    let millis = int(arguments[limit]);
    if millis <= 0 {
        return None;
    }
    let whole = situation.clock.shorter(i128::from(millis) * MILLISECOND);
    let real = situation.rest_ns.unwrap_or(whole);
    let waits_ns = Some(real);
    if finer != Finer::Ppoll && !situation.has_fine_epoll {
        let rounded = situation.clock.shorter(i128::from(millis));
        return Some(Change { waits_ns, ..Change::then(Then::Nothing) }.with(limit, u64::try_from(rounded).ok()?));
    }
    memory.set_time(situation.scratch, Form::Nanos.words(real))?;
    let change = Change { waits_ns, ..Change::then(Then::Nothing) }.with(limit, situation.scratch);
    Some(match finer {
        Finer::Ppoll => {
            let then = Then::Polled { from: situation.scratch };
            Change { number: Some(libc::SYS_ppoll), then, ..change }.with(3, 0).with(4, 0)
        }
        Finer::EpollWait => Change { number: Some(EPOLL_PWAIT2), ..change }.with(4, 0).with(5, 0),
        Finer::EpollPwait => Change { number: Some(EPOLL_PWAIT2), ..change },
    })
}

/// `Some` if the timer of the call runs by a converted clock.
fn is_own_timer(timer: Timer, arguments: [u64; 6], clock: &Clock, memory: &impl Memory) -> Option<()> {
    match timer {
        Timer::Process => (arguments[0] == ITIMER_REAL).then_some(()),
        // The kernel has none for a CPU clock.
        Timer::File => Some(()),
        Timer::Posix => clock.is_own(memory.clock_of_timer(int(arguments[0]))?).then_some(()),
    }
}

type Arm = (usize, usize, Form, Timer);

fn arm(
    (new, old, form, timer): Arm,
    arguments: [u64; 6],
    situation: &Situation<'_>,
    memory: &impl Memory,
) -> Option<Change> {
    let clock = situation.clock;
    is_own_timer(timer, arguments, clock, memory)?;
    let then = some_address(arguments[old]).map_or(Then::Nothing, |at| Then::LongerTimer { at, form });
    let Some(address) = some_address(arguments[new]) else { return Some(Change::then(then)) };
    let period = form.nanos(memory.time(address)?)?;
    let first = form.nanos(memory.time(address + 16)?)?;
    let instant = match timer {
        _ if arguments[1] & ABSOLUTE == 0 => None,
        Timer::Process => None,
        Timer::File => Some(memory.clock_of_file(int(arguments[0]))?),
        Timer::Posix => Some(memory.clock_of_timer(int(arguments[0]))?),
    };
    let first = match instant {
        // A first time of 0 stops the timer, whatever the flags are.
        _ if first == 0 => 0,
        None => clock.shorter(first),
        Some(id) => clock.real(id, first)?,
    };
    memory.set_time(situation.scratch, form.words_up(clock.shorter(period)))?;
    memory.set_time(situation.scratch + 16, form.words_up(first))?;
    let waits_ns = (instant.is_none() && first > 0).then_some(first);
    Some(Change { waits_ns, ..Change::then(then) }.with(new, situation.scratch))
}

/// The plan for `alarm`, which is replaced by a timer with microseconds because whole seconds are too coarse.
fn alarm(arguments: [u64; 6], situation: &Situation<'_>, memory: &impl Memory) -> Option<Change> {
    let (new, old) = (situation.scratch, situation.scratch + SCRATCH_OLD);
    let seconds = i128::from(int(arguments[0]).cast_unsigned()) * MILLISECOND * 1000;
    memory.set_time(new, [0, 0])?;
    memory.set_time(new + 16, Form::Micros.words_up(situation.clock.shorter(seconds)))?;
    let change = Change { number: Some(libc::SYS_setitimer), ..Change::then(Then::Alarm { old }) };
    Some(change.with(0, ITIMER_REAL).with(1, new).with(2, old))
}

/// How a socket option stores its time; `None` for an option that is no time.
fn option(arguments: [u64; 6]) -> Option<OptionUnit> {
    let (level, name) = (int(arguments[1]), int(arguments[2]));
    let (_, _, unit) = SOCKET_OPTIONS.iter().find(|option| (option.0, option.1) == (level, name))?;
    some_address(arguments[3]).map(|_| *unit)
}

fn set_option(arguments: [u64; 6], situation: &Situation<'_>, memory: &impl Memory) -> Option<Change> {
    let length = int(arguments[4]);
    match option(arguments)? {
        OptionUnit::Time if length >= 16 => {
            let own = Form::Micros.nanos(memory.time(arguments[3])?)?;
            memory.set_time(situation.scratch, Form::Micros.words_up(situation.clock.shorter(own)))?;
        }
        OptionUnit::Whole if length >= 4 => {
            let own = i128::from(memory.int(arguments[3])?);
            let real = i32::try_from(situation.clock.shorter(own)).ok()?;
            memory.write(situation.scratch, &real.to_ne_bytes())?;
        }
        OptionUnit::Time | OptionUnit::Whole => return None,
    }
    Some(Change::then(Then::Nothing).with(3, situation.scratch))
}

fn some_address(address: u64) -> Option<u64> {
    (address != 0).then_some(address)
}

/// An argument that the kernel reads as an `int`. The upper half of the register may have any value.
fn int(argument: u64) -> i32 {
    lower_half(argument)
}

#[cfg(test)]
mod tests;
