//! The table of system calls with times: the argument with the time, and its meaning.
//!
//! Owns the table. A call that is not in it runs without a stop.

use crate::forms::Form;

/// One system call with a time in it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The C library's name.
    #[cfg_attr(not(test), expect(dead_code, reason = "the table is read by people, and by tests"))]
    pub name: &'static str,
    pub number: i64,
    pub kind: Kind,
}

/// The place of the time in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only older processors have such calls"))]
pub enum Kind {
    /// A wait; `limit` points to its length.
    Wait {
        limit: usize,
        form: Form,
        meaning: Meaning,
        rest: Rest,
    },
    /// A wait for milliseconds in a register. It is replaced by another call, which waits for nanoseconds.
    Millis {
        limit: usize,
        finer: Finer,
    },
    /// Sets a timer: a period and the first time; returns the old setting.
    Arm {
        new: usize,
        old: usize,
        form: Form,
        timer: Timer,
    },
    /// Returns the rest of a timer.
    Left {
        out: usize,
        form: Form,
        timer: Timer,
    },
    /// `alarm`: seconds in a register; the result is the seconds left of the old one.
    Alarm,
    /// Reads a clock: `clock_gettime`, `gettimeofday`; `None` means the wall clock.
    Read {
        clock: Option<usize>,
        out: usize,
        form: Form,
    },
    /// `time`: seconds as the result, and at the address in its argument.
    Seconds,
    /// `clock_getres`.
    Resolution,
    /// `timer_create`: the clock of the timer is remembered.
    Create,
    /// `setsockopt` and `getsockopt`.
    SetOption,
    GetOption,
    /// `restart_syscall`: the kernel goes on with a wait that a signal interrupted.
    Restart,
    /// Refused with this error, because its times cannot be seen or are the machine's.
    Refused {
        error: i32,
        why: &'static str,
    },
}

/// The reference point of a wait's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Relative,
    /// An instant of the wall clock.
    WallClock,
    /// An instant of the clock whose number is in that argument.
    ClockIn(usize),
    /// `clock_nanosleep`: a clock in the first argument, and a flag that selects an instant.
    Flagged,
    /// `futex`: the operation decides.
    Futex,
}

/// Where the kernel writes the rest of the limit, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Nowhere,
    /// In the place of the limit.
    InPlace,
    /// At the address in that argument, after a signal.
    At(usize),
}

/// The call with nanoseconds that replaces one with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only older processors have such calls"))]
pub enum Finer {
    Ppoll,
    /// `epoll_wait` has no signal mask, `epoll_pwait` has one.
    EpollWait,
    EpollPwait,
}

/// How the clock of a timer is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// `setitimer`: only the first kind counts real time.
    Process,
    /// `timerfd`: the first argument is the file.
    File,
    /// `timer_settime`: the first argument is the timer's number.
    Posix,
}

/// Operations of `futex` whose fourth argument is a limit: [`libc::FUTEX_WAIT`] counts from now, the others wait for an
/// instant.
pub const FUTEX_WAITS: [i32; 5] =
    [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2, libc::FUTEX_WAIT_REQUEUE_PI];
/// The mask of a futex operation; the other bits are flags.
pub const FUTEX_OPERATION: u64 = 127;

/// Socket options with a time: level, name and unit.
pub const SOCKET_OPTIONS: &[(i32, i32, OptionUnit)] = &[
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO, OptionUnit::Time),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO, OptionUnit::Time),
    // Named for programs with 64-bit times on 32-bit CPUs; the kernel accepts them everywhere.
    (libc::SOL_SOCKET, 66, OptionUnit::Time),
    (libc::SOL_SOCKET, 67, OptionUnit::Time),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, OptionUnit::Whole),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, OptionUnit::Whole),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, OptionUnit::Whole),
];

/// How an option writes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionUnit {
    /// A `struct timeval`; zero means for ever.
    Time,
    /// An `int` of whole seconds or milliseconds, rounded up.
    Whole,
}

const fn call(name: &'static str, number: i64, kind: Kind) -> Call {
    Call { name, number, kind }
}

const fn wait(name: &'static str, number: i64, limit: usize, meaning: Meaning, rest: Rest) -> Call {
    call(name, number, Kind::Wait { limit, form: Form::Nanos, meaning, rest })
}

/// The bit in the call number of x32, an ABI of x86-64 with pointers of 32 bits.
pub const SHORT_WORDS: u32 = 0x4000_0000;
/// The treatment of x32 calls.
pub const NO_SHORT_WORDS: Kind = Kind::Refused {
    error: libc::ENOSYS,
    why: "calls of x32 are refused, since their times have another form: the program is told that the kernel has none; build it for x86-64",
};

const IO_URING: &str = "io_uring is refused, since its limits of time cannot be seen from outside: the program is told that the kernel has none";
const SETTING: &str = "the machine's clock is not to be set by a program whose own goes faster";

