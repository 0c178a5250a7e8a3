//! The tracer: one loop over the kernel's reports about threads.
//!
//! Owns the state of each thread during a system call. [`crate::plan`] decides how a system call is changed, and
//! [`crate::finish`] acts after the call.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::calls::{self, Kind};
use crate::change::{Plan, SCRATCH_BYTES, Situation, Then};
use crate::detour::{self, Detour};
use crate::finish::finish;
use crate::forms::{Form, MILLISECOND};
use crate::live::Live;
use crate::page::Patch;
use crate::places::{MemorySlot, Places};
use crate::plan::plan;
use crate::program;
use crate::registers::Registers;
use crate::stack;
use crate::summary::Summary;
use crate::sys::{self, Go, Report, Tid};

mod detours;
mod thread;

use thread::{Again, Pending, Process, Thread, ThreadMemory};

/// The options of `ptrace`: all descendants are traced, and all are killed if the tracer ends.
pub const OPTIONS: libc::c_int = libc::PTRACE_O_EXITKILL
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACESECCOMP;
/// The signal number with which the kernel reports a stop at a system call.
const AT_CALL: i32 = libc::SIGTRAP | 0x80;
/// How long processes may outlive the started program before they are killed; long enough for the children of a shell.
const GRACE: Duration = Duration::from_secs(1);
/// The message for a rate that is too high, which the tracer prints once.
const TOO_FAST: &str = "most waits have become shorter than waking a thread takes here: the program is not as fast as its clock, and a \
                        lower rate would tell as much in the same time";
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The code and data that every program on this machine gets.
#[derive(Debug)]
pub struct Machine {
    pub patch: Patch,
    /// The code for waits without a stop, if the CPU has such code.
    pub detour: Option<Detour>,
    pub has_fine_epoll: bool,
}

/// All threads of a program and of its descendants.
pub struct Tracer {
    live: Arc<Live>,
    machine: Machine,
    /// The id of the started program.
    root: Tid,
    threads: HashMap<Tid, Thread>,
    /// New threads that stopped before the kernel reported their creation, and the signal of that stop.
    early: HashMap<Tid, i32>,
    places: Places,
    said: HashSet<&'static str>,
    summary: Summary,
}

impl Tracer {
    pub fn new(live: Arc<Live>, machine: Machine, root: Tid) -> Self {
        let threads = HashMap::from([(root, Thread::new(Process::default(), MemorySlot::FIRST))]);
        let (early, places, said) = (HashMap::new(), Places::new(), HashSet::new());
        let summary = Summary::default();
        Self { live, machine, root, threads, early, places, said, summary }
    }

    /// Traces the started program and its descendants until all have ended.
    pub fn trace(&mut self) -> Summary {
        let mut until: Option<Instant> = None;
        loop {
            match sys::wait(until.is_none()) {
                Ok(Some((tid, report))) => self.seen(tid, report),
                Ok(None) => std::thread::park_timeout(LOOK_EVERY),
                Err(_) => {
                    let used = sys::reading(libc::CLOCK_PROCESS_CPUTIME_ID).and_then(|used| Form::Nanos.nanos(used));
                    self.summary.cpu_ms = used.and_then(|used| u64::try_from(used / MILLISECOND).ok()).unwrap_or(0);
                    return self.summary;
                }
            }
            if until.is_none() && !self.threads.contains_key(&self.root) {
                until = Some(Instant::now() + GRACE);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                self.end_the_rest();
                until = None;
            }
        }
    }

    /// Kills the processes that outlived the program.
    fn end_the_rest(&mut self) {
        let rest: Vec<Tid> = self.threads.keys().chain(self.early.keys()).copied().collect();
        if let Some(one) = rest.first() {
            let name = program::of_process(*one);
            eprintln!(
                "longhaul-clock: the program has ended and {} of its threads went on, among them of {}: they are killed; start what \
                 stays in the foreground",
                rest.len(),
                name.display()
            );
        }
        rest.into_iter().for_each(kill);
    }

