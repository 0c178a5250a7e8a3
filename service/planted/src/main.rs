//! The program `longhaul-service-planted`: the service with planted bugs. `LONGHAUL_PLANTED_BUG` names the active bug.
//!
//! A harness uses this program to prove that each of its judges finds its bug. Never deploy `longhaul-service-planted`
//! in a real cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(Some(service_planted::BUGS))
}
