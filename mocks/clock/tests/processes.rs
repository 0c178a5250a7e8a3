//! Tests that threads, processes, signals and exits are the same as without the faster clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

#[allow(dead_code, reason = "not every test uses all of it")]
mod support;

use support::{RATE, compiled, has, shell, under};

/// Longest wait for a condition, long enough for a machine with other work.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// The state letter of a process; `None` if there is none.
fn state(pid: Pid) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat", pid = pid.as_raw_nonzero())).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The id of the process that traces a process.
fn tracer(pid: Pid) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().and_then(Pid::from_raw)
}

/// Starts a sleep of an hour by a clock that makes it two real minutes.
fn sleeping() -> Child {
    let child = under(RATE, Path::new("sleep")).arg("3600").process_group(0).spawn().unwrap();
    let pid = pid(&child);
    until("it sleeps", || {
        std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).is_ok_and(|name| name == "sleep\n")
            && state(pid) == Some('S')
    });
    child
}

#[test]
fn trees_of_threads_and_processes_see_one_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("tree", &[], folder.path()) else { return };
    for kind in ["threads", "processes", "exec", "signals", "nap"] {
        let output = under(RATE, &program).arg(kind).output().unwrap();
        assert!(output.status.success(), "{kind}: {output:?}");
    }
}

#[test]
fn ends_are_as_without() {
    let folder = tempfile::tempdir().unwrap();
    for code in [0, 1, 7, 255] {
        assert_eq!(shell(&format!("exit {code}")).status().unwrap().code(), Some(code));
    }
    assert_eq!(shell("kill -TERM $$").status().unwrap().signal(), Some(15));
    assert_eq!(shell("trap 'exit 3' TERM; kill -TERM $$; sleep 60").status().unwrap().code(), Some(3));
    let Some(program) = compiled("tree", &[], folder.path()) else { return };
    let crashed = under(RATE, &program).arg("crash").current_dir(&folder).status().unwrap();
    assert_eq!(crashed.signal(), Some(11));
}

/// The process id, group, parent, files and arguments of the program are the same as without the clock.
#[test]
fn the_program_is_who_was_started() {
    // The inherited files of this process count in both: the two lists are compared.
    let script = "echo $$; cat /proc/$$/stat; cat; ls /proc/self/fd | wc -l";
    let without = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
    let mut command = shell(script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through\n").unwrap();
    let id = child.id();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], id.to_string());
    let group = lines[1].rsplit_once(") ").unwrap().1;
    assert_eq!(group.split(' ').skip(1).take(2).collect::<Vec<_>>(), [std::process::id().to_string(), id.to_string()]);
    assert_eq!(lines[2], "through");
    assert_eq!(Some(lines[3]), String::from_utf8(without.stdout).unwrap().lines().last());
}

