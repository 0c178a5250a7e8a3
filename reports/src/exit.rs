//! All exit codes, one for each outcome. Scripts depend on the exit codes. The programs `longhaul`, `cargo xtask` and
//! `cargo xtask dist` use these exit codes.

/// Exit code of a run in which every budget was met, with the stated confidence.
pub const PASS: u8 = 0;
/// Exit code if a budget was broken, with the stated confidence.
pub const FAIL: u8 = 1;
/// Exit code if there is too little data; the report says how much more is needed.
pub const INCONCLUSIVE: u8 = 2;
/// Exit code if the run cannot be trusted; the report says why.
pub const INVALID: u8 = 3;
/// Exit code for a bad scenario file or bad arguments (`EX_USAGE` of sysexits); nothing was started.
pub const USAGE: u8 = 64;
/// Exit code if a required program is missing (`EX_UNAVAILABLE` of sysexits); nothing was started.
pub const UNAVAILABLE: u8 = 69;
/// Exit code if the tool failed because of an internal error (`EX_SOFTWARE` of sysexits).
pub const SOFTWARE: u8 = 70;
/// Exit code after a second Ctrl-C, which stops the tool at once: 128 + SIGINT, as a shell reports it.
pub const ABORTED: u8 = 130;
