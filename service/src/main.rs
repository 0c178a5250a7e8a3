//! `longhaul-service`: only starts the command line; everything else is in the library.

use std::process::ExitCode;

/// Gives back what bursts of connections leave behind: `docs/decisions/013`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    service::cli::main(None)
}
