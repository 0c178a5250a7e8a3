//! Tests of every call in the table at rate 30: the limit is divided by 30, the remaining time is multiplied by 30, and
//! nothing else changes.

use super::*;
use crate::calls;
use crate::finish::{RESTART_WITHOUT_HANDLER, finish};
use crate::pretended::Pretended;

mod waits;

const RATE: u32 = 30;
/// The time of every clock at the start, in nanoseconds.
const BASE: i64 = 1_000_000_000_000;
const LIMIT: u64 = 0x1000;
const SCRATCH: u64 = 0x9000;
const MINUTE: [i64; 2] = [60, 0];
const TWO: [i64; 2] = [2, 0];

fn situation(clock: &Clock) -> Situation<'_> {
    Situation { clock, scratch: SCRATCH, has_fine_epoll: true, rest_ns: None }
}

fn plan_of(name: &str, arguments: [u64; 6], memory: &Pretended) -> Plan {
    let call = calls::all().find(|call| call.name == name).unwrap();
    plan(call.kind, arguments, &situation(&Clock::of_test(RATE, BASE)), memory)
}

fn change(name: &str, arguments: [u64; 6], memory: &Pretended) -> Change {
    match plan_of(name, arguments, memory) {
        Plan::Change(change) => change,
        other => panic!("{name}: {other:?}"),
    }
}

/// Six arguments, all 0 except the one at `index`.
fn with(index: usize, value: u64) -> [u64; 6] {
    let mut arguments = [0; 6];
    arguments[index] = value;
    arguments
}

#[test]
fn instants_of_futexes_are_of_the_clock_that_they_say() {
    let memory = Pretended::default();
    memory.set_time(LIMIT, [1060, 0]).unwrap();
    let real = u64::try_from(libc::FUTEX_CLOCK_REALTIME).unwrap();
    let private = 128;
    for (operation, expected) in [
        (libc::FUTEX_WAIT, [35, 333_333_334]),
        (libc::FUTEX_WAIT_BITSET, [1002, 0]),
        (libc::FUTEX_LOCK_PI, [1002, 0]),
        (libc::FUTEX_LOCK_PI2, [1002, 0]),
        (libc::FUTEX_WAIT_REQUEUE_PI, [1002, 0]),
    ] {
        for flags in [0, private, real, real | private] {
            let operation = u64::try_from(operation).unwrap() | flags;
            change("futex", [0x10, operation, 0, LIMIT, 0, 0], &memory);
            assert_eq!(memory.time(SCRATCH), Some(expected), "{operation}");
        }
    }
    assert_eq!(futex_instant(9), Some(libc::CLOCK_MONOTONIC));
    assert_eq!(futex_instant(9 | real), Some(libc::CLOCK_REALTIME));
    assert_eq!(futex_instant(6), Some(libc::CLOCK_REALTIME));
}

