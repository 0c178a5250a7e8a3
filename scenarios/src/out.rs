//! Printing to stdout without dying of it. `println!` panics when the reader is gone (`| head -1`), and a soak whose
//! summary nobody reads must still write its reports and exit with its verdict.

/// Prints a line; a reader that is gone is no error.
macro_rules! out {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}
pub(crate) use out;
