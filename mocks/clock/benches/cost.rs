//! A benchmark of a faster clock: a read of the time, a wait with a limit, and the CPU time of a busy Go program.
//!
//! `cargo bench -p mock-clock` prints a table; docs/measured/clock.md has measured figures. The benchmark checks no
//! limits, because other work of the machine changes the figures.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on must fail where it stands")]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const READS: u32 = 1_000_000;
const WAITS: u32 = 20_000;
/// Number of repetitions of each measurement. The fastest counts, because other processes slow down the others.
const TRIES: usize = 5;
const CLOCK: &str = env!("CARGO_BIN_EXE_longhaul-clock");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/busy");

fn main() {
    // At rate 1 its own clock is the machine's, so that figures of both can be compared.
    if std::env::args().nth(1).as_deref() == Some("measure") {
        // Both with the same slack: by default a timer may come a twentieth of a millisecond late.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).unwrap();
        println!(
            "{} {}",
            per(READS, || _ = black_box(Instant::now())),
            per(WAITS, || std::thread::park_timeout(Duration::from_nanos(1)))
        );
        return;
    }
    let itself = std::env::current_exe().unwrap();
    let measured = |mut command: Command| -> Vec<u128> {
        let output = command.arg("measure").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    let best = |make: &dyn Fn() -> Command| {
        let tries: Vec<_> = (0..TRIES).map(|_| measured(make())).collect();
        [0, 1].map(|which| tries.iter().map(|figures| figures[which]).min().unwrap())
    };
    let without = best(&|| Command::new(&itself));
    let with = best(&|| under(&itself, None));
    for (name, which) in [("a time read", 0), ("a wait with a limit", 1)] {
        println!("{name}: {} ns without, {} ns under the clock", without[which], with[which]);
    }
    busy();
}

fn under(program: &Path, summary: Option<&Path>) -> Command {
    let mut command = Command::new(CLOCK);
    command.args(["--rate", "1"]);
    if let Some(summary) = summary {
        command.arg("--summary").arg(summary);
    }
    command.arg("--").arg(program);
    command
}

/// Average time of one of `count` calls, in nanoseconds.
fn per(count: u32, mut what: impl FnMut()) -> u128 {
    let began = Instant::now();
    (0..count).for_each(|_| what());
    began.elapsed().as_nanos() / u128::from(count)
}

/// Prints the CPU time of a busy Go program and of its tracer.
fn busy() {
    let folder = tempfile::tempdir().unwrap();
    let (program, summary) = (folder.path().join("busy"), folder.path().join("summary"));
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(SOURCE).env("CGO_ENABLED", "0");
    if !build.status().is_ok_and(|status| status.success()) {
        println!("skipped: needs go");
        return;
    }
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        without = without.min(processor_time(&mut Command::new(&program)));
        let program_alone = processor_time(&mut under(&program, Some(&summary)));
        // The tracer is no child of this process and reports its own time, after all processes have ended.
        let end = Instant::now() + Duration::from_secs(5);
        let said = loop {
            match std::fs::read_to_string(&summary) {
                Ok(text) if text.ends_with('\n') => break text,
                _ if Instant::now() < end => std::thread::park_timeout(Duration::from_millis(1)),
                other => panic!("{other:?}"),
            }
        };
        let tracer = said.split("\"cpuMs\":").nth(1).and_then(|text| text.split(['}', ',']).next()).unwrap();
        std::fs::remove_file(&summary).unwrap();
        with = with.min(program_alone + Duration::from_millis(tracer.parse().unwrap()));
    }
    let share = with.as_secs_f64() / without.as_secs_f64();
    println!(
        "processor time of a busy program of Go: {without:.2?} without, {with:.2?} under the clock, {share:.2} times"
    );
}

/// The CPU time of a program from start to end, read from this process's `RUSAGE_CHILDREN`.
fn processor_time(command: &mut Command) -> Duration {
    let of_children = || {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<u64> = text
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .skip(13)
            .take(2)
            .map(|field| field.parse().unwrap())
            .collect();
        // Hundredths of a second, the unit of `/proc` on every machine.
        Duration::from_millis((fields[0] + fields[1]) * 10)
    };
    let before = of_children();
    assert!(command.output().unwrap().status.success());
    of_children().saturating_sub(before)
}
