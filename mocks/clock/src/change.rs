//! The plan for one system call: its changed arguments, and the tracer's action after the call.
//!
//! Owns the types of plans, and of the inputs from which a plan is made.

use crate::clock::Clock;
use crate::forms::{Form, bytes, words};

/// The offset in a thread's scratch memory to which the kernel writes a timer's old setting if the program does not
/// want it.
pub const SCRATCH_OLD: u64 = 32;
/// Bytes of a thread's scratch memory: two `struct itimerspec`.
pub const SCRATCH_BYTES: u64 = 64;

/// The memory of a stopped thread, and the clocks of its timers.
pub trait Memory {
    /// Reads memory at an address; `None` if the address is not mapped.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;
    /// Writes memory at an address; `None` if the address is not mapped.
    fn write(&self, address: u64, bytes: &[u8]) -> Option<()>;
    /// The kernel's number of the clock of a `timerfd`.
    fn clock_of_file(&self, file: i32) -> Option<i32>;
    /// The kernel's number of the clock of a POSIX timer.
    fn clock_of_timer(&self, timer: i32) -> Option<i32>;

    /// Reads a time, which is two words of 64 bits.
    fn time(&self, address: u64) -> Option<[i64; 2]> {
        let mut buffer = [0; 16];
        self.read(address, &mut buffer)?;
        Some(words(buffer))
    }

    fn set_time(&self, address: u64, time: [i64; 2]) -> Option<()> {
        self.write(address, &bytes(time))
    }

    fn int(&self, address: u64) -> Option<i32> {
        let mut buffer = [0; 4];
        self.read(address, &mut buffer)?;
        Some(i32::from_ne_bytes(buffer))
    }
}

/// How the tracer treats a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The call is made unchanged.
    Pass,
    /// The call fails with an error.
    Refuse { error: i32, why: &'static str },
    /// The call is changed, or the tracer acts after it.
    Change(Change),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The number of the call that replaces the program's call.
    pub number: Option<i64>,
    /// Arguments that replace the program's arguments.
    pub arguments: [Option<u64>; 6],
    /// The tracer's action after the call.
    pub then: Then,
    /// The time limit of the changed call, in real nanoseconds.
    pub waits_ns: Option<i128>,
}

/// The tracer's action after a system call, in addition to restoring the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// Writes the remaining time of a wait into the program's limit, unless the kernel left the tracer's copy
    /// unchanged.
    Rest {
        from: u64,
        written: [i64; 2],
        to: u64,
        form: Form,
    },
    /// Multiplies the remaining time of an interrupted sleep in the program's memory by the clock's rate.
    Interrupted {
        at: u64,
        form: Form,
    },
    /// After a `poll` that the tracer replaced by another call: if the kernel repeats the call, it waits only for the
    /// remaining time.
    Polled {
        from: u64,
    },
    /// Multiplies a duration in the program's memory by the clock's rate.
    Longer {
        at: u64,
        form: Form,
    },
    /// Multiplies a timer's period and remaining time in the program's memory by the clock's rate.
    LongerTimer {
        at: u64,
        form: Form,
    },
    /// Converts an instant in the program's memory to the program's time.
    Own {
        at: u64,
        form: Form,
        clock: i32,
    },
    /// Writes the program's current wall-clock time; with `NowSeconds` the call also returns the seconds.
    Now {
        at: u64,
        form: Form,
    },
    NowSeconds {
        at: u64,
    },
    /// Returns the remaining seconds of the previous alarm.
    Alarm {
        old: u64,
    },
    /// Remembers the clock of a new timer.
    Created {
        at: u64,
        clock: i32,
    },
    /// Multiplies a duration that is an `int` in the program's memory by the clock's rate.
    LongerInt {
        at: u64,
    },
}

/// The state of a thread from which a plan is made.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub clock: &'a Clock,
    /// The address of [`SCRATCH_BYTES`] bytes of the thread's memory that no other code uses.
    pub scratch: u64,
    pub has_fine_epoll: bool,
    /// The remaining time of a wait that the kernel repeats, in real nanoseconds.
    pub rest_ns: Option<i128>,
}

impl Change {
    /// A change that leaves the call's arguments and only sets the tracer's action after the call.
    pub fn then(then: Then) -> Self {
        Self { number: None, arguments: [None; 6], then, waits_ns: None }
    }

    /// Adds one more replaced argument to the change.
    pub fn with(mut self, index: usize, value: u64) -> Self {
        self.arguments[index] = Some(value);
        self
    }
}
