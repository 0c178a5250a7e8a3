//! A child process that ends at the latest with its owner, unless the owner releases it.
//!
//! Each child has its own keeper thread, which starts and reaps the child. The kernel sends its parent-death signal
//! when the *thread* that forked ends, and threads of an async runtime may end at any time. The child leads its own
//! process group, so that the harness also ends the child's children, and an interrupt at the terminal reaches only the
//! harness.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Error, LOG_LINES};

/// How often the keeper thread checks whether the child has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Determines when a child process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The child ends with its owner, even if the owner is killed.
    Owned,
    /// The child ends with the value [`Process`] unless it is released; if the owner is killed, the child stays. A
    /// releasable child has its own session, so that closing the owner's terminal does not affect the child.
    Releasable,
}

/// A command to the keeper thread.
#[derive(Debug)]
enum Order {
    /// End the child, and kill the child if it still runs after this time.
    End(Duration),
    /// Leave the child running.
    Release,
}

#[derive(Debug)]
pub(crate) struct Process {
    program: &'static str,
    pid: u32,
    log: PathBuf,
    /// How the child ended; `None` while it runs.
    ended: Arc<Mutex<Option<String>>>,
    /// The channel to the keeper thread. Dropping this channel ends the child at once.
    orders: Option<SyncSender<Order>>,
    keeper: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a program that writes its output to the file `log`.
    pub(crate) fn start(
        program: &'static str,
        path: &Path,
        arguments: &[OsString],
        log: &Path,
        lifetime: Lifetime,
    ) -> Result<Self, Error> {
        Self::start_within(program, path, arguments, log, lifetime, Vec::new())
    }

    /// Starts a program as [`Self::start`] does, in the cgroups whose open files `cgroup.procs` are given.
    pub(crate) fn start_within(
        program: &'static str,
        path: &Path,
        arguments: &[OsString],
        log: &Path,
        lifetime: Lifetime,
        groups: Vec<File>,
    ) -> Result<Self, Error> {
        let command = command(path, arguments, log, lifetime);
        let mut command = command.map_err(|source| Error::Spawn { program, source })?;
        if !groups.is_empty() {
            join(&mut command, groups);
        }
        let (orders, received) = sync_channel(1);
        let (started, start) = sync_channel(1);
        let ended = Arc::new(Mutex::new(None));
        let noted = ended.clone();
        let keeper = std::thread::Builder::new().name(format!("keeper {program}"));
        let keeper = keeper.spawn(move || keep(command, &started, &received, &noted));
        let keeper = keeper.map_err(|source| Error::Spawn { program, source })?;
        let pid = match start.recv() {
            Ok(Ok(pid)) => pid,
            Ok(Err(source)) => return Err(Error::Spawn { program, source }),
            Err(gone) => return Err(Error::Spawn { program, source: std::io::Error::other(gone) }),
        };
        Ok(Self { program, pid, log: log.to_owned(), ended, orders: Some(orders), keeper: Some(keeper) })
    }

