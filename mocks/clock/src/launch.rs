//! The start of a program with its tracer. This process becomes the program. The tracer is a copy of this process, but
//! not its child.
//!
//! The program therefore keeps the process id, files, group and parent of this process, and the starter sees the
//! program's own exit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PTracer, Pid, PidfdFlags, getpid, getppid, pidfd_open, set_ptracer, setsid};

use crate::clock::Clock;
use crate::detour::Detour;
use crate::filter::filter;
use crate::live::Live;
use crate::page::{self, Patch};
use crate::summary::Summary;
use crate::sys::{self, Side};
use crate::tracer::{Machine, OPTIONS, Tracer};
use crate::{RATE_MAX, Settings, program};

/// Why a program could not be started under another clock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a rate of {0}: write 1 to {RATE_MAX}")]
    Rate(u32),
    /// The program cannot run under another clock.
    #[error(transparent)]
    Program(#[from] program::Error),
    #[error("the program {program} could not be started: {source}")]
    Start {
        /// The program as the user named it.
        program: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The machine forbids processes to trace others.
    #[error(
        "a faster clock needs ptrace, which is forbidden here ({0}): in a container give `--cap-add SYS_PTRACE`, under a debugger or \
         tracer start without it, and see that /proc/sys/kernel/yama/ptrace_scope is at most 1; or leave the faster clock out"
    )]
    Ptrace(std::io::Error),
    #[error("a faster clock needs a filter of system calls, which is forbidden here: {0}")]
    Filter(seccompiler::Error),
    /// The kernel's vDSO has an unknown layout.
    #[error(transparent)]
    Page(#[from] page::Error),
    /// Another required operation failed: its name and the error.
    #[error("a faster clock needs {0}: {1}")]
    Machine(&'static str, std::io::Error),
    /// This process has several threads, so it cannot be copied.
    #[error("a faster clock is started by a process of one thread, and this one has {0}")]
    Threads(usize),
}

/// Becomes the program under a faster clock; see [`crate::run`].
pub fn run(settings: &Settings, program: &OsStr, arguments: &[OsString]) -> Error {
    match prepare(settings, program) {
        Ok(()) => {}
        Err(error) => return error,
    }
    let source = std::process::Command::new(program).args(arguments).exec();
    Error::Start { program: program.to_string_lossy().into_owned(), source }
}

fn prepare(settings: &Settings, program: &OsStr) -> Result<(), Error> {
    if !(1..=RATE_MAX).contains(&settings.rate) {
        return Err(Error::Rate(settings.rate));
    }
    program::check(program)?;
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        return Err(Error::Threads(threads));
    }
    let clock = Clock::starting(settings.rate, settings.since_ns.unwrap_or_else(crate::now));
    let clock = settings.shifts.iter().fold(clock, |clock, told| clock.shifted(*told));
    let nonce = nonce();
    let patch = Patch::of_this_machine(&clock, nonce)?;
    let has_fine_epoll = has_fine_epoll();
    let detour = Detour::of(has_fine_epoll);
    let filter = filter(&clock, nonce, detour.as_ref().map(|detour| detour.call)).map_err(Error::Filter)?;
    let machine = Machine { patch, detour, has_fine_epoll };
    let live = Arc::new(Live::new(clock));
    let tracer = Tracer::new(Arc::clone(&live), machine, getpid().as_raw_nonzero().get());
    start_tracer(tracer, live, settings)?;
    if settings.control {
        let nothing = File::open("/dev/null").map_err(|error| Error::Machine("/dev/null", error))?;
        rustix::stdio::dup2_stdin(&nothing).map_err(|error| Error::Machine("/dev/null", error.into()))?;
    }
    // Waits end up to a twentieth of a millisecond late, so that several end at once. This slack is in the program's
    // time, like all other times. Without any slack, a scheduler that naps between two looks would look more often than
    // normal.
    if let Ok(slack_ns) = rustix::thread::current_timer_slack() {
        let own = (slack_ns / u64::from(settings.rate)).max(1);
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(own));
    }
    seccompiler::apply_filter(&filter).map_err(Error::Filter)
}

