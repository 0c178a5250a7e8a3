//! What the tracer remembers of a thread and of its process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use crate::change::{Change, Memory, Then};
use crate::registers::Registers;
use crate::sys::{self, Tid};

/// What threads of one process share.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// The first place of the hole in its stack; 0 before its program has begun.
    pub hole: u64,
    /// Where it has the kernel's page.
    pub page: Range<u64>,
    /// Clocks of its POSIX timers.
    pub timers: Rc<RefCell<HashMap<i32, i32>>>,
}

/// One thread.
#[derive(Debug)]
pub struct Thread {
    pub process: Process,
    /// Its place in the hole.
    pub place: u64,
    /// It is in a call that was changed.
    pub pending: Option<Pending>,
    /// A wait that a signal interrupted and the kernel goes on with.
    pub interrupted: Option<Pending>,
    /// A poll that the kernel makes again, if no handler runs.
    pub again: Option<Again>,
}

/// A call that was changed.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// The registers to put back, all but the result.
    pub restore: Option<Registers>,
    pub then: Then,
    /// As it was made.
    pub call: Registers,
}

/// A call that the kernel is about to make again.
#[derive(Debug, Clone, Copy)]
pub struct Again {
    pub call: Registers,
    pub rest_ns: Option<i128>,
}

impl Process {
    pub fn new(hole: u64, page: Range<u64>) -> Self {
        Self { hole, page, timers: Rc::default() }
    }
}

impl Thread {
    pub fn new(process: Process, place: u64) -> Self {
        Self { process, place, pending: None, interrupted: None, again: None }
    }

    /// The process of what this thread has just made: its own, if that is a thread.
    pub fn child_process(&self, tid: Tid) -> Process {
        let mut process = self.process.clone();
        if !makes_thread(tid) {
            // Timers are not inherited.
            process.timers = Rc::default();
        }
        process
    }
}

/// Whether the call in which a thread stopped makes another one of the same process.
fn makes_thread(tid: Tid) -> bool {
    let Ok(Some(registers)) = sys::registers(tid) else { return false };
    let flags = match registers.number() {
        libc::SYS_clone => registers.argument(0),
        libc::SYS_clone3 => {
            let mut flags = [0; 8];
            let _ = sys::read(tid, registers.argument(0), &mut flags);
            u64::from_ne_bytes(flags)
        }
        _ => 0,
    };
    flags & u64::from(libc::CLONE_THREAD.cast_unsigned()) != 0
}

impl Again {
    /// Whether a thread makes this call again: at the same place, with the same stack and arguments.
    pub fn is(&self, now: &Registers) -> bool {
        let of = |registers: &Registers| {
            (registers.number(), registers.arguments(), registers.instruction(), registers.stack())
        };
        of(&self.call) == of(now)
    }
}

/// The registers of a call that is made otherwise.
pub fn changed(registers: &Registers, change: &Change) -> Registers {
    let mut changed = *registers;
    if let Some(number) = change.number {
        changed.set_number(number);
    }
    for (index, value) in change.arguments.iter().enumerate() {
        if let Some(value) = value {
            changed.set_argument(index, *value);
        }
    }
    changed
}

/// The memory of a stopped thread.
pub struct Seen<'a> {
    pub tid: Tid,
    pub process: &'a Process,
}

impl Memory for Seen<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        sys::read(self.tid, address, into)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        sys::write(self.tid, address, bytes)
    }

    fn clock_of_file(&self, file: i32) -> Option<i32> {
        let text = std::fs::read_to_string(format!("/proc/{}/fdinfo/{file}", self.tid)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("clockid:")).and_then(|clock| clock.trim().parse().ok())
    }

    fn clock_of_timer(&self, timer: i32) -> Option<i32> {
        self.process.timers.borrow().get(&timer).copied()
    }
}
