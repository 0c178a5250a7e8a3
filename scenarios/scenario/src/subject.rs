//! The system under test as a process tree: started, watched, and stopped in all cases.
//!
//! This module owns the child process, its output and its end. It knows nothing of the ledger or of load.

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

/// Time for reading the pipes of an exited subject for its last output.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between SIGKILL and the end of the process. The kernel needs milliseconds; more means that it cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The running process groups. Only for [`kill_all`]: the starter of a group ends it.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills every subject at once: for a process that is about to exit without unwinding.
pub fn kill_all() {
    for group in GROUPS.lock().drain(..) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// A program to start, with its environment.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Its name, if the subject has several processes.
    pub name: Option<String>,
    /// The program: a path, or a name that is searched as a shell would.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Variables beside those of the run.
    pub environment: Vec<(String, String)>,
    /// The working directory, if it is not the run's.
    pub directory: Option<PathBuf>,
    /// A line of its output that is waited for.
    pub awaited: Option<Arc<Line>>,
    /// Its own clock, if that runs faster.
    pub clock: Option<OwnClock>,
    /// Folders that it alone finds.
    pub mounts: Option<Mounts>,
}

/// The reason why a subject did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the program `{program}` of `subject` is not there: build or install it, or check its path and that `cwd` exists"
    )]
    Missing {
        /// The name in the scenario.
        program: String,
    },
    /// The program exists and does not start.
    #[error("the subject's program `{program}` could not be started: {source}; {remedy}")]
    Start {
        /// The name in the scenario.
        program: String,
        source: std::io::Error,
        remedy: &'static str,
    },
    /// This machine gives a program no mounts of its own.
    #[error(
        "`mounts` of the subject needs a mount namespace, and this machine makes none: {0}; run as root, allow unprivileged user namespaces, \
         or leave `mounts` out"
    )]
    Mounts(String),
    /// Its output cannot be written.
    #[error("the subject's log {path} could not be written: {source}")]
    Log { path: PathBuf, source: std::io::Error },
}

impl Error {
    /// Whether the program is not there. Nothing was started then.
    pub fn misses_program(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// A started subject. Dropping it kills the rest of its process group.
pub struct Running {
    child: Child,
    pid: u32,
    tail: Arc<Mutex<Tail>>,
    readers: tokio::task::JoinSet<()>,
    exited: Option<ExitStatus>,
    /// Whether it was asked to exit.
    asked: bool,
    /// Whether its group is empty; the number may belong to another group by now.
    buried: bool,
}

impl Launch {
    /// Program and arguments, in the form of the manifest.
    pub fn command_line(&self) -> Vec<String> {
        std::iter::once(self.program.display().to_string()).chain(self.arguments.iter().cloned()).collect()
    }

    /// Starts the process in its own process group, with its output going to `log`.
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

    /// The command with its input, under a clock of its own if it has one.
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

    /// Checks that the program exists, before anything else is started.
    pub fn check(&self) -> Result<(), Error> {
        if self.mounts.is_some() {
            Mounts::check().map_err(Error::Mounts)?;
        }
        match self.found() {
            Some(_) => Ok(()),
            None => Err(Error::Missing { program: self.program.display().to_string() }),
        }
    }

    /// The file that is started.
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
    /// The process ID of the tree's root.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its exit status if it has exited, without waiting.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            self.exited = self.child.try_wait().ok().flatten();
        }
        self.exited
    }

    /// The last lines of its output. After its exit, the rest in its pipes is read first, because the cause of its end
    /// comes last.
    pub async fn last_words(&mut self) -> String {
        if self.exited().is_some() {
            let drained = async { while self.readers.join_next().await.is_some() {} };
            // A surviving child keeps the pipes open.
            let _ = tokio::time::timeout(LAST_WORDS_TIMEOUT, drained).await;
        }
        self.tail.lock().words()
    }

    /// After its exit: ends the rest of its group, as a container ends with its first process.
    pub fn bury(&mut self) {
        self.signal(Signal::KILL);
        self.forget();
        self.buried = true;
    }

    /// Sends SIGTERM to the group, once: many programs treat a second one as impatience.
    pub fn ask(&mut self) {
        if !std::mem::replace(&mut self.asked, true) && self.exited().is_none() {
            self.signal(Signal::TERM);
        }
    }

    /// Sends SIGTERM to the group, then SIGKILL if it has not exited in time.
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
    /// Removes its group from the list of those to end.
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

/// How a subject ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The subject had exited before it was asked to.
    Before(ExitStatus),
    /// The subject exited after SIGTERM.
    Orderly(ExitStatus),
    /// The subject had to be killed.
    Killed,
}

/// The program `name` beside the running one: `longhaul` and the service are built and shipped together.
pub fn sibling(name: &str) -> std::io::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let directory = here.parent().unwrap_or(Path::new("."));
    // Test programs lie one folder deeper, in `deps/`.
    let candidates = [directory.join(name), directory.join("..").join(name)];
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        std::io::Error::new(std::io::ErrorKind::NotFound, format!("no `{name}` beside {}", here.display()))
    })
}