    fn seen(&mut self, tid: Tid, report: Report) {
        self.summary.stops += 1;
        let Report::Stopped { signal, event } = report else {
            self.early.remove(&tid);
            self.live.remove(tid);
            if let Some(thread) = self.threads.remove(&tid) {
                self.places.give_back(thread.place);
            }
            return;
        };
        if event == libc::PTRACE_EVENT_EXEC {
            return self.new_program(tid);
        }
        if !self.threads.contains_key(&tid) {
            // Held until it is known to which process it belongs.
            self.early.insert(tid, signal);
            return;
        }
        self.tell_place(tid);
        match event {
            libc::PTRACE_EVENT_SECCOMP => self.before_call(tid),
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => self.new_thread(tid),
            libc::PTRACE_EVENT_STOP if is_stop(signal) => {
                // A group stop, until the process is continued.
                let _ = sys::listen(tid);
            }
            0 if signal == AT_CALL => self.at_call(tid),
            0 if self.is_led_back(tid, signal) => self.go(tid, 0),
            0 => self.go(tid, signal),
            _ => self.go(tid, 0),
        }
    }

    /// Lets a thread run. An error means that the thread was killed meanwhile; the kernel reports that separately.
    fn go(&mut self, tid: Tid, signal: i32) {
        let is_awaited =
            self.threads.get(&tid).is_some_and(|thread| thread.pending.is_some() || thread.again.is_some());
        let _ = sys::go(tid, if is_awaited { Go::ToCall } else { Go::On }, signal);
    }

    fn new_thread(&mut self, parent: Tid) {
        if let Ok(child) = sys::message(parent).map(|child| Tid::try_from(child).unwrap_or(0))
            && let Some(process) = self.threads.get(&parent).map(|thread| thread.child_process(parent))
        {
            let place = self.places.take();
            self.threads.insert(child, Thread { is_new: true, ..Thread::new(process, place) });
            if let Some(signal) = self.early.remove(&child) {
                self.tell_place(child);
                if is_stop(signal) {
                    let _ = sys::listen(child);
                } else {
                    self.go(child, 0);
                }
            }
        }
        self.go(parent, 0);
    }

    /// Handles a process that runs a new program: only one thread is left, with the process's id.
    fn new_program(&mut self, pid: Tid) {
        let former = sys::message(pid).ok().and_then(|former| Tid::try_from(former).ok()).unwrap_or(pid);
        let place = self.threads.remove(&former).map_or(MemorySlot::FIRST, |thread| thread.place);
        for tid in [former, pid] {
            self.live.remove(tid);
        }
        if former != pid
            && let Some(leader) = self.threads.remove(&pid)
        {
            self.places.give_back(leader.place);
        }
        self.threads.insert(pid, Thread::new(Process::default(), place));
        let registers = sys::registers(pid);
        let refusal = program::refusal(pid, matches!(registers, Ok(None)));
        let started = match (refusal, registers) {
            (Some(error), _) => Err(error.to_string()),
            (None, Ok(Some(registers))) => self.give_clock(pid, registers),
            (None, _) => return,
        };
        match started {
            Ok(mut process) => {
                self.summary.programs += 1;
                let Some(signal) = self.give_room(pid, &mut process, place) else {
                    self.threads.remove(&pid);
                    return self.places.give_back(place);
                };
                self.live.add(pid, process.sites.is_some());
                self.threads.insert(pid, Thread::new(process, place));
                self.go(pid, signal);
            }
            Err(why) => {
                eprintln!("longhaul-clock: {why}; it is killed");
                kill(pid);
            }
        }
    }

    /// Prepares the memory and the vDSO of a program that has not run yet.
    fn give_clock(&self, pid: Tid, mut registers: Registers) -> Result<Process, String> {
        let odd = |what: &str| format!("{} {what}", program::of_process(pid).display());
        let process = Process::default();
        let moved = stack::make_room(registers.stack(), &ThreadMemory { tid: pid, process: &process });
        let moved = moved.ok_or_else(|| odd("has a stack without room, and cannot be given another clock"))?;
        registers.set_stack(moved.stack);
        sys::set_registers(pid, &registers).map_err(|error| odd(&format!("cannot be given another stack: {error}")))?;
        let words = self.machine.patch.words.iter().filter(|_| moved.page != 0);
        for (at, word) in words {
            let poked = sys::poke(pid, moved.page + at, *word);
            poked.map_err(|error| odd(&format!("cannot be given another page of time functions: {error}")))?;
        }
        Ok(Process::new(moved.hole, moved.page..moved.page + self.machine.patch.length))
    }

