//! Characters of text from outside that act on what is shown instead of being shown.

/// Whether a character shows nothing by itself and changes what is seen of the others: control characters, ends of lines and paragraphs, what
/// turns the direction of writing, invisible tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
