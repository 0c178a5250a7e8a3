//! The program `longhaul-seed-planted`: the injected program with planted bugs. `LONGHAUL_PLANTED_BUG` names the active
//! bug.
//!
//! A harness uses this program to prove that each of its judges finds its bug. Never inject `longhaul-seed-planted`
//! into a real cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(Some(service_seed::planted::planted))
}
