//! Text from outside, made fit for a line of a log, a terminal or a message.
//!
//! Pure. What could move a cursor, begin a line or turn the direction of writing is escaped, and the length is bounded.

const MARK: &str = "…";

/// `text` on one line, with what does not print escaped, at most `bytes_max` bytes; what is cut says so by `…`.
pub fn printable(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
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
    out
}

/// Adds `text` to `out` as a JSON string.
pub fn quote(out: &mut String, text: &str) {
    // Nearly all that we write needs no escape, and looking first is several times faster than escaping byte by byte.
    // All are counted, because the compiler makes that many bytes at a time.
    if text.bytes().filter(|&byte| byte < b' ' || byte == b'"' || byte == b'\\').count() == 0 {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(text).expect("strings always serialise"));
    }
}

/// Control characters, line and paragraph separators, and what turns the direction of writing or has no width.
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
        /// Whatever the text, it is one JSON string that means it.
        #[test]
        fn quoted_as_json(text in any::<String>()) {
            let mut out = String::from("[");
            quote(&mut out, &text);
            out.push(']');
            prop_assert_eq!(serde_json::from_str::<[String; 1]>(&out).unwrap(), [text]);
        }

        /// Whatever the text, the result is bounded and has nothing that does not print.
        #[test]
        fn bounded_and_printable(text in any::<String>(), bytes_max in 3usize..60) {
            let out = printable(&text, bytes_max);
            prop_assert!(out.len() <= bytes_max);
            prop_assert!(!out.chars().any(is_hidden));
        }
    }
}
