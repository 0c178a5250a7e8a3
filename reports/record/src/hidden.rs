//! Characters in printed text of the subject and other programs that change how the text around them is displayed.

/// Whether a character shows nothing by itself and changes how other characters are displayed. Hidden characters are
/// control characters, ends of lines and paragraphs, changes of the writing direction, and invisible tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