    /// Handles a thread that is about to make a system call of the table of calls.
    fn before_call(&mut self, tid: Tid) {
        let Ok(Some(registers)) = sys::registers(tid) else { return self.go(tid, 0) };
        self.count_of(tid, &registers);
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let again = thread.again.take();
        let is_short = cfg!(target_arch = "x86_64") && registers.number() >= i64::from(calls::SHORT_WORDS);
        let kind =
            if is_short { Some(calls::NO_SHORT_WORDS) } else { calls::of(registers.number()).map(|call| call.kind) };
        let Some(kind) = kind else { return self.go(tid, 0) };
        if kind == Kind::Restart {
            // Its registers are unchanged; the rest that it writes at the end is to be multiplied once more.
            thread.pending = thread.interrupted.take();
            return self.go(tid, 0);
        }
        thread.interrupted = None;
        // The added code converts the results of the kernel's functions itself.
        let is_ours = thread.process.page.contains(&registers.instruction());
        if thread.process.hole == 0 || is_ours {
            return self.go(tid, 0);
        }
        let clock = self.live.clock();
        let situation = Situation {
            clock: &clock,
            scratch: thread.process.hole + thread.place.index * SCRATCH_BYTES,
            has_fine_epoll: self.machine.has_fine_epoll,
            rest_ns: again.filter(|again| again.is(&registers)).and_then(|again| again.rest_ns),
        };
        let seen = ThreadMemory { tid, process: &thread.process };
        match plan(kind, registers.arguments(), &situation, &seen) {
            Plan::Pass => {}
            Plan::Refuse { error, why } => {
                let mut changed = registers;
                changed.set_number(-1);
                changed.set_result(-i64::from(error));
                let _ = sys::set_call(tid, -1);
                let _ = sys::set_registers(tid, &changed);
                if self.said.insert(why) {
                    eprintln!("longhaul-clock: {}: {why}", program::of_process(tid).display());
                }
            }
            Plan::Change(change) => {
                if let Some(waits_ns) = change.waits_ns {
                    self.summary.count(waits_ns, clock.longer(waits_ns));
                    if self.summary.is_too_fast() && self.said.insert(TOO_FAST) {
                        eprintln!("longhaul-clock: {TOO_FAST}");
                    }
                }
                if detour::knows(registers.number()) {
                    detours::rewrite(tid, &thread.process, registers.instruction());
                }
                let changed = thread::changed(&registers, &change);
                let is_other = changed != registers;
                if is_other {
                    if let Some(number) = change.number {
                        let _ = sys::set_call(tid, number);
                    }
                    let _ = sys::set_registers(tid, &changed);
                }
                if is_other || change.then != Then::Nothing {
                    let restore = is_other.then_some(registers);
                    thread.pending = Some(Pending { restore, then: change.then, call: registers });
                }
            }
        }
        self.go(tid, 0);
    }

    /// Handles the end of a changed system call, or the next call after a `poll` that the kernel may repeat.
    fn at_call(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Ok(Some(now)) = sys::registers(tid) else { return self.go(tid, 0) };
        let Some(pending) = thread.pending.take() else {
            // If a handler ran, or another call is made, it is another wait.
            thread.again = thread.again.take().filter(|again| again.is(&now));
            let _ = sys::go(tid, Go::On, 0);
            return;
        };
        let seen = ThreadMemory { tid, process: &thread.process };
        let outcome = finish(pending.then, now.result(), &self.live.clock(), &seen);
        let mut after = pending.restore.unwrap_or(now);
        after.set_result(outcome.result.unwrap_or(now.result()));
        if after != now {
            let _ = sys::set_registers(tid, &after);
        }
        if let Some((timer, clock)) = outcome.timer {
            thread.process.timers.borrow_mut().insert(timer, clock);
        }
        thread.again = outcome.rest_ns.map(|rest_ns| Again { call: pending.call, rest_ns: Some(rest_ns) });
        thread.interrupted = outcome.goes_on.then_some(Pending { restore: None, ..pending });
        self.go(tid, 0);
    }
}

fn is_stop(signal: i32) -> bool {
    [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}

fn kill(tid: Tid) {
    // For any thread's number the kernel kills the whole process; one that has ended needs no more.
    let _ = Pid::from_raw(tid).map(|pid| kill_process(pid, Signal::KILL));
}
