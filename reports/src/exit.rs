//! Exit codes, all of them. Scripts depend on these numbers.

/// Every budget was met, with the stated confidence.
pub const PASS: u8 = 0;
/// A budget was broken, with the stated confidence.
pub const FAIL: u8 = 1;
/// Not enough data; the report says how much more.
pub const INCONCLUSIVE: u8 = 2;
/// The run itself cannot be trusted; the report says why.
pub const INVALID: u8 = 2;
/// A bad scenario file, bad arguments or a missing tool; nothing was started. As `EX_USAGE` of sysexits.
pub const USAGE: u8 = 64;
