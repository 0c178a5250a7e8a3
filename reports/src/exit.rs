//! Exit codes, all of them: one for each outcome. Scripts depend on these numbers; `longhaul`, `cargo xtask` and `cargo
//! xtask dist` use this file.

/// Every budget was met, with the stated confidence.
pub const PASS: u8 = 0;
/// A budget was broken, with the stated confidence.
pub const FAIL: u8 = 1;
/// Not enough data; the report says how much more.
pub const INCONCLUSIVE: u8 = 2;
/// The run itself cannot be trusted; the report says why.
pub const INVALID: u8 = 3;
/// A bad scenario file or bad arguments; nothing was started. As `EX_USAGE` of sysexits.
pub const USAGE: u8 = 64;
/// A required program is missing; nothing was started. As `EX_UNAVAILABLE` of sysexits.
pub const UNAVAILABLE: u8 = 69;
/// The tool itself failed. As `EX_SOFTWARE` of sysexits.
pub const SOFTWARE: u8 = 70;
/// Stopped at once by a second Ctrl-C: 128 + SIGINT, as a shell reports it.
pub const ABORTED: u8 = 130;
