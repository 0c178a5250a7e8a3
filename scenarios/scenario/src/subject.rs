//! Starts and watches the subject's process tree, and stops it in all cases.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

mod attached;
mod clock_line;
mod clock_rate;
mod log;
mod mounts;
mod pods;
mod processes;
mod tail;

pub use attached::Attached;
pub use clock_line::ClockLine;
pub use clock_rate::{COMMAND as CLOCK_COMMAND, OwnClock, make_faster};
pub use log::{Line, Log};
pub use mounts::Mounts;
pub use pods::{Crash, Pods};
pub use processes::{Exit, Processes};
use tail::Tail;

use crate::keeper;
use kind::MissingProgram;

/// Time limit for reading the remaining output of a subject that has exited.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit from SIGKILL to the end of the process. The kernel usually needs milliseconds to kill a process; a
/// process that takes longer than this limit cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The ids of the running process groups, used only by [`kill_all`]. In all other cases, the code that started a
/// process group ends the group.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills every subject at once, before this process exits without unwinding.
pub fn kill_all() {
    for group in GROUPS.lock().drain(..) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// A program of the subject to start, with its arguments and environment.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The name of the process, if the subject has several processes.
    pub name: Option<String>,
    /// The program: a path, or a name that is searched in `PATH`.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Environment variables in addition to those of the run.
    pub environment: Vec<(String, String)>,
    /// The working directory, if it differs from the run's.
    pub directory: Option<PathBuf>,
    /// A line of the program's output by which the harness knows that the subject is ready.
    pub awaited: Option<Arc<Line>>,
    /// The program's own clock, if this clock runs faster or can be changed.
    pub clock: Option<OwnClock>,
    /// Folders that only this program sees.
    pub mounts: Option<Mounts>,
}

/// The reason why a subject did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("nothing was started")]
    Missing(#[from] MissingProgram),
    #[error("the subject's program `{program}` could not be started: {source}; {remedy}")]
    Start {
        /// The program's name in the scenario.
        program: String,
        source: std::io::Error,
        remedy: &'static str,
    },
    #[error(
        "`mounts` of the subject needs a mount namespace, and this machine makes none: {0}; run as root, allow unprivileged user namespaces, \
         or leave `mounts` out"
    )]
    Mounts(String),
    #[error("the subject's log {path} could not be written: {source}")]
    Log { path: PathBuf, source: std::io::Error },
}

/// A process of the subject, with its process group. Dropping this value kills the remaining processes of the process
/// group.
pub struct Running {
    child: Child,
    pid: u32,
    tail: Arc<Mutex<Tail>>,
    readers: tokio::task::JoinSet<()>,
    exited: Option<ExitStatus>,
    /// Whether the harness has sent SIGTERM to the process.
    asked: bool,
    /// Whether the process group is known to be empty. The number of an empty process group may belong to another group
    /// later.
    buried: bool,
}

impl Launch {
    /// Program and arguments, as the run's manifest stores them.
    pub fn command_line(&self) -> Vec<String> {
        std::iter::once(self.program.display().to_string()).chain(self.arguments.iter().cloned()).collect()
    }

    /// Starts the process in its own process group. The output of the process goes to `log`.
    pub fn start(&self, log: Log) -> Result<Running, Error> {
        let mut command = self.command().map_err(|source| self.not_started(source))?;
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // It has its own group, because Ctrl-C on the terminal must reach the harness first, and the whole tree must be
        // killable.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| self.not_started(source))?;
        let pid = child.id().unwrap_or(0);
        GROUPS.lock().extend(group(pid));
        // If the keeper is gone, a harness that ends in order still ends its subject.
        let _ = keeper::tell(&keeper::Order::Group(pid.cast_signed()));
        let tail: Arc<Mutex<Tail>> = Arc::default();
        let log = log.of(self.name.as_deref(), self.awaited.clone());
        let mut readers = tokio::task::JoinSet::new();
        if let Some(stdout) = child.stdout.take() {
            readers.spawn(log::read(stdout, log.clone(), Arc::clone(&tail)));
        }
        if let Some(stderr) = child.stderr.take() {
            readers.spawn(log::read(stderr, log, Arc::clone(&tail)));
        }
        Ok(Running { child, pid, tail, readers, exited: None, asked: false, buried: false })
    }

    /// The command with its standard input, wrapped so that the program has its own clock if the launch names a clock.
    fn command(&self) -> std::io::Result<Command> {
        let mut before: Vec<std::ffi::OsString> = Vec::new();
        if let Some(mounts) = &self.mounts {
            let (program, words) = mounts.words();
            before.push(program.into());
            before.extend(words);
        }
        let mut input = Stdio::null();
        if let Some(clock) = &self.clock {
            let (longhaul, words) = clock.words()?;
            let (more, line) = match &clock.line {
                Some(line) => line.connect().map(|(more, line)| (more, Stdio::from(line)))?,
                None => (Vec::new(), Stdio::null()),
            };
            let (hidden, rest) = words.split_at(1);
            before.push(longhaul.into());
            before.extend(hidden.iter().cloned().chain(more).chain(rest.iter().cloned()));
            input = line;
        }
        let program = self.program.clone().into_os_string();
        let mut all = before.into_iter().chain([program]);
        let mut command = Command::new(all.next().unwrap_or_default());
        command.args(all).stdin(input);
        if self.mounts.is_some() {
            let (name, script) = Mounts::variable();
            command.env(name, script);
        }
        Ok(command)
    }

