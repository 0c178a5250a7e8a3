//! Tests of clocks that jump or drift while programs run, in all threads and children, and in programs that start
//! later.

#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use support::compiled;

/// Longest wait for a condition, long enough for a machine with other work.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest allowed difference between two consecutive times in milliseconds; a thread may wait for a CPU between
/// them.
const APART_MS: i64 = 2000;

/// The test program, its control socket, and its output.
struct Played {
    child: Child,
    line: UnixStream,
    said: Receiver<String>,
}

impl Played {
    fn start(more: &[&str], folder: &std::path::Path) -> Option<Self> {
        let program = compiled("shifts", more, folder)?;
        let (line, theirs) = UnixStream::pair().unwrap();
        line.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
        command.args(["--rate", "1", "--control", "--with-parent", "--"]).arg(program);
        let mut child = command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).spawn().unwrap();
        let (send, said) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|text| send.send(text)));
        Some(Self { child, line, said })
    }

    fn tell(&mut self, what: &str) -> String {
        writeln!(self.line, "{} {what}", mock_clock::now()).unwrap();
        let mut answer = Vec::new();
        while answer.last() != Some(&b'\n') {
            let mut byte = [0];
            self.line.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        String::from_utf8(answer).unwrap().trim().to_owned()
    }

    /// The last output of each process, as soon as both processes have written a line for which `holds` is true.
    fn until(&self, holds: impl Fn([i64; 3]) -> bool) -> BTreeMap<String, [i64; 3]> {
        let mut found = BTreeMap::new();
        while found.len() < 2 {
            let text = self.said.recv_timeout(PATIENCE).unwrap();
            let words: Vec<&str> = text.split(' ').collect();
            assert_ne!(words[0], "back", "the monotonic clock went back: {text}");
            let figures = [1, 2, 3].map(|index: usize| words[index].parse().unwrap());
            if holds(figures) {
                found.insert(words[0].to_owned(), figures);
            }
        }
        found
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clocks_jump_in_all_threads_and_children() {
    let folder = tempfile::tempdir().unwrap();
    for more in [&[][..], &["-static"]] {
        let Some(mut played) = Played::start(more, folder.path()) else { return };
        let before = played.until(|_| true)["parent"];
        let near = |is: i64, expected: i64| (is - expected).abs() < APART_MS;
        let [wall, boot, monotonic] = before;
        assert_eq!(played.tell("jump wall 600000000000"), "ok");
        played.until(|[now, since, _]| near(now, wall + 600_000) && near(since, boot));
        assert_eq!(played.tell("jump wall -900000000000"), "ok");
        played.until(|[now, since, _]| near(now, wall - 300_000) && near(since, boot));
        assert_eq!(played.tell("jump suspended 300000000000"), "ok");
        played.until(|[now, since, _]| near(now, wall) && near(since, boot + 300_000));
        assert_eq!(played.tell("jump all 3600000000000"), "ok");
        let after = played.until(|[now, since, here]| {
            near(now, wall) && near(since, boot + 300_000) && here >= monotonic + 3_600_000
        });
        assert!(after.values().all(|[.., here]| *here < monotonic + 3_700_000), "{after:?}");
        let refused = played.tell("jump all -1");
        assert!(refused.contains("only the wall clock jumps back"), "{refused}");
    }
}

/// The monotonic clock never goes back during a hundred changes, more than there are sets of clock data, while three
/// threads of each process read the clock. Processes get a jump microseconds apart, so times are compared only within a
/// process.
#[test]
fn the_monotonic_clock_never_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut played) = Played::start(&[], folder.path()) else { return };
    for turn in 0..100 {
        let what = ["drift 400000", "jump all 5000000", "drift -400000", "drift 0", "jump wall -7000000"][turn % 5];
        assert_eq!(played.tell(what), "ok");
        played.until(|_| true);
    }
}

/// A program that starts later also gets the earlier changes.
#[test]
fn a_program_that_begins_later_has_the_same_clock() {
    let told = |shift: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
        command.args(["--rate", "1", "--shift", &format!("{} {shift}", mock_clock::now()), "--", "date", "+%s"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let real = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    let [ahead, back] = [told("jump wall 7200000000000"), told("jump wall -7200000000000")];
    assert!((ahead - real - 7200).abs() < 20 && (back - real + 7200).abs() < 20, "{real}: {ahead} and {back}");
}

/// A change with a future beginning has no effect yet, neither on the time that the clock shows nor on waits for an
/// instant.
#[test]
fn a_change_that_is_to_come_changes_nothing_yet() {
    let folder = tempfile::tempdir().unwrap();
    let real = || i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    for more in [&[][..], &["-static"]] {
        let Some(program) = compiled("pending", more, folder.path()) else { return };
        for ppm in [500_000, -500_000] {
            let told = format!("{} drift {ppm}", mock_clock::now() + 1_000_000_000_000);
            let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
            let output = command.args(["--rate", "1", "--shift", &told, "--"]).arg(&program).output().unwrap();
            assert!(output.status.success(), "{ppm}: {output:?}");
            let shown: i64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
            assert!((shown - real()).abs() < 20, "{ppm}: {shown} and {}", real());
        }
    }
}