/// A random number that is so large that no register contains it by chance.
fn nonce() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::hash::RandomState::new().build_hasher().finish() | 1
}

/// Whether `epoll_pwait2`, which waits for nanoseconds, works: Linux 5.11 introduced it, but the filter of a container
/// may be older.
fn has_fine_epoll() -> bool {
    // With an invalid file the call fails with EBADF if it exists.
    sys::epoll_pwait2_of_nothing() == Some(libc::EBADF)
}

fn start_tracer(mut tracer: Tracer, live: Arc<Live>, settings: &Settings) -> Result<(), Error> {
    let machine = |what| move |error: rustix::io::Errno| Error::Machine(what, error.into());
    let (answer, say) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(machine("a pipe"))?;
    let pid = getpid();
    let parent = match (settings.with_parent, getppid()) {
        (true, Some(parent)) => Some(pidfd_open(parent, PidfdFlags::empty()).map_err(machine("pidfd_open"))?),
        _ => None,
    };
    // Needed where only parents may trace their children; other kernels refuse the call and do not need it.
    let _ = set_ptracer(PTracer::Any);
    match sys::fork().map_err(|error| Error::Machine("fork", error))? {
        Side::Parent(between) => {
            drop(say);
            let _ = rustix::process::waitpid(Pid::from_raw(between), rustix::process::WaitOptions::empty());
        }
        Side::Child => {
            // The process between ends at once, so that the program has no child that it does not know.
            if !matches!(sys::fork(), Ok(Side::Child)) {
                sys::exit_at_once(0);
            }
            drop(answer);
            let live = settings.control.then_some(live);
            let summary = trace(&mut tracer, live, pid, say, parent);
            if let Some(path) = &settings.summary
                && let Some(Err(error)) = summary.map(|summary| summary.write(path))
            {
                eprintln!("longhaul-clock: {} could not be written: {error}", path.display());
            }
            sys::exit_at_once(0)
        }
    }
    let mut said = Vec::new();
    File::from(answer).read_to_end(&mut said).map_err(|error| Error::Machine("a pipe", error))?;
    let _ = set_ptracer(PTracer::None);
    match said.as_slice().try_into().map(i32::from_ne_bytes) {
        Ok(0) => Ok(()),
        Ok(error) => Err(Error::Ptrace(std::io::Error::from_raw_os_error(error))),
        Err(_) => Err(Error::Ptrace(std::io::Error::other("the tracer ended"))),
    }
}

/// Runs the tracer until all traced programs have ended.
fn trace(
    tracer: &mut Tracer,
    live: Option<Arc<Live>>,
    pid: Pid,
    say: OwnedFd,
    parent: Option<OwnedFd>,
) -> Option<Summary> {
    // Signals of a terminal are for the program.
    let _ = setsid();
    let _ = rustix::process::chdir("/");
    let parent = keep_two(&say, parent, live.is_some());
    let seized = sys::seize(pid.as_raw_nonzero().get(), OPTIONS);
    let code = seized.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
    let mut say = File::from(say);
    let _ = say.write_all(&code.to_ne_bytes());
    drop(say);
    seized.ok()?;
    if let Some(live) = live {
        let line = rustix::stdio::stdin().try_clone_to_owned().ok()?;
        std::thread::spawn(move || live.serve(&File::from(line)));
    }
    if let Some(parent) = parent {
        // When the parent ends, the tracer ends, and so do all programs.
        std::thread::spawn(move || {
            let mut files = [PollFd::new(&parent, PollFlags::IN)];
            let _ = poll(&mut files, None);
            sys::exit_at_once(0);
        });
    }
    Some(tracer.trace())
}

/// Closes the tracer's copies of the program's open files, so that readers see when the program closes them. Standard
/// error stays open for the tracer's messages.
fn keep_two(say: &OwnedFd, parent: Option<OwnedFd>, listens: bool) -> Option<OwnedFd> {
    let last = parent.as_ref().map_or_else(|| say.as_fd(), |parent| parent.as_fd());
    sys::close_from(last);
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        if !listens {
            let _ = rustix::stdio::dup2_stdin(&nothing);
        }
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
    parent
}
