//! The tracer's state of a thread and of its process.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use crate::change::{Change, Memory, Then};
use crate::places::Place;
use crate::registers::Registers;
use crate::sys::{self, Tid};

/// The state that the threads of one process share.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// The first place in the gap of its stack; 0 before its program has begun.
    pub hole: u64,
    /// The addresses of the kernel's page.
    pub page: Range<u64>,
    /// The clocks of its POSIX timers, by number.
    pub timers: Rc<RefCell<HashMap<i32, i32>>>,
    /// The rewritten sites; `None` if there is no memory for them.
    pub sites: Option<Rc<RefCell<Sites>>>,
}

/// The rewritten sites of a program.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    /// Calls that were examined.
    pub seen: HashSet<u64>,
    /// Number of rewritten sites.
    pub count: u64,
    /// Where a thread continues that stopped in the middle of a rewritten site.
    pub astray: HashMap<u64, u64>,
}

#[derive(Debug)]
pub struct Thread {
    pub process: Process,
    /// Its place in the gap, and for waits without a stop.
    pub place: Place,
    /// Whether it has not run yet, so that its place is not set.
    pub is_new: bool,
    /// The changed call that it is in.
    pub pending: Option<Pending>,
    /// A wait that a signal interrupted and the kernel continues.
    pub interrupted: Option<Pending>,
    /// A poll that the kernel makes again if no handler runs.
    pub again: Option<Again>,
}

#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// The registers to restore, all but the result.
    pub restore: Option<Registers>,
    pub then: Then,
    /// The registers of the call as it was made.
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
        Self { hole, page, timers: Rc::default(), sites: None }
    }
}

impl Thread {
    pub fn new(process: Process, place: Place) -> Self {
        Self { process, place, is_new: false, pending: None, interrupted: None, again: None }
    }

    /// The process of a thread or process that this thread has just made.
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

/// The flags in the call by which a thread makes another one.
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
    /// Whether a thread makes this call again: at the same address, with the same stack and arguments.
    pub fn is(&self, now: &Registers) -> bool {
        let of = |registers: &Registers| {
            (registers.number(), registers.arguments(), registers.instruction(), registers.stack())
        };
        of(&self.call) == of(now)
    }
}

/// The registers of a changed call.
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
