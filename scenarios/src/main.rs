//! `longhaul`: soak tests for admission webhooks and watch controllers. All code is in the library.

/// The mock API server allocates small pieces of memory that change threads: `docs/decisions/012`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    scenarios::cli::main()
}
