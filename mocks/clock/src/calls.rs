//! The table of system calls with times: which argument contains the time, and its meaning.
//!
//! The tracer never stops a system call that is missing in the table.

use crate::forms::Form;

/// One system call that takes or returns a time.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The name of the call in the C library.
    #[cfg_attr(not(test), expect(dead_code, reason = "the table is read by people, and by tests"))]
    pub name: &'static str,
    pub number: i64,
    pub kind: Kind,
}

/// Where a system call contains a time, and how the tracer treats the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only older processors have such calls"))]
pub enum Kind {
    /// A wait; `limit` is the index of the argument with the address of the wait's time limit.
    Wait {
        limit: usize,
        form: Form,
        meaning: Meaning,
        rest: Rest,
    },
    /// A wait whose time limit is a number of milliseconds in a register. The tracer replaces the call by a call with a
    /// limit in nanoseconds.
    Millis {
        limit: usize,
        finer: Finer,
    },
    /// Sets a timer: a period and the first expiry. The kernel returns the old setting.
    Arm {
        new: usize,
        old: usize,
        form: Form,
        timer: Timer,
    },
    /// The kernel returns the remaining time of a timer.
    Left {
        out: usize,
        form: Form,
        timer: Timer,
    },
    /// `alarm`: seconds in a register; the result is the seconds that were left of the previous alarm.
    Alarm,
    /// Reads a clock: `clock_gettime`, `gettimeofday`; `None` means the wall clock.
    Read {
        clock: Option<usize>,
        out: usize,
        form: Form,
    },
    /// `time`: returns seconds, and writes them to the address in its argument.
    Seconds,
    /// `clock_getres`: returns the resolution of a clock.
    Resolution,
    /// `timer_create`: the tracer remembers the clock of the timer.
    Create,
    /// `setsockopt` and `getsockopt`: some options of sockets are times.
    SetOption,
    GetOption,
    /// `restart_syscall`: the kernel continues a wait that a signal interrupted.
    Restart,
    /// The call fails with this error, because the tracer cannot see the call's times, or because the call would set
    /// the machine's clock.
    Refused {
        error: i32,
        why: &'static str,
    },
}

/// The meaning of a wait's limit: a duration or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Relative,
    WallClock,
    /// An instant of the clock whose number is in the argument with this index.
    ClockIn(usize),
    /// `clock_nanosleep`: the first argument is a clock, and a flag tells whether the limit is an instant.
    Flagged,
    /// `futex`: the operation decides whether the limit is a duration or an instant.
    Futex,
}

/// Where the kernel writes the remaining time of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Nowhere,
    /// Into the memory that contains the wait's time limit.
    InPlace,
    /// To the address in this argument, after a signal.
    At(usize),
}

/// The system call with a limit in nanoseconds that replaces a call with a limit in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only older processors have such calls"))]
pub enum Finer {
    Ppoll,
    /// `epoll_wait`, which has no signal mask, unlike `epoll_pwait`.
    EpollWait,
    EpollPwait,
}

/// How the tracer finds the clock of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// `setitimer`: only its timer `ITIMER_REAL` counts real time.
    Process,
    /// `timerfd`: the first argument is the file descriptor.
    File,
    /// `timer_settime`: the first argument is the timer's number.
    Posix,
}

/// Operations of `futex` whose fourth argument is a time limit: a duration for [`libc::FUTEX_WAIT`], an instant for all
/// others.
pub const FUTEX_WAITS: [i32; 5] =
    [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2, libc::FUTEX_WAIT_REQUEUE_PI];
/// The bits of a futex operation without its flags.
pub const FUTEX_OPERATION: u64 = 127;

/// Socket options that are times: each with its level, name and unit.
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

/// How a socket option stores its time.
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

/// The bit in the call number of x32, an ABI of x86-64 with 32-bit pointers.
pub const SHORT_WORDS: u32 = 0x4000_0000;
pub const NO_SHORT_WORDS: Kind = Kind::Refused {
    error: libc::ENOSYS,
    why: "calls of x32 are refused, since their times have another form: the program is told that the kernel has none; build it for x86-64",
};

const IO_URING: &str = "io_uring is refused, since its limits of time cannot be seen from outside: the program is told that the kernel has none";
const SETTING: &str = "the machine's clock is not to be set by a program whose own goes faster";

/// System calls that exist on every CPU type. Some C libraries lack names for numbers from 424 on; those numbers are
/// the same on every CPU type.
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

/// System calls that only older CPU types have; the C library emulates them on newer types.
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

/// The number of `io_pgetevents`, for which some C libraries have no name.
#[cfg(target_arch = "x86_64")]
const IO_PGETEVENTS: i64 = 333;
#[cfg(not(target_arch = "x86_64"))]
const IO_PGETEVENTS: i64 = 292;
/// The number of `epoll_pwait2`, which Linux 5.11 introduced.
pub const EPOLL_PWAIT2: i64 = 441;

const fn arm(new: usize, old: usize, form: Form, timer: Timer) -> Kind {
    Kind::Arm { new, old, form, timer }
}

const fn left(out: usize, form: Form, timer: Timer) -> Kind {
    Kind::Left { out, form, timer }
}

/// All system calls with a time on this CPU type.
pub fn all() -> impl Iterator<Item = &'static Call> {
    EVERYWHERE.iter().chain(HERE)
}

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
