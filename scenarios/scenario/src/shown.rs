//! Escapes text from outside Longhaul for logs, messages and summaries.
//!
//! An unknown peer or a foreign file can send bytes that move a terminal's cursor, change its title or forge a line of
//! the log.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use record::is_hidden;

/// Escapes all control characters except line ends and tabs, in the form of JSON (`\u001b`), so that JSON stays valid
/// JSON.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes a text to one line, so that a name from a foreign file cannot forge a second line.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\t')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let goes = |c: char| is_hidden(c) && !stays(c);
    if !text.contains(goes) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if goes(c) { escape(c, &mut shown) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn escape(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        // The escapes are JSON's, even beyond four digits. Writing to a String cannot fail.
        c => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

/// A writer of log events that keeps each event on one line: line ends and control characters within an event are
/// escaped.
pub struct Lines<W>(pub W);

impl<W: Write> Write for Lines<W> {
    /// Writes one event, which includes its line end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        // One write per event, so that two threads do not mix their lines.
        self.0.write_all(format!("{}{end}", escaped(line, |c| c == '\t')).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(text("a\tb\nc ä"), "a\tb\nc ä");
        assert_eq!(text("\u{1b}[2Jx\r\u{9b}31m\u{7}\0"), "\\u001b[2Jx\\r\\u009b31m\\u0007\\u0000");
        assert_eq!(text("a\u{202e}b"), "a\\u202eb");
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let mut out = Vec::new();
        let mut lines = Lines(&mut out);
        lines.write_all(b"WARN peer said \x1b[31mx\nERROR forged\r\n").unwrap();
        lines.write_all("bad \u{9b}2J".as_bytes()).unwrap();
        assert_eq!(out, b"WARN peer said \\u001b[31mx\\nERROR forged\\r\nbad \\u009b2J");
    }
}
