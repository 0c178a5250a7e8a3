//! The plan for a call: how it is changed, and which step follows it.
//!
//! Owns these types, and the inputs of a plan.

use crate::clock::Clock;
use crate::forms::{Form, bytes, words};

/// The offset in a thread's scratch memory for a timer's old setting, if the call is the tracer's own.
pub const SCRATCH_OLD: u64 = 32;
/// Bytes of a thread's scratch memory: two `struct itimerspec`.
pub const SCRATCH_BYTES: u64 = 64;

/// The memory of a stopped thread, and the kernel's facts about its timers.
pub trait Memory {
    /// Reads from an address; `None` if it is not mapped.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;
    /// Writes to an address.
    fn write(&self, address: u64, bytes: &[u8]) -> Option<()>;
    /// The clock of a `timerfd`.
    fn clock_of_file(&self, file: i32) -> Option<i32>;
    /// The clock of a POSIX timer.
    fn clock_of_timer(&self, timer: i32) -> Option<i32>;

    /// Reads two words.
    fn time(&self, address: u64) -> Option<[i64; 2]> {
        let mut buffer = [0; 16];
        self.read(address, &mut buffer)?;
        Some(words(buffer))
    }

    fn set_time(&self, address: u64, time: [i64; 2]) -> Option<()> {
        self.write(address, &bytes(time))
    }

    /// Reads an `int`.
    fn int(&self, address: u64) -> Option<i32> {
        let mut buffer = [0; 4];
        self.read(address, &mut buffer)?;
        Some(i32::from_ne_bytes(buffer))
    }
}

/// The treatment of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The call is made unchanged.
    Pass,
    /// The call fails with an error.
    Refuse { error: i32, why: &'static str },
    /// The call is changed, or a step follows it.
    Change(Change),
}

/// A change of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The number of a replacing call.
    pub number: Option<i64>,
    /// Replaced arguments.
    pub arguments: [Option<u64>; 6],
    /// The step after the call.
    pub then: Then,
    /// The longest wait, in real nanoseconds.
    pub waits_ns: Option<i128>,
}

/// The step after a call, beside restoring its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// Writes the rest of a wait into the place of the program's limit, unless the kernel left the tracer's copy
    /// unchanged.
    Rest {
        from: u64,
        written: [i64; 2],
        to: u64,
        form: Form,
    },
    /// Multiplies the rest of an interrupted sleep in place.
    Interrupted {
        at: u64,
        form: Form,
    },
    /// A `poll` was made as another call: if the kernel makes it again, only its rest is waited for.
    Polled {
        from: u64,
    },
    /// Multiplies a length in place.
    Longer {
        at: u64,
        form: Form,
    },
    /// Multiplies a period and a rest in place.
    LongerTimer {
        at: u64,
        form: Form,
    },
    /// Converts an instant in place.
    Own {
        at: u64,
        form: Form,
        clock: i32,
    },
    /// Writes the program's current wall clock, and returns it if it is wanted in seconds.
    Now {
        at: u64,
        form: Form,
    },
    NowSeconds {
        at: u64,
    },
    /// Returns the seconds that an alarm had left.
    Alarm {
        old: u64,
    },
    /// Remembers the clock of a new timer.
    Created {
        at: u64,
        clock: i32,
    },
    /// Multiplies a number in place.
    LongerInt {
        at: u64,
    },
}

/// The state of a thread, for a plan.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub clock: &'a Clock,
    /// [`SCRATCH_BYTES`] of its memory that no other code uses.
    pub scratch: u64,
    /// Whether `epoll_pwait2` works here.
    pub has_fine_epoll: bool,
    /// The rest in real nanoseconds, if the kernel makes the call again.
    pub rest_ns: Option<i128>,
}

impl Change {
    /// A change that consists only of the step after the call.
    pub fn then(then: Then) -> Self {
        Self { number: None, arguments: [None; 6], then, waits_ns: None }
    }

    /// Replaces one more argument.
    pub fn with(mut self, index: usize, value: u64) -> Self {
        self.arguments[index] = Some(value);
        self
    }
}