/// Calls of every CPU. Some C libraries lack names for numbers from 424 on; those numbers are the same on every CPU.
const EVERYWHERE: &[Call] = {
    use Meaning::{ClockIn, Flagged, Futex, Relative, WallClock};
    &[
        wait("nanosleep", libc::SYS_nanosleep, 0, Relative, Rest::At(1)),
        wait("clock_nanosleep", libc::SYS_clock_nanosleep, 2, Flagged, Rest::At(3)),
        wait("futex", libc::SYS_futex, 3, Futex, Rest::Nowhere),
        wait("futex_waitv", 449, 3, ClockIn(4), Rest::Nowhere),
        wait("futex_wait", 455, 4, ClockIn(5), Rest::Nowhere),
        wait("ppoll", libc::SYS_ppoll, 2, Relative, Rest::InPlace),
        wait("pselect6", libc::SYS_pselect6, 4, Relative, Rest::InPlace),
        wait("epoll_pwait2", EPOLL_PWAIT2, 3, Relative, Rest::Nowhere),
        wait("rt_sigtimedwait", libc::SYS_rt_sigtimedwait, 2, Relative, Rest::Nowhere),
        wait("recvmmsg", libc::SYS_recvmmsg, 4, Relative, Rest::InPlace),
        wait("semtimedop", libc::SYS_semtimedop, 3, Relative, Rest::Nowhere),
        wait("mq_timedsend", libc::SYS_mq_timedsend, 4, WallClock, Rest::Nowhere),
        wait("mq_timedreceive", libc::SYS_mq_timedreceive, 4, WallClock, Rest::Nowhere),
        wait("io_getevents", libc::SYS_io_getevents, 4, Relative, Rest::Nowhere),
        wait("io_pgetevents", IO_PGETEVENTS, 4, Relative, Rest::Nowhere),
        call("epoll_pwait", libc::SYS_epoll_pwait, Kind::Millis { limit: 3, finer: Finer::EpollPwait }),
        call("timerfd_settime", libc::SYS_timerfd_settime, arm(2, 3, Form::Nanos, Timer::File)),
        call("timerfd_gettime", libc::SYS_timerfd_gettime, left(1, Form::Nanos, Timer::File)),
        call("timer_create", libc::SYS_timer_create, Kind::Create),
        call("timer_settime", libc::SYS_timer_settime, arm(2, 3, Form::Nanos, Timer::Posix)),
        call("timer_gettime", libc::SYS_timer_gettime, left(1, Form::Nanos, Timer::Posix)),
        call("setitimer", libc::SYS_setitimer, arm(1, 2, Form::Micros, Timer::Process)),
        call("getitimer", libc::SYS_getitimer, left(1, Form::Micros, Timer::Process)),
        call("clock_gettime", libc::SYS_clock_gettime, Kind::Read { clock: Some(0), out: 1, form: Form::Nanos }),
        call("gettimeofday", libc::SYS_gettimeofday, Kind::Read { clock: None, out: 0, form: Form::Micros }),
        call("clock_getres", libc::SYS_clock_getres, Kind::Resolution),
        call("setsockopt", libc::SYS_setsockopt, Kind::SetOption),
        call("getsockopt", libc::SYS_getsockopt, Kind::GetOption),
        call("restart_syscall", libc::SYS_restart_syscall, Kind::Restart),
        call("io_uring_setup", libc::SYS_io_uring_setup, Kind::Refused { error: libc::ENOSYS, why: IO_URING }),
        call("clock_settime", libc::SYS_clock_settime, Kind::Refused { error: libc::EPERM, why: SETTING }),
        call("settimeofday", libc::SYS_settimeofday, Kind::Refused { error: libc::EPERM, why: SETTING }),
    ]
};

/// Calls of older CPUs, which the C library emulates on newer ones.
#[cfg(target_arch = "x86_64")]
const HERE: &[Call] = &[
    call("poll", libc::SYS_poll, Kind::Millis { limit: 2, finer: Finer::Ppoll }),
    call("epoll_wait", libc::SYS_epoll_wait, Kind::Millis { limit: 3, finer: Finer::EpollWait }),
    call(
        "select",
        libc::SYS_select,
        Kind::Wait { limit: 4, form: Form::Micros, meaning: Meaning::Relative, rest: Rest::InPlace },
    ),
    call("alarm", libc::SYS_alarm, Kind::Alarm),
    call("time", libc::SYS_time, Kind::Seconds),
];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[Call] = &[];

/// `io_pgetevents`, which some C libraries do not name.
#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: i64 = 333;
#[cfg(not(target_arch = "x86_64"))]
const IO_PGETEVENTS: i64 = 292;
/// `epoll_pwait2`, which came with Linux 5.11.
pub const EPOLL_PWAIT2: i64 = 441;

const fn arm(new: usize, old: usize, form: Form, timer: Timer) -> Kind {
    Kind::Arm { new, old, form, timer }
}

const fn left(out: usize, form: Form, timer: Timer) -> Kind {
    Kind::Left { out, form, timer }
}

/// All calls with a time on this CPU.
pub fn all() -> impl Iterator<Item = &'static Call> {
    EVERYWHERE.iter().chain(HERE)
}

/// The call with that number.
pub fn of(number: i64) -> Option<&'static Call> {
    all().find(|call| call.number == number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_call_is_there_once() {
        let numbers: BTreeSet<_> = all().map(|call| call.number).collect();
        let names: BTreeSet<_> = all().map(|call| call.name).collect();
        assert_eq!(numbers.len(), all().count());
        assert_eq!(names.len(), all().count());
        assert_eq!(of(libc::SYS_futex).unwrap().name, "futex");
        assert!(of(libc::SYS_write).is_none());
    }
}