    pub(crate) const fn program(&self) -> &'static str {
        self.program
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// How the child ended; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<String> {
        self.ended.lock().clone()
    }

    /// The last lines of the child's log, for an error.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log)
    }

    /// Asks the child to end, kills it if it has not ended after `patience`, and waits for its end.
    pub(crate) fn stop(&mut self, patience: Duration) {
        if let Some(orders) = self.orders.take() {
            // A keeper that has ended has reaped its child already.
            let _ = orders.send(Order::End(patience));
        }
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }

    /// Leaves the child running without an owner.
    pub(crate) fn release(mut self) {
        if let Some(orders) = self.orders.take() {
            // A keeper that has ended has reaped its child already.
            let _ = orders.send(Order::Release);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Closing the channel is the order to kill at once.
        self.orders = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// The last lines of a log, for an error.
pub(crate) fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

fn command(path: &Path, arguments: &[OsString], log: &Path, lifetime: Lifetime) -> std::io::Result<Command> {
    let output = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    // A control plane must depend on its arguments alone; etcd reads every flag from ETCD_* as well.
    command
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME" || name == "TMPDIR"));
    match lifetime {
        Lifetime::Owned => {
            command.process_group(0);
            die_with_parent(&mut command);
        }
        Lifetime::Releasable => lead_a_session(&mut command),
    }
    Ok(command)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the only way to run prctl(2) between fork and exec")]
fn die_with_parent(command: &mut Command) {
    let ask = || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: after fork only async-signal-safe calls are allowed; this is one system call and allocates nothing.
    unsafe { command.pre_exec(ask) };
}

#[expect(unsafe_code, reason = "the only way to join a cgroup between fork and exec")]
fn join(command: &mut Command, groups: Vec<File>) {
    let ask = move || {
        // Zero means the writing process (cgroups(7)).
        groups.iter().try_for_each(|group| rustix::io::write(group, b"0").map(drop))?;
        Ok(())
    };
    // SAFETY: after fork only async-signal-safe calls are allowed; these are system calls and allocate nothing.
    unsafe { command.pre_exec(ask) };
}

#[expect(unsafe_code, reason = "the only way to run setsid(2) between fork and exec")]
fn lead_a_session(command: &mut Command) {
    let ask = || {
        // From then on it also leads a process group of its own.
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: after fork only async-signal-safe calls are allowed; this is one system call and allocates nothing.
    unsafe { command.pre_exec(ask) };
}

/// Does nothing: systems other than Linux lack such a signal, so a killed harness leaves its children running.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

/// The keeper thread: starts the child, watches it, ends it, and reaps it.
fn keep(
    mut command: Command,
    started: &SyncSender<std::io::Result<u32>>,
    orders: &Receiver<Order>,
    ended: &Mutex<Option<String>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(child.id()));
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            *ended.lock() = Some(status.to_string());
            return;
        }
        match orders.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Release) => return,
            Ok(Order::End(patience)) => {
                signal(&child, Signal::TERM);
                let deadline = Instant::now() + patience;
                while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
                    // The owner has closed the channel and waits for us, so this is only a pause.
                    std::thread::park_timeout(LOOK_EVERY);
                }
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if matches!(child.try_wait(), Ok(None)) {
        signal(&child, Signal::KILL);
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    *ended.lock() = Some(status);
}

/// Sends a signal to the whole process group of a child. Because the child has not been reaped, no other process can
/// have its process id.
fn signal(child: &Child, signal: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str, log: &Path, lifetime: Lifetime) -> Process {
        Process::start("sh", Path::new("/bin/sh"), &["-c".into(), script.into()], log, lifetime).unwrap()
    }

    fn shell(script: &str, log: &Path) -> Process {
        start(script, log, Lifetime::Owned)
    }

    fn alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    fn until(what: &str, mut met: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !met() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_dropped_process_is_gone_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // This shell ignores gentle signals, and has a child of its own.
        let process = shell("trap '' TERM; sleep 600 & echo $!; wait", &log);
        let pid = process.pid();
        until("the child says its number", || std::fs::read_to_string(&log).unwrap_or_default().ends_with('\n'));
        let grandchild: u32 = std::fs::read_to_string(&log).unwrap().trim().parse().unwrap();
        assert!(alive(pid) && alive(grandchild));
        drop(process);
        assert!(!alive(pid), "reaped before drop returns");
        until("the grandchild is gone", || {
            let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        });
    }

    #[test]
    fn a_released_process_goes_on_and_one_that_is_not_released_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let dropped = start("sleep 600", &log, Lifetime::Releasable);
        let pid = dropped.pid();
        drop(dropped);
        assert!(!alive(pid));
        let released = start("echo $(cut -d' ' -f5,6 /proc/$$/stat) $$; exec sleep 600", &log, Lifetime::Releasable);
        let pid = released.pid();
        released.release();
        until("it says its group and session", || std::fs::read_to_string(&log).unwrap_or_default().ends_with('\n'));
        assert!(alive(pid));
        if cfg!(target_os = "linux") {
            assert_eq!(std::fs::read_to_string(&log).unwrap().trim(), format!("{pid} {pid} {pid}"), "leads both");
        }
        let group = Pid::from_raw(pid.try_into().unwrap()).unwrap();
        kill_process_group(group, Signal::KILL).unwrap();
        rustix::process::waitpid(Some(group), rustix::process::WaitOptions::empty()).unwrap();
    }

    #[test]
    fn stopping_is_gentle_first_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("gentle");
        let mut gentle = shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", &log);
        until("it is up", || std::fs::read_to_string(&log).unwrap_or_default().contains("up"));
        gentle.stop(Duration::from_secs(9));
        // The shell may add a line about its own child, which is in the group and got the signal too.
        assert!(std::fs::read_to_string(&log).unwrap().contains("bye\n"));
        assert_eq!(gentle.ended().unwrap(), "exit status: 0");

        let log = directory.path().join("deaf");
        let mut deaf = shell("trap '' TERM; echo up; while :; do sleep 0.05; done", &log);
        until("it is up", || std::fs::read_to_string(&log).unwrap_or_default().contains("up"));
        let began = Instant::now();
        deaf.stop(Duration::from_millis(200));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(deaf.ended().unwrap().contains("signal: 9"), "{:?}", deaf.ended());
    }

    #[test]
    fn an_early_end_is_noticed_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let process = shell("for n in $(seq 30); do echo line $n; done; exit 3", &directory.path().join("log"));
        until("it ended", || process.ended().is_some());
        assert_eq!(process.ended().unwrap(), "exit status: 3");
        assert_eq!(process.tail().lines().count(), LOG_LINES);
        assert!(process.tail().ends_with("line 30"));
    }

    #[test]
    fn what_cannot_be_started_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = Process::start(
            "nothing",
            Path::new("/nowhere/nothing"),
            &[],
            &directory.path().join("log"),
            Lifetime::Owned,
        );
        assert_eq!(error.unwrap_err().to_string(), "failed to start nothing");
    }
}
