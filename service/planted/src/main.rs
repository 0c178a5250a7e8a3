//! The program `longhaul-service-planted`: the same service with known bugs that `LONGHAUL_PLANTED_BUG` switches on.
//!
//! A harness proves with it that each of its judges fires. Never deploy it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(Some(service_planted::BUGS))
}
