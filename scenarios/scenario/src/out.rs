//! Printing without dying of it. `println!` and `eprintln!` panic when the reader is gone (`| head -1`) or the disk is full, and a soak
//! whose summary nobody reads must still write its reports and exit with its verdict. A reader who leaves has had enough; anything
//! else that keeps stdout from being written is remembered, so that the exit code tells of it.

use std::io;
use std::sync::OnceLock;

/// Why stdout could not be written, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// Whether there are colours, where the command line says so.
static COLOURS: OnceLock<bool> = OnceLock::new();

/// What the command line says of colours.
pub fn colours(wanted: bool) {
    COLOURS.get_or_init(|| wanted);
}

/// Whether stdout gets colours.
pub fn has_colours() -> bool {
    let usual = || io::IsTerminal::is_terminal(&io::stdout()) && std::env::var_os("NO_COLOR").is_none();
    COLOURS.get().copied().unwrap_or_else(usual)
}

/// Prints a line to stdout, without the control characters of outside texts.
#[macro_export]
macro_rules! print_out {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        $crate::out::note(writeln!(std::io::stdout(), "{}", $crate::shown::text(&text)));
    }};
}

/// Prints a line to stderr, without the control characters of outside texts. Where that cannot be written there is nobody left to tell.
#[macro_export]
macro_rules! print_err {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        let _ = writeln!(std::io::stderr(), "{}", $crate::shown::text(&text));
    }};
}

pub use crate::{print_err as err, print_out as out};

/// Remembers what became of a write to stdout.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Why a part of stdout is lost, if one is.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
