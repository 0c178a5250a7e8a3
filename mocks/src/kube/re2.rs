//! Patterns as Go reads them.
//!
//! The classes `\d`, `\w` and `\s` are ASCII in RE2 (<https://github.com/google/re2/wiki/Syntax>), and match every script in the crate
//! `regex`, where `\w` compiles to thousands of times as much, too. Owns this difference only; what else the two languages do not
//! share stays an error or a special case of one of them.

use regex::Regex;

/// A pattern of a schema. It is shown as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    source: Box<str>,
}

impl Pattern {
    pub fn new(source: &str) -> Result<Self, regex::Error> {
        Ok(Self { regex: Regex::new(&with_ascii_classes(source))?, source: source.into() })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub fn as_str(&self) -> &str {
        &self.source
    }
}

/// The same pattern with those classes spelled out, for whoever compiles it.
pub(crate) fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // A class within a class is a part of it, so that this holds between brackets as well.
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(r"[\t\n\f\r ]"),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use regex::RegexBuilder;

    use super::*;

    fn is_match(pattern: &str, text: &str) -> bool {
        let compiled = Pattern::new(pattern).unwrap();
        assert_eq!(compiled.as_str(), pattern);
        compiled.is_match(text)
    }

    #[test]
    fn classes_are_ascii() {
        for (class, inside, outside) in [('d', "7", "٣"), ('w', "_", "é"), ('s', "\t", "\u{a0}")] {
            let negated = class.to_ascii_uppercase();
            for (text, expected) in [(inside, true), (outside, false)] {
                assert_eq!(is_match(&format!(r"^\{class}$"), text), expected, "{class} {text}");
                assert_eq!(is_match(&format!(r"^\{negated}$"), text), !expected, "{negated} {text}");
                assert_eq!(is_match(&format!(r"^[\{class}-]$"), text), expected, "[{class}-] {text}");
                assert_eq!(is_match(&format!(r"^[^\{class}]$"), text), !expected, "[^{class}] {text}");
            }
        }
    }

    #[test]
    fn everything_else_stays() {
        for pattern in [r"^a\.b\\d$", r"\p{Greek}\b", r"[a\]d]", "é+", r"\"] {
            assert_eq!(with_ascii_classes(pattern), pattern);
        }
        assert!(is_match(r"^\\d$", r"\d"));
    }

    /// What a name is usually checked with.
    #[test]
    fn counted_classes_stay_small() {
        let small = |pattern: &str| RegexBuilder::new(pattern).size_limit(64 * 1024).build().is_ok();
        let pattern = r"^[\w.-]{1,253}$";
        assert!(!small(pattern));
        assert!(small(&with_ascii_classes(pattern)));
    }
}
