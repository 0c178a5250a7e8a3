//! Go sources without their comments, so that code in comments is not found. Pure.

/// The text with spaces in place of comments; quoted text stays as it is.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('/', Some('/')) => while chars.next_if(|&next| next != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut last = ' ';
                for next in chars.by_ref() {
                    if next == '\n' {
                        out.push('\n');
                    }
                    if (last, next) == ('*', '/') {
                        break;
                    }
                    last = next;
                }
                out.push(' ');
            }
            ('"' | '`' | '\'', _) => {
                out.push(char);
                let is_raw = char == '`';
                while let Some(next) = chars.next() {
                    out.push(next);
                    if next == char || (next == '\n' && !is_raw) {
                        break;
                    }
                    if next == '\\' && !is_raw {
                        out.extend(chars.next());
                    }
                }
            }
            _ => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_texts_stay() {
        let text = "a // b \"c\"\nd /* e\nf */ g(\"http://h\", `i // j`, '\"', \"k\\\" // l\") // m";
        assert_eq!(without_comments(text), "a \nd \n  g(\"http://h\", `i // j`, '\"', \"k\\\" // l\") ");
        assert_eq!(without_comments("a /* never ends"), "a  ");
        assert_eq!(without_comments("\"never ends\nb // c"), "\"never ends\nb ");
    }
}
