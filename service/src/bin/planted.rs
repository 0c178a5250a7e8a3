//! `longhaul-service-planted`: the same service with known bugs that `LONGHAUL_PLANTED_BUG` switches on.
//!
//! It exists so that a harness can prove that each of its judges fires. Never deploy it.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(Some(service::planted::BUGS))
}
