//! Makes text from outside this program safe for a log line, a terminal or a message.
//!
//! Characters that could move a cursor, start a line or change the direction of writing are escaped, and the text's
//! length is limited.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::json;

const MARK: &str = "…";

/// Returns `text` on one line with escapes for unprintable characters, in at most `bytes_max` bytes; a cut text ends
/// with `…`.
pub fn printable(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let room = bytes_max.saturating_sub(MARK.len());
    let mut out = String::with_capacity(text.len().min(bytes_max));
    let mut whole = 0;
    for char in text.chars() {
        if is_hidden(char) {
            out.extend(char.escape_unicode());
        } else {
            out.push(char);
        }
        if out.len() <= room {
            whole = out.len();
        }
        if out.len() > bytes_max {
            out.truncate(whole);
            out.push_str(MARK);
            break;
        }
    }
    Cow::Owned(out)
}

/// Text that is already escaped for a JSON string, without the quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Escaped(String);

impl Escaped {
    /// An empty text with memory for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// Appends text that is already escaped or needs no escapes.
    pub fn push_escaped(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub fn push_quoted(&mut self, text: &str) {
        self.0.push_str(r#"\""#);
        if json::needs_escape(text) {
            let mut once = String::new();
            escape(&mut once, text);
            escape(&mut self.0, &once);
        } else {
            self.0.push_str(text);
        }
        self.0.push_str(r#"\""#);
    }

    pub fn quote(&self, out: &mut String) {
        out.push('"');
        out.push_str(&self.0);
        out.push('"');
    }

    #[cfg(test)]
    pub fn text(&self) -> String {
        serde_json::from_str(&format!("\"{}\"", self.0)).expect("it is escaped")
    }
}

impl From<&str> for Escaped {
    fn from(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        escape(&mut out, text);
        Self(out)
    }
}

pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    escape(out, text);
    out.push('"');
}

fn escape(out: &mut String, text: &str) {
    let mut done = 0;
    json::specials(text, |at| {
        out.push_str(&text[done..at]);
        match text.as_bytes()[at] {
            b'"' => out.push_str(r#"\""#),
            b'\\' => out.push_str(r"\\"),
            control => write!(out, "\\u{control:04x}").expect("a String takes all text"),
        }
        done = at + 1;
    });
    out.push_str(&text[done..]);
}

/// Whether a character is a control character or a line or paragraph separator, changes the direction of writing, or
/// has no width.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_does_not_print_is_escaped_and_what_is_cut_says_so() {
        assert_eq!(printable("a\n\u{1b}[2J\u{202e}b", 100), "a\\u{a}\\u{1b}[2J\\u{202e}b");
        assert_eq!(printable("ünïcode", 100), "ünïcode");
        assert_eq!(printable("abcdef", 6), "abcdef");
        assert_eq!(printable("\u{7f}", 9), "\\u{7f}");
        assert_eq!(printable("abcdefg", 6), "abc…");
    }

    proptest! {
        /// Any text becomes one JSON string that parses to the same text.
        #[test]
        fn quoted_as_json(text in any::<String>()) {
            let mut out = String::from("[");
            quote(&mut out, &text);
            out.push(']');
            prop_assert_eq!(serde_json::from_str::<[String; 1]>(&out).unwrap(), [text]);
        }

        /// Escaped text parses to the original text, alone and inside another escaped text.
        #[test]
        fn escaped_means_the_same(text in any::<String>(), plain in "[a-z]{0,40}") {
            prop_assert_eq!(&Escaped::from(&*text).text(), &text);
            for text in [text, plain] {
                let mut inside = Escaped::default();
                inside.push_quoted(&text);
                prop_assert_eq!(serde_json::from_str::<String>(&inside.text()).unwrap(), text);
            }
        }

        /// For any text, the result of `printable` has no hidden characters and stays within the limit.
        #[test]
        fn bounded_and_printable(text in any::<String>(), bytes_max in 3usize..60) {
            let out = printable(&text, bytes_max);
            prop_assert!(out.len() <= bytes_max);
            prop_assert!(!out.chars().any(is_hidden));
        }
    }
}