#[test]
fn sleeps_by_another_clock_pass() {
    let memory = Pretended::default();
    memory.set_time(LIMIT, [1060, 0]).unwrap();
    let processor = u64::try_from(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    assert_eq!(plan_of("clock_nanosleep", [processor, 0, LIMIT, 0, 0, 0], &memory), Plan::Pass);
    let absolute = change("clock_nanosleep", [1, 1, LIMIT, 0x2000, 0, 0], &memory);
    assert_eq!((memory.time(SCRATCH), absolute.then), (Some([1002, 0]), Then::Nothing));
    assert_eq!(absolute.waits_ns, None);
}

/// A wait with a limit in milliseconds gets a limit in nanoseconds, because it would otherwise be rounded up to a whole
/// real millisecond.
#[test]
fn milliseconds_become_nanoseconds() {
    let memory = Pretended::default();
    let fine = change("epoll_pwait", [3, 0x10, 8, 10, 0x77, 8], &memory);
    assert_eq!(fine.number, Some(EPOLL_PWAIT2));
    assert_eq!(fine.arguments, [None, None, None, Some(SCRATCH), None, None]);
    assert_eq!(memory.time(SCRATCH), Some([0, 333_334]));
    let upper_half_is_rubbish = 0xffff_ffff_0000_0001;
    change("epoll_pwait", [3, 0x10, 8, upper_half_is_rubbish, 0, 8], &memory);
    assert_eq!(memory.time(SCRATCH), Some([0, 33_334]));
    let clock = Clock::of_test(RATE, BASE);
    let old_kernel = Situation { has_fine_epoll: false, ..situation(&clock) };
    let kind = calls::of(libc::SYS_epoll_pwait).unwrap().kind;
    let Plan::Change(coarse) = plan(kind, [3, 0x10, 8, 100, 0, 8], &old_kernel, &memory) else { panic!() };
    assert_eq!((coarse.number, coarse.arguments[3]), (None, Some(4)));
    for none in [0, u64::from(u32::MAX)] {
        assert_eq!(plan_of("epoll_pwait", [3, 0x10, 8, none, 0, 8], &memory), Plan::Pass);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_poll_that_is_made_again_waits_for_its_rest() {
    let memory = Pretended::default();
    let poll = change("poll", [0x10, 1, 60_000, 5, 5, 0], &memory);
    assert_eq!(poll.number, Some(libc::SYS_ppoll));
    assert_eq!(poll.arguments, [None, None, Some(SCRATCH), Some(0), Some(0), None]);
    let clock = Clock::of_test(RATE, BASE);
    memory.set_time(SCRATCH, [0, 500]).unwrap();
    assert_eq!(finish(poll.then, 1, &clock, &memory).rest_ns, None);
    let rest_ns = finish(poll.then, RESTART_WITHOUT_HANDLER, &clock, &memory).rest_ns;
    assert_eq!(rest_ns, Some(500));
    let kind = calls::of(libc::SYS_poll).unwrap().kind;
    plan(kind, [0x10, 1, 60_000, 5, 5, 0], &Situation { rest_ns, ..situation(&clock) }, &memory);
    assert_eq!(memory.time(SCRATCH), Some([0, 500]));
}

#[test]
fn timers_have_period_and_first_time() {
    for (name, first, clockless) in [("timerfd_settime", 7, 8), ("timer_settime", 0, 1), ("setitimer", 0, 1)] {
        let form = if name == "setitimer" { Form::Micros } else { Form::Nanos };
        let memory = Pretended::default();
        memory.set_time(LIMIT, [1, 0]).unwrap();
        memory.set_time(LIMIT + 16, MINUTE).unwrap();
        let (new, old) = if name == "setitimer" { (1, 2) } else { (2, 3) };
        let mut arguments = with(new, LIMIT);
        arguments[0] = first;
        arguments[old] = 0x2000;
        let change = change(name, arguments, &memory);
        assert_eq!(memory.time(SCRATCH), Some(form.words_up(33_333_334)), "{name}");
        assert_eq!(memory.time(SCRATCH + 16), Some(TWO), "{name}");
        assert_eq!(change.arguments[new], Some(SCRATCH), "{name}");
        memory.set_time(0x2000, form.words_up(33_333_334)).unwrap();
        memory.set_time(0x2010, TWO).unwrap();
        finish(change.then, 0, &Clock::of_test(RATE, BASE), &memory);
        assert_eq!(memory.time(0x2010), Some(MINUTE), "{name}");
        if form == Form::Nanos {
            assert_eq!(memory.time(0x2000), Some([1, 0]), "{name}");
        }
        // An instant; a file with an unknown clock and a CPU timer have none.
        if name == "setitimer" {
            assert_eq!(plan_of(name, [1, LIMIT, 0, 0, 0, 0], &memory), Plan::Pass, "{name}");
        } else {
            memory.set_time(LIMIT + 16, [1060, 0]).unwrap();
            plan_of(name, [first, 1, LIMIT, 0, 0, 0], &memory);
            assert_eq!(memory.time(SCRATCH + 16), Some([1002, 0]), "{name}");
            memory.set_time(LIMIT + 16, [0, 0]).unwrap();
            plan_of(name, [first, 1, LIMIT, 0, 0, 0], &memory);
            assert_eq!(memory.time(SCRATCH + 16), Some([0, 0]), "{name}: stopped");
            memory.set_time(LIMIT + 16, [1060, 0]).unwrap();
            assert_eq!(plan_of(name, [clockless, 1, LIMIT, 0, 0, 0], &memory), Plan::Pass, "{name}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_alarm_is_a_timer() {
    let memory = Pretended::default();
    let change = change("alarm", with(0, 1), &memory);
    assert_eq!(change.number, Some(libc::SYS_setitimer));
    assert_eq!(change.arguments[..3], [Some(0), Some(SCRATCH), Some(SCRATCH + SCRATCH_OLD)]);
    assert_eq!(memory.time(SCRATCH + 16), Some([0, 33_334]));
    let clock = Clock::of_test(RATE, BASE);
    for (left, seconds) in [([0, 0], 0), ([0, 1], 1), ([2, 0], 60), ([0, 50_000], 2)] {
        memory.set_time(SCRATCH + SCRATCH_OLD + 16, left).unwrap();
        assert_eq!(finish(change.then, 0, &clock, &memory).result, Some(seconds), "{left:?}");
    }
}

#[test]
fn clocks_that_are_asked_past_the_page_tell_the_same() {
    let (memory, clock) = (Pretended::default(), Clock::of_test(RATE, BASE));
    memory.set_time(LIMIT, [1002, 0]).unwrap();
    let read = change("clock_gettime", [1, LIMIT, 0, 0, 0, 0], &memory);
    finish(read.then, 0, &clock, &memory);
    assert_eq!(memory.time(LIMIT), Some([1060, 0]));
    assert_eq!(plan_of("clock_gettime", [2, LIMIT, 0, 0, 0, 0], &memory), Plan::Pass);
    memory.set_time(LIMIT, [0, 4_000_000]).unwrap();
    let resolution = change("clock_getres", [6, LIMIT, 0, 0, 0, 0], &memory);
    finish(resolution.then, 0, &clock, &memory);
    assert_eq!(memory.time(LIMIT), Some([0, 120_000_000]));
    let day = change("gettimeofday", [LIMIT, 0, 0, 0, 0, 0], &memory);
    finish(day.then, 0, &clock, &memory);
    assert!(memory.time(LIMIT).unwrap()[0] > 1_700_000_000 * 29, "the base of this clock is long ago");
}

#[test]
fn options_of_sockets_are_times_too() {
    let (memory, clock) = (Pretended::default(), Clock::of_test(RATE, BASE));
    let [socket, receive] = [libc::SOL_SOCKET, libc::SO_RCVTIMEO].map(|value| u64::try_from(value).unwrap());
    memory.set_time(LIMIT, MINUTE).unwrap();
    let set = change("setsockopt", [5, socket, receive, LIMIT, 16, 0], &memory);
    assert_eq!((set.arguments[3], memory.time(SCRATCH)), (Some(SCRATCH), Some(TWO)));
    let asked = change("getsockopt", [5, socket, receive, SCRATCH, 0x30, 0], &memory);
    finish(asked.then, 0, &clock, &memory);
    assert_eq!(memory.time(SCRATCH), Some(MINUTE));
    let [tcp, user] = [libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT].map(|value| u64::try_from(value).unwrap());
    memory.write(LIMIT, &30_001_i32.to_ne_bytes()).unwrap();
    change("setsockopt", [5, tcp, user, LIMIT, 4, 0], &memory);
    assert_eq!(memory.int(SCRATCH), Some(1001));
    assert_eq!(plan_of("setsockopt", [5, tcp, 1, LIMIT, 4, 0], &memory), Plan::Pass);
    assert_eq!(plan_of("setsockopt", [5, socket, receive, LIMIT, 8, 0], &memory), Plan::Pass);
}

#[test]
fn what_cannot_be_seen_is_refused() {
    let refused = |name: &str| match plan_of(name, [0; 6], &Pretended::default()) {
        Plan::Refuse { error, .. } => error,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(refused("io_uring_setup"), libc::ENOSYS);
    assert_eq!(refused("clock_settime"), libc::EPERM);
    assert_eq!(refused("settimeofday"), libc::EPERM);
}

/// The times of a timer are converted by the timer's clock, whose number the tracer remembers.
#[test]
fn a_timer_is_remembered_with_its_clock() {
    let (memory, clock) = (Pretended::default(), Clock::of_test(RATE, BASE));
    memory.write(LIMIT, &3_i32.to_ne_bytes()).unwrap();
    let made = change("timer_create", [7, 0, LIMIT, 0, 0, 0], &memory);
    assert_eq!(finish(made.then, 0, &clock, &memory).timer, Some((3, 7)));
    assert_eq!(finish(made.then, -22, &clock, &memory).timer, None);
}
