//! Patterns by which policy rules accept texts such as signers' identities.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Longest text of a pattern, in bytes, because longer patterns take longer to compile.
const PATTERN_BYTES_MAX: usize = 4096;
/// Maximum memory of one compiled expression, in bytes: enough for a few hundred alternatives.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A pattern that accepts or refuses a text. Every kind of pattern must match the whole text, not only its beginning.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    form: Form,
}

#[derive(Clone)]
enum Form {
    Exact,
    Compiled(Regex),
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a pattern has at most {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    /// The pattern accepts the empty text or no text at all, which is surely a mistake of its author.
    #[error("an empty pattern matches nothing: write what is accepted")]
    Empty,
    #[error("not a regular expression: {0}")]
    Regex(String),
}

impl Pattern {
    /// A pattern that accepts only `text` itself.
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        checked(text)?;
        Ok(Self { text: text.to_owned(), form: Form::Exact })
    }

    /// A glob pattern: `*` matches any text, `?` any character; all other characters match themselves.
    pub fn glob(text: &str) -> Result<Self, PatternError> {
        checked(text)?;
        let mut expression = String::with_capacity(text.len() + 8);
        let mut buffer = [0; 4];
        for character in text.chars() {
            match character {
                '*' => expression.push_str("(?s:.*)"),
                '?' => expression.push_str("(?s:.)"),
                other => expression.push_str(&regex::escape(other.encode_utf8(&mut buffer))),
            }
        }
        Ok(Self { text: text.to_owned(), form: Form::Compiled(compiled(&expression)?) })
    }

    /// A regular expression that must match the whole text, with or without anchors. (cosign accepts a match of a part,
    /// so that `@example\.com` accepts `a@example.com.evil.org`.)
    pub fn regex(text: &str) -> Result<Self, PatternError> {
        checked(text)?;
        Ok(Self { text: text.to_owned(), form: Form::Compiled(compiled(text)?) })
    }

    pub fn accepts(&self, text: &str) -> bool {
        match &self.form {
            Form::Exact => self.text == text,
            Form::Compiled(expression) => expression.is_match(text),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The kind and text of the pattern, for fingerprints. Patterns that accept different texts have different
    /// identities.
    pub(crate) fn identity(&self) -> (&'static str, &str) {
        match &self.form {
            Form::Exact => ("exact", &self.text),
            Form::Compiled(expression) => ("regex", expression.as_str()),
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (form, text) = self.identity();
        write!(out, "{form} `{text}`")
    }
}

fn checked(text: &str) -> Result<(), PatternError> {
    match text.len() {
        0 => Err(PatternError::Empty),
        1..=PATTERN_BYTES_MAX => Ok(()),
        _ => Err(PatternError::TooLong),
    }
}

fn compiled(expression: &str) -> Result<Regex, PatternError> {
    let bounded = |text: &str| {
        RegexBuilder::new(text)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| PatternError::Regex(error.to_string()))
    };
    // Compiled alone first: `a)|(b` would leave the group that anchors it.
    bounded(expression)?;
    bounded(&format!("\\A(?:{expression})\\z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_the_whole_text() {
        let regex = Pattern::regex(r"a@example\.com|b@example\.com").unwrap();
        assert!(regex.accepts("a@example.com") && regex.accepts("b@example.com"));
        assert!(!regex.accepts("a@example.com.evil.org") && !regex.accepts("xb@example.com"));
        let glob = Pattern::glob("https://github.com/*/release.y?l").unwrap();
        assert!(
            glob.accepts("https://github.com/o/r/release.yml") && !glob.accepts("https://githubXcom/o/release.yml")
        );
        assert!(Pattern::glob("a*").unwrap().accepts("a\nb"));
        let exact = Pattern::exact("a.c").unwrap();
        assert!(exact.accepts("a.c") && !exact.accepts("abc"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(Pattern::exact("").unwrap_err(), PatternError::Empty);
        assert!(matches!(Pattern::regex("a)|(b"), Err(PatternError::Regex(_))));
        assert!(matches!(Pattern::regex("(a{1000}){1000}"), Err(PatternError::Regex(_))));
        assert_eq!(Pattern::glob(&"a".repeat(5000)).unwrap_err(), PatternError::TooLong);
    }
}
