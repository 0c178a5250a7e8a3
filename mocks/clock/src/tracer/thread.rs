//! The tracer's state of one thread and of its process.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use crate::change::{Change, Memory, Then};
use crate::places::MemorySlot;
use crate::registers::Registers;
use crate::sys::{self, Tid};

/// The state that the threads of one process share.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// The address of the first memory slot in the gap of the process's stack; 0 before the program has begun.
    pub hole: u64,
    /// The range of addresses of the vDSO.
    pub page: Range<u64>,
    /// The clocks of the process's POSIX timers, by the number of the timer.
    pub timers: Rc<RefCell<HashMap<i32, i32>>>,
    /// The rewritten system-call instructions; `None` if the process has no memory for them.
    pub sites: Option<Rc<RefCell<Sites>>>,
}

/// The rewritten system-call instructions (sites) of a program.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    /// Addresses of system-call instructions that the tracer has examined.
    pub seen: HashSet<u64>,
    /// Number of rewritten sites.
    pub count: u64,
    /// For each address in the middle of a rewritten site: the address where a thread that stopped there continues.
    pub astray: HashMap<u64, u64>,
}

#[derive(Debug)]
pub struct Thread {
    pub process: Process,
    /// The number of the thread's memory slot, both in the gap of the stack and in the memory for waits without a stop.
    pub place: MemorySlot,
    /// Whether the thread has not run yet and does not have the address of its memory slot.
    pub is_new: bool,
    /// The changed call that the thread is making.
    pub pending: Option<Pending>,
    /// A wait that a signal interrupted and the kernel continues.
    pub interrupted: Option<Pending>,
    /// A poll that the kernel repeats if no signal handler runs.
    pub again: Option<Again>,
}

#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// The registers to restore after the system call, except for the result.
    pub restore: Option<Registers>,
    pub then: Then,
    /// The registers with which the system call was made.
    pub call: Registers,
}

/// A system call that the kernel may repeat.
#[derive(Debug, Clone, Copy)]
pub struct Again {
    pub call: Registers,
    pub rest_ns: Option<i128>,
}

impl Process {
    pub fn new(hole: u64, page: Range<u64>) -> Self {
        Self { hole, page, timers: Rc::default(), sites: None }
    }
}

impl Thread {
    pub fn new(process: Process, place: MemorySlot) -> Self {
        Self { process, place, is_new: false, pending: None, interrupted: None, again: None }
    }

    /// The process of a new thread or process that this thread has just created.
    pub fn child_process(&self, tid: Tid) -> Process {
        let mut process = self.process.clone();
        let flags = flags_of_new(tid);
        let has = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
        if !has(libc::CLONE_THREAD) {
            // Timers are not inherited.
            process.timers = Rc::default();
        }
        if !has(libc::CLONE_VM) {
            let copy = |sites: Rc<RefCell<Sites>>| Rc::new(RefCell::new(sites.borrow().clone()));
            process.sites = process.sites.map(copy);
        }
        process
    }
}

/// The flags of the call with which a thread creates another thread.
fn flags_of_new(tid: Tid) -> u64 {
    let Ok(Some(registers)) = sys::registers(tid) else { return 0 };
    match registers.number() {
        libc::SYS_clone => registers.argument(0),
        libc::SYS_clone3 => {
            let mut flags = [0; 8];
            let _ = sys::read(tid, registers.argument(0), &mut flags);
            u64::from_ne_bytes(flags)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => u64::from(libc::CLONE_VM.cast_unsigned()),
        _ => 0,
    }
}

impl Again {
    /// Whether a thread repeats this system call: at the same address, with the same stack and arguments.
    pub fn is(&self, now: &Registers) -> bool {
        let of = |registers: &Registers| {
            (registers.number(), registers.arguments(), registers.instruction(), registers.stack())
        };
        of(&self.call) == of(now)
    }
}

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
pub struct ThreadMemory<'a> {
    pub tid: Tid,
    pub process: &'a Process,
}

impl Memory for ThreadMemory<'_> {
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
