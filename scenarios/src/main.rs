//! `longhaul`: soak tests for admission webhooks and watch controllers. The crate's library contains all code.

/// The allocator of memory: the mock API server allocates small pieces of memory in one thread and frees them in
/// another (`docs/decisions/012`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    scenarios::cli::main()
}
