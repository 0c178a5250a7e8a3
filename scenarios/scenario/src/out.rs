//! Output to stdout and stderr that never panics. `println!` and `eprintln!` panic if the reader has closed the pipe
//! (`| head -1`) or the disk is full. A soak must still write its reports and exit with its verdict. A closed pipe is
//! no error; any other error on stdout is remembered for the exit code.

use std::io;
use std::sync::OnceLock;

/// The first error of a write to stdout.
static LOST: OnceLock<String> = OnceLock::new();

/// Whether output uses colours; not set if no option of the command line decides that.
static COLOURS: OnceLock<bool> = OnceLock::new();

/// Sets whether output uses colours, as the options of the command line say.
pub fn colours(wanted: bool) {
    COLOURS.get_or_init(|| wanted);
}

pub fn has_colours() -> bool {
    let usual = || io::IsTerminal::is_terminal(&io::stdout()) && std::env::var_os("NO_COLOR").is_none();
    COLOURS.get().copied().unwrap_or_else(usual)
}

/// Prints a line to stdout and escapes control characters, which may come from foreign text.
#[macro_export]
macro_rules! print_out {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        $crate::out::note(writeln!(std::io::stdout(), "{}", $crate::shown::text(&text)));
    }};
}

/// Prints a line to stderr and escapes control characters, which may come from foreign text. An error of this write is
/// ignored, because it could be reported only to stderr itself.
#[macro_export]
macro_rules! print_err {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($argument)*);
        let _ = writeln!(std::io::stderr(), "{}", $crate::shown::text(&text));
    }};
}

pub use crate::{print_err as err, print_out as out};

/// Remembers the error of a write to stdout, if it is the first error.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// The first error of a write to stdout, if output was lost.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
