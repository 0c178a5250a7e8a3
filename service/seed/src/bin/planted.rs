//! `longhaul-seed-planted`: the same seed with known bugs that `LONGHAUL_PLANTED_BUG` switches on.
//!
//! It exists so that a harness can prove that each of its judges fires. Never inject it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(Some(service_seed::planted::planted))
}