    /// Checks that the program file exists, before any process is started.
    pub fn check(&self) -> Result<(), Error> {
        if self.mounts.is_some() {
            Mounts::check().map_err(Error::Mounts)?;
        }
        if self.found().is_some() {
            return Ok(());
        }
        let program = self.program.display();
        let remedy = "build or install it, or check its path and that `cwd` exists";
        Err(MissingProgram::new(format!("the program `{program}` of `subject` is not there: {remedy}")).into())
    }

    /// The path of the program file, if it exists.
    fn found(&self) -> Option<PathBuf> {
        let folder = self.directory.as_deref().unwrap_or(Path::new(""));
        let is_path = self.program.components().count() > 1 || self.program.is_absolute();
        let told = self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.into());
        let path: std::ffi::OsString = told.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        if is_path {
            return Some(folder.join(&self.program)).filter(|path| path.exists());
        }
        std::env::split_paths(&path).map(|within| within.join(&self.program)).find(|path| path.is_file())
    }

    fn not_started(&self, source: std::io::Error) -> Error {
        let remedy = match source.kind() {
            std::io::ErrorKind::NotFound => "check its path, and that `cwd` exists",
            std::io::ErrorKind::PermissionDenied => "make it executable",
            _ => "check `command` in the scenario",
        };
        Error::Start { program: self.program.display().to_string(), source, remedy }
    }
}

impl Running {
    /// The process ID of the process that was started, the root of its process tree.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit status if the process has exited. This call does not wait for the exit.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            self.exited = self.child.try_wait().ok().flatten();
        }
        self.exited
    }

    /// The last lines of the process's output. If the process has exited, the rest of its output is read first, because
    /// the last lines give the reason of the exit.
    pub async fn last_words(&mut self) -> String {
        if self.exited().is_some() {
            let drained = async { while self.readers.join_next().await.is_some() {} };
            // A surviving child keeps the pipes open.
            let _ = tokio::time::timeout(LAST_WORDS_TIMEOUT, drained).await;
        }
        self.tail.lock().words()
    }

    /// Ends the remaining processes of the group after its first process has exited, as a container ends with its first
    /// process.
    pub fn bury(&mut self) {
        self.signal(Signal::KILL);
        self.forget();
        self.buried = true;
    }

    /// Sends SIGTERM to the group, but only once: at a second SIGTERM many programs exit at once without cleanup.
    pub fn ask(&mut self) {
        if !std::mem::replace(&mut self.asked, true) && self.exited().is_none() {
            self.signal(Signal::TERM);
        }
    }

    /// Sends SIGTERM to the group, and SIGKILL if the process has not exited in time.
    pub async fn stop(&mut self, timeout: Duration) -> Stopped {
        let stopped = self.end(timeout).await;
        // The rest of the group is killed too; then the pipes close and the readers end by themselves.
        self.signal(Signal::KILL);
        let drained = async { while self.readers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(KILL_TIMEOUT, drained).await;
        stopped
    }

    async fn end(&mut self, timeout: Duration) -> Stopped {
        if let Some(status) = self.exited() {
            return Stopped::Before(status);
        }
        self.ask();
        if let Ok(Ok(status)) = tokio::time::timeout(timeout, self.child.wait()).await {
            self.exited = Some(status);
            return Stopped::Orderly(status);
        }
        self.signal(Signal::KILL);
        if let Ok(Ok(status)) = tokio::time::timeout(KILL_TIMEOUT, self.child.wait()).await {
            self.exited = Some(status);
        }
        Stopped::Killed
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = group(self.pid).filter(|_| !self.buried) {
            // An empty group is the goal, so an error needs no handling.
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.forget();
    }
}

impl Running {
    /// Removes the process group from the list that [`kill_all`] uses.
    fn forget(&self) {
        if let Some(mine) = group(self.pid).filter(|_| !self.buried) {
            GROUPS.lock().retain(|group| *group != mine);
            let _ = keeper::tell(&keeper::Order::Ended(self.pid.cast_signed()));
        }
    }
}

fn group(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// How a process of the subject ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The process had exited before the harness sent SIGTERM.
    Before(ExitStatus),
    /// The process exited after SIGTERM.
    Orderly(ExitStatus),
    /// The process was killed, because it did not exit in time after SIGTERM.
    Killed,
}

/// The path of the program `name` in the folder of the running program. `longhaul` and the service are built and
/// shipped in the same folder.
pub fn sibling(name: &str) -> std::io::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let directory = here.parent().unwrap_or(Path::new("."));
    // Test programs lie one folder deeper, in `deps/`.
    let candidates = [directory.join(name), directory.join("..").join(name)];
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        std::io::Error::new(std::io::ErrorKind::NotFound, format!("no `{name}` beside {}", here.display()))
    })
}
