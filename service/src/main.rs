//! The program `longhaul-service`, which only starts the command line; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::cli::main(None)
}
