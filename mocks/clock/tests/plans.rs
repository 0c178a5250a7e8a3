//! Tests of random programs of sleeps, timers, selects and threads. By its own clock, a program takes the same time
//! under a faster clock as under the normal clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use support::{compiled, under};

/// Number of random programs; all together take at most 15 s.
const PROGRAMS: u32 = 25;
/// The allowed delay of each wait in real time: the time to wake a thread on a busy machine.
const WAKING: Duration = Duration::from_millis(40);
/// Number of late runs that are allowed in total; each late run is repeated. A busy machine makes a run late now and
/// then. A wrong clock makes every run late, and a clock that sometimes loses a wake-up makes more runs late than this.
const LATE: u32 = 2;

/// One thread of a random program: its waits, each with milliseconds of the program's time.
type Thread = Vec<(char, u64)>;

fn programs() -> impl Strategy<Value = Vec<Thread>> {
    let step = (prop::sample::select(vec!['s', 'f', 'p', 'e', 't', 'w']), 1_u64..1500);
    prop::collection::vec(prop::collection::vec(step, 1..5), 1..6)
}

/// The waits as the argument of the test program: `s100,p20;t5`.
fn text(threads: &[Thread]) -> String {
    let thread = |thread: &Thread| thread.iter().map(|(kind, ms)| format!("{kind}{ms}")).collect::<Vec<_>>().join(",");
    threads.iter().map(thread).collect::<Vec<_>>().join(";")
}

/// Runs the program; returns how long it took by its own clock.
fn own(command: &mut Command, text: &str) -> Duration {
    let output = command.arg(text).output().unwrap();
    assert!(output.status.success(), "{text}: {output:?}");
    Duration::from_nanos(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
}

/// For every program and rate, the time by the program's clock is at least the planned time, and longer by at most the
/// allowed delay of its waits. The real time is at least the planned time divided by the rate.
#[test]
fn plans_take_their_own_time_at_every_rate() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("plan", &[], folder.path()) else { return };
    let mut runner = TestRunner::new(Config { cases: PROGRAMS, ..Config::default() });
    let late = Cell::new(0);
    let outcome = runner.run(&(programs(), prop::sample::select(vec![1, 7, 30, 100])), |(threads, rate)| {
        let longest: u64 = threads.iter().map(|thread| thread.iter().map(|(_, ms)| ms).sum()).max().unwrap_or(0);
        let steps = threads.iter().map(Vec::len).max().unwrap_or(0);
        // At the normal rate a tenth is enough.
        let threads =
            if rate == 1 { vec![threads[0].iter().map(|(kind, ms)| (*kind, ms / 10 + 1)).collect()] } else { threads };
        let plan = if rate == 1 { threads[0].iter().map(|(_, ms)| ms).sum() } else { longest };
        let plan = Duration::from_millis(plan);
        let (text, allowed) = (text(&threads), WAKING * u32::try_from(steps + 1).unwrap());
        loop {
            let began = Instant::now();
            let own = own(&mut under(rate, &program), &text);
            let real = began.elapsed();
            prop_assert!(own >= plan, "×{rate} {text}: {own:?} of {plan:?}");
            prop_assert!(real >= plan / rate, "×{rate} {text}: really {real:?}");
            if own <= plan + allowed * rate {
                return Ok(());
            }
            late.set(late.get() + 1);
            prop_assert!(late.get() <= LATE, "×{rate} {text}: {own:?} of {plan:?}, late for the {}th time", late.get());
        }
    });
    outcome.unwrap();
}

/// A clock that is not faster is noticed: the program takes the planned time by its own clock, but thirty times the
/// expected real time.
#[test]
fn a_clock_of_usual_speed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("plan", &[], folder.path()) else { return };
    let real = |mut command: Command| {
        let began = Instant::now();
        own(&mut command, "s1000,p1000");
        began.elapsed()
    };
    assert!(real(Command::new(&program)) >= Duration::from_secs(2));
    assert!(real(under(30, Path::new(&program))) < Duration::from_secs(2));
}
