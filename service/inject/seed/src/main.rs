//! The program `longhaul-seed`, which only calls the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(None)
}
