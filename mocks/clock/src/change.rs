//! What a plan says: how a call is made otherwise, and what is done after it.
//!
//! Owns these types, and what a plan may look at.

use crate::clock::Clock;
use crate::forms::{Form, bytes, words};

/// Where in a thread's scratch what was set before is written, if the call is ours.
pub const SCRATCH_OLD: u64 = 32;
/// Bytes of a thread's scratch: two `struct itimerspec`.
pub const SCRATCH_BYTES: u64 = 64;

/// The memory of a stopped thread, and what the kernel says of its timers.
pub trait Memory {
    /// Reads from an address; `None` where there is nothing.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;
    /// Writes to an address.
    fn write(&self, address: u64, bytes: &[u8]) -> Option<()>;
    /// The clock of a `timerfd`.
    fn clock_of_file(&self, file: i32) -> Option<i32>;
    /// The clock of a POSIX timer.
    fn clock_of_timer(&self, timer: i32) -> Option<i32>;

    /// Two words.
    fn time(&self, address: u64) -> Option<[i64; 2]> {
        let mut buffer = [0; 16];
        self.read(address, &mut buffer)?;
        Some(words(buffer))
    }

    /// Writes two words.
    fn set_time(&self, address: u64, time: [i64; 2]) -> Option<()> {
        self.write(address, &bytes(time))
    }

    /// An `int`.
    fn int(&self, address: u64) -> Option<i32> {
        let mut buffer = [0; 4];
        self.read(address, &mut buffer)?;
        Some(i32::from_ne_bytes(buffer))
    }
}

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// It is made as it is.
    Pass,
    /// It fails with an error.
    Refuse { error: i32, why: &'static str },
    /// It is made otherwise, or something is changed after it.
    Change(Change),
}

/// How a call is made otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Another call in its place.
    pub number: Option<i64>,
    /// Other arguments.
    pub arguments: [Option<u64>; 6],
    /// What is done after it.
    pub then: Then,
    /// How long it waits at most, in real nanoseconds.
    pub waits_ns: Option<i128>,
}

/// What is done after a call, beside putting back its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Nothing,
    /// The rest of a wait is put where the program had its limit, unless the kernel left alone what was written for it.
    Rest {
        from: u64,
        written: [i64; 2],
        to: u64,
        form: Form,
    },
    /// The rest of an interrupted sleep is multiplied where it is.
    Interrupted {
        at: u64,
        form: Form,
    },
    /// A `poll` was made as another call: when the kernel makes it again, only its rest is waited for.
    Polled {
        from: u64,
    },
    /// A length is multiplied where it is.
    Longer {
        at: u64,
        form: Form,
    },
    /// A period and a rest are multiplied where they are.
    LongerTimer {
        at: u64,
        form: Form,
    },
    /// An instant is moved where it is.
    Own {
        at: u64,
        form: Form,
        clock: i32,
    },
    /// The wall clock of this moment is written, and is the result if it is asked for in seconds.
    Now {
        at: u64,
        form: Form,
    },
    NowSeconds {
        at: u64,
    },
    /// The seconds that an alarm had left are the result.
    Alarm {
        old: u64,
    },
    /// A timer has this clock.
    Created {
        at: u64,
        clock: i32,
    },
    /// A number is multiplied where it is.
    LongerInt {
        at: u64,
    },
}

/// What a thread has to offer to a plan.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub clock: &'a Clock,
    /// [`SCRATCH_BYTES`] of its memory that nobody else uses.
    pub scratch: u64,
    /// Whether `epoll_pwait2` works here.
    pub has_fine_epoll: bool,
    /// The call is made again by the kernel, and so many real nanoseconds were left.
    pub rest_ns: Option<i128>,
}

impl Change {
    /// Nothing but what is done after it.
    pub fn then(then: Then) -> Self {
        Self { number: None, arguments: [None; 6], then, waits_ns: None }
    }

    /// With another argument.
    pub fn with(mut self, index: usize, value: u64) -> Self {
        self.arguments[index] = Some(value);
        self
    }
}
