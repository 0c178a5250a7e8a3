//! `longhaul-clock --rate N -- PROGRAM ARGUMENTS…`: starts any program under a clock that goes N times as fast.

use std::process::ExitCode;

fn main() -> ExitCode {
    mock_clock::command_line(std::env::args_os().skip(1))
}
