//! The program `longhaul-service-planted`: the service with known bugs. `LONGHAUL_PLANTED_BUG` switches one on.
//!
//! A harness uses this program to prove that each of its judges finds its bug. Never deploy it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(Some(service_planted::BUGS))
}
