//! `longhaul-service-planted`: the same service with known bugs that `LONGHAUL_PLANTED_BUG` switches on.
//!
//! It exists so that a harness can prove that each of its judges fires. Never deploy it.

use std::process::ExitCode;

/// Gives back what bursts of connections leave behind: `docs/decisions/013`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    service::cli::main(Some(service::planted::BUGS))
}
