//! The program `longhaul-service`, which only calls the command line of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(None)
}
