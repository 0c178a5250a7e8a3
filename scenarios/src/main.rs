//! `longhaul`: soak tests for admission webhooks and watch controllers. Everything is in the library.

fn main() -> std::process::ExitCode {
    scenarios::cli::main()
}
