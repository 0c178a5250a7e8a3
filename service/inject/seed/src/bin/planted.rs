//! The program `longhaul-seed-planted`: the same seed with known bugs that `LONGHAUL_PLANTED_BUG` switches on.
//!
//! A harness proves with it that each of its judges fires. Never inject it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(Some(service_seed::planted::planted))
}
