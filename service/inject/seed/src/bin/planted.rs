//! The program `longhaul-seed-planted`: the seed with known bugs. `LONGHAUL_PLANTED_BUG` switches one on.
//!
//! A harness uses this program to prove that each of its judges finds its bug. Never inject it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(Some(service_seed::planted::planted))
}
