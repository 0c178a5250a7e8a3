//! Output that never panics. `println!` and `eprintln!` panic if the reader is gone (`| head -1`) or the disk is full.
//! A soak without a reader of its summary must still write its reports and exit with its verdict. A closed pipe is no
//! error; any other error on stdout is remembered for the exit code.

use std::io;
use std::sync::OnceLock;

/// The first error on stdout.
static LOST: OnceLock<String> = OnceLock::new();

/// Whether to use colours, if the command line sets it.
static COLOURS: OnceLock<bool> = OnceLock::new();

/// Sets the command line's choice of colours.
pub fn colours(wanted: bool) {
    COLOURS.get_or_init(|| wanted);
}

pub fn has_colours() -> bool {
    let usual = || io::IsTerminal::is_terminal(&io::stdout()) && std::env::var_os("NO_COLOR").is_none();
    COLOURS.get().copied().unwrap_or_else(usual)
}

/// Prints a line to stdout, without the control characters of foreign texts.
#[macro_export]
macro_rules! print_out {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        $crate::out::note(writeln!(std::io::stdout(), "{}", $crate::shown::text(&text)));
    }};
}

/// Prints a line to stderr, without the control characters of foreign texts. A failure is ignored, because there is no
/// other output.
#[macro_export]
macro_rules! print_err {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        let _ = writeln!(std::io::stderr(), "{}", $crate::shown::text(&text));
    }};
}

pub use crate::{print_err as err, print_out as out};

/// Remembers the result of a write to stdout.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// The reason why a part of stdout is lost, if one is.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