#[test]
fn a_killed_group_is_gone_and_so_is_its_tracer() {
    let mut child = sleeping();
    let (pid, tracer) = (pid(&child), tracer(pid(&child)).unwrap());
    kill_process_group(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    until("the tracer has ended", || state(tracer).is_none_or(|state| state == 'Z'));
}

/// Programs that start at different times show the same time if their clocks have the same `since_ns`.
#[test]
fn programs_that_begin_later_have_the_same_clock() {
    let since = mock_clock::now().to_string();
    let told = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-clock"));
        let output = command.args(["--rate", "1000", "--since", &since, "--", "date", "+%s%3N"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
    };
    let real = || i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let (began, first) = (real(), told());
    let (between, second) = (real(), told());
    assert!(first - began > 1000, "{first} and {began}");
    // Each is ahead by the machine's time since the beginning, times the rate.
    assert!((second - first) >= (between - began) / 2 * 1000 / 2, "{first}, then {second}");
    assert!(second > first && second - first <= (real() - began) * 1000);
}

#[test]
fn nothing_outlives_its_tracer() {
    let mut child = sleeping();
    kill_process(tracer(pid(&child)).unwrap(), Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_stopped_program_stays_stopped_until_it_is_continued() {
    let mut child = sleeping();
    let pid = pid(&child);
    kill_process(pid, Signal::STOP).unwrap();
    // A traced process in a group stop is shown as traced.
    until("it has stopped", || matches!(state(pid), Some('T' | 't')));
    kill_process(pid, Signal::CONT).unwrap();
    until("it goes on", || state(pid) == Some('S'));
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

/// The program ends with its starter if that is requested.
#[test]
fn a_program_ends_with_its_parent() {
    let clock = env!("CARGO_BIN_EXE_longhaul-clock");
    let script = format!("{clock} --rate 30 --with-parent -- sleep 3600 & echo $!; read line");
    let mut parent =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(parent.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let pid = line.trim().parse().ok().and_then(Pid::from_raw).unwrap();
    until("it is traced", || tracer(pid).is_some() && state(pid) == Some('S'));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("it has ended", || state(pid).is_none_or(|state| state == 'Z'));
}

#[test]
fn daemons_that_stay_behind_are_ended_with_a_sentence() {
    let output = shell("sleep 3600 >/dev/null 2>&1 & echo $!").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let pid = String::from_utf8_lossy(&output.stdout).trim().parse().ok().and_then(Pid::from_raw).unwrap();
    assert!(said.contains("the program has ended and 1 of its threads went on"), "{said}");
    until("it is gone", || state(pid).is_none_or(|state| state == 'Z'));
}

#[test]
fn what_cannot_be_done_is_said() {
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for rate in [0, 1001] {
        let (code, text) = said(&mut under(rate, Path::new("true")));
        assert_eq!((code, text), (Some(64), format!("longhaul-clock: a rate of {rate}: write 1 to 1000\n")));
    }
    let (code, text) = said(&mut under(RATE, Path::new("/no/such/program")));
    assert_eq!(code, Some(127));
    assert!(text.contains("the program /no/such/program is not there"), "{text}");
    let (code, text) = said(&mut under(RATE, Path::new("/etc/passwd")));
    assert_eq!(code, Some(64), "{text}");
    assert!(text.contains("the program /etc/passwd could not be started: Permission denied"), "{text}");
    // A traced process cannot be traced once more, as under a debugger.
    let (code, text) =
        said(under(RATE, Path::new(env!("CARGO_BIN_EXE_longhaul-clock"))).args(["--rate", "2", "--", "true"]));
    assert_eq!(code, Some(69));
    assert!(text.contains("a faster clock needs ptrace, which is forbidden here"), "{text}");
}

/// An x32 call, whose times the tracer cannot read, fails with "no such call". The message to the user names the
/// program.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_x32_is_refused_by_name() {
    if !has("python3") {
        return;
    }
    let text = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.syscall(0x40000000 + 39), ctypes.get_errno())";
    let output = under(RATE, Path::new("python3")).args(["-c", text]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("-1 {}\n", libc_enosys()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("calls of x32 are refused"), "{output:?}");
}

/// The number of the error `ENOSYS`.
#[cfg(target_arch = "x86_64")]
fn libc_enosys() -> i32 {
    rustix::io::Errno::NOSYS.raw_os_error()
}

/// The bytes of a 32-bit program that ends at once.
fn narrow() -> Vec<u8> {
    let code = [0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80];
    let word = |value: u32| value.to_le_bytes();
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for value in [1, 0x0804_8054, 52, 0, 0] {
        file.extend(word(value));
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for value in [1, 0, 0x0804_8000, 0x0804_8000, 84 + 9, 84 + 9, 5, 4096] {
        file.extend(word(value));
    }
    file.extend(code);
    file
}

/// A 32-bit program is refused if it is started directly and if a shell starts it later.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_of_32_bits_is_ended_by_name() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("narrow");
    std::fs::write(&program, narrow()).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let direct = under(RATE, &program).output().unwrap();
    assert_eq!(direct.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&direct.stderr).contains("narrow is a program of 32 bits"), "{direct:?}");
    if !Command::new(&program).status().is_ok_and(|status| status.success()) {
        println!("skipped: needs a kernel that runs programs of 32 bits");
        return;
    }
    let output = shell(&format!("{}; echo $?", program.display())).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("narrow is a program of 32 bits"), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "137\n");
}

/// A set-user-id program that a shell starts later is killed, with a message.
#[test]
fn a_set_user_id_program_is_ended_by_name() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("tree", &[], folder.path()) else { return };
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let output = shell(&format!("{} nap; echo $?", program.display())).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tree is a set-user-id program"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "137\n");
}

/// If a program replaces its own file while it runs and then executes the file, the file's new contents decide whether
/// it is refused, and no process stays behind: the test waits until all writers of the output have ended.
#[test]
fn a_file_that_is_replaced_while_it_runs_is_what_it_is_then() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let (program, next) = (folder.path().join("program"), folder.path().join("next"));
    let becomes = |content: &[u8], mode: u32, then: &str| {
        std::fs::copy("/bin/sh", &program).unwrap();
        std::fs::write(&next, content).unwrap();
        std::fs::set_permissions(&next, std::fs::Permissions::from_mode(mode)).unwrap();
        let [program, next] = [&program, &next].map(|path| path.display().to_string());
        let text = format!("mv {next} {program}; exec {program} {then}");
        let output = under(RATE, Path::new(&program)).args(["-c", &text]).output().unwrap();
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let shell = std::fs::read("/bin/sh").unwrap();
    let began = Instant::now();
    let (status, said) = becomes(&shell, 0o755, "-c 'sleep 60; exit 7'");
    assert_eq!((status.code(), said.as_str()), (Some(7), ""));
    assert!(began.elapsed() < Duration::from_secs(30), "it has the clock of before: {:?}", began.elapsed());
    let (status, said) = becomes(&shell, 0o4755, "-c 'exit 7'");
    assert_eq!(status.signal(), Some(9));
    assert!(said.contains("program is a set-user-id program"), "{said}");
    // Only the shell reports the error: the file is no program, or does not exist for the kernel.
    for (content, code) in [(&b"\x7fELF cut short"[..], 126), (&b"#!/no/such/interpreter\n"[..], 127)] {
        let (status, said) = becomes(content, 0o755, "");
        assert_eq!(status.code(), Some(code), "{said}");
    }
    if cfg!(target_arch = "x86_64") {
        let (status, said) = becomes(&narrow(), 0o755, "");
        let is_refused = status.signal() == Some(9) && said.contains("program is a program of 32 bits");
        assert!(is_refused || status.code() == Some(126), "{status}: {said}");
    }
}

/// A Go program is statically linked and has its own scheduler, so a preloaded library could not change its clock.
#[test]
#[ignore = "slow"]
fn a_static_program_of_go_keeps_its_plan() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("busy");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(".").current_dir(format!("{}/busy", support::PROGRAMS));
    if !build.env("CGO_ENABLED", "0").status().is_ok_and(|status| status.success()) {
        println!("skipped: needs go");
        return;
    }
    let began = Instant::now();
    let output = under(RATE, &program).arg("20").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// Timers of the Java virtual machine, whose threads park, take the right time.
#[test]
#[ignore = "slow"]
fn a_program_of_java_keeps_its_plan() {
    let text = "import java.util.concurrent.*; public class Plan { public static void main(String[] a) throws Exception { \
        long start = System.nanoTime(), wall = System.currentTimeMillis(); var timers = Executors.newScheduledThreadPool(4); \
        var ticks = new CountDownLatch(20); timers.scheduleAtFixedRate(ticks::countDown, 1, 1, TimeUnit.SECONDS); ticks.await(); \
        Thread.sleep(10000); synchronized (timers) { timers.wait(10000); } timers.shutdownNow(); \
        double took = (System.nanoTime() - start) / 1e9, walked = (System.currentTimeMillis() - wall) / 1e3; \
        if (took < 40 || took > 60 || Math.abs(took - walked) > 1) { System.out.println(took + \" \" + walked); System.exit(1); } } }";
    if !has("java") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Plan.java"), text).unwrap();
    let output = under(RATE, Path::new("java")).arg(folder.path().join("Plan.java")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn programs_of_other_languages_keep_their_plan() {
    let python = "import threading, time\nstart = time.monotonic()\nthreading.Event().wait(9)\ntime.sleep(1)\nassert 10 <= time.monotonic() - start < 40\n";
    let node = "const start = process.hrtime.bigint(); setTimeout(() => { const took = Number(process.hrtime.bigint() - start) / 1e9; if (took < 9.9 || took > 40) process.exit(1); }, 10000)";
    for (program, flag, text) in [("python3", "-c", python), ("node", "-e", node)] {
        if has(program) {
            let began = Instant::now();
            assert!(under(RATE, Path::new(program)).args([flag, text]).status().unwrap().success(), "{program}");
            assert!(began.elapsed() < Duration::from_secs(8), "{program}: {:?}", began.elapsed());
        }
    }
}
