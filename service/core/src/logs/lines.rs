//! A log writer that writes every event as exactly one line.
//!
//! Any client of an open port can put bytes into a message that move a terminal's cursor or imitate a log line. So
//! [`Lines`] escapes control characters as in JSON, for example `\u001b`. Characters that change the direction of
//! writing are escaped too, because they make a terminal show another text than the line contains.

use std::fmt::Write as _;
use std::io::{self, Write};

/// A writer for a logger that writes one event per call.
pub(super) struct Lines<W>(pub(super) W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        if event.iter().rev().skip(1).all(|byte| (b' '..=b'~').contains(byte)) {
            return self.0.write_all(event).map(|()| event.len());
        }
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut shown = String::with_capacity(event.len() + 16);
        for c in line.chars() {
            match c {
                '\n' => shown.push_str("\\n"),
                '\r' => shown.push_str("\\r"),
                // Writing to a String cannot fail.
                c if is_control(c) => drop(write!(shown, "\\u{:04x}", u32::from(c))),
                c => shown.push(c),
            }
        }
        shown.push_str(&text[line.len()..]);
        // In one write, so that two threads do not mix their lines.
        self.0.write_all(shown.as_bytes()).map(|()| event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn is_control(c: char) -> bool {
    let turns = matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let mut out = Vec::new();
        let mut lines = Lines(&mut out);
        lines.write_all(b"INFO plain\n").unwrap();
        lines.write_all(b"WARN peer said \x1b[31mx\nERROR forged\r\n").unwrap();
        lines.write_all("bad \u{9b}2J \u{202e}ä\n".as_bytes()).unwrap();
        let expected = "INFO plain\nWARN peer said \\u001b[31mx\\nERROR forged\\r\nbad \\u009b2J \\u202eä\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
