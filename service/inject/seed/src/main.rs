//! The program `longhaul-seed`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_seed::main(None)
}
