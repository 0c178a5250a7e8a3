//! Regular expressions with the syntax of Go (RE2).
//!
//! Owns the differences between the crate `regex` and RE2 (<https://github.com/google/re2/wiki/Syntax>). In RE2,
//! character classes and word boundaries are ASCII, and `\Q…\E` is literal. A brace without a count and a bracket in a
//! class are literal too, and `\<` is no boundary. RE2 allows no double repetition operators and no counts above a
//! thousand. Patterns that differ in other features are rejected.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// The largest count of a repetition such as `a{1000}`, as in RE2.
const REPEAT_MAX: u32 = 1_000;
/// The named ASCII classes, such as `[:alpha:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];
/// Largest size of a compiled pattern in bytes: the default of the crate `regex`.
const SIZE_MAX: usize = 10 * 1024 * 1024;

/// Why a pattern does not compile, with Go's messages where they are known.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The compiled pattern would be too large.
    #[error("expression is too large")]
    TooLarge,
    /// The pattern has two repetition operators in a row, such as `a**`.
    #[error("invalid nested repetition operator: `{0}`")]
    Nested(String),
    /// A count is too large, or its maximum is below its minimum.
    #[error("invalid repeat count: `{0}`")]
    Count(String),
    #[error("invalid character class range: `[:{0}:]`")]
    Class(String),
    /// The crate `regex` rejects the pattern.
    #[error("{}", reason(.0))]
    Syntax(#[source] regex::Error),
}

/// The last line of the crate's error; the other lines show the translated pattern, which users do not know.
fn reason(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or_default().replacen("error: ", "", 1)
}

/// A pattern of a schema; error messages show it as the schema contains it.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    source: Box<str>,
}

impl Pattern {
    /// Compiles a pattern; the error says why the pattern is invalid.
    pub fn new(source: &str) -> Result<Self, Refused> {
        let regex = compile(&translate(source)?, SIZE_MAX)?;
        Ok(Self { regex, source: source.into() })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub fn as_str(&self) -> &str {
        &self.source
    }
}

/// Compiles a translated pattern to at most `size_max` bytes.
pub fn compile(pattern: &str, size_max: usize) -> Result<Regex, Refused> {
    RegexBuilder::new(pattern).size_limit(size_max).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Refused::TooLarge,
        error => Refused::Syntax(error),
    })
}

/// Translates a pattern from Go's syntax to the syntax of the crate `regex`.
pub fn translate(pattern: &str) -> Result<String, Refused> {
    let out = String::with_capacity(pattern.len());
    let mut reader = Reader { rest: pattern.chars().peekable(), out, last: 1, groups: vec![1] };
    // The last repetition, while nothing follows it.
    let mut repeated: Option<String> = None;
    while let Some(letter) = reader.rest.next() {
        let repetition = match letter {
            '*' | '+' | '?' => Some(letter.to_string()),
            '{' => reader.count()?,
            _ => None,
        };
        if let Some(mut found) = repetition {
            if reader.rest.next_if_eq(&'?').is_some() {
                found.push('?');
            }
            if let Some(before) = repeated {
                return Err(Refused::Nested(format!("{before}{found}")));
            }
            reader.out.push_str(&found);
            repeated = Some(found);
            continue;
        }
        repeated = None;
        reader.last = 1;
        match letter {
            '\\' => reader.escape(false),
            '[' => reader.class()?,
            '{' => reader.out.push_str(r"\{"),
            '(' => reader.open(),
            ')' => reader.close(),
            letter => reader.out.push(letter),
        }
    }
    Ok(reader.out)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
    /// Maximum number of repetitions of the last element, multiplied by the repetitions inside it.
    last: u32,
    /// The largest value of `last` in each open group; the first entry is for the whole pattern.
    groups: Vec<u32>,
}

impl Reader<'_> {
    fn open(&mut self) {
        self.out.push('(');
        // The question mark is no repetition of the bracket.
        self.out.extend(self.rest.next_if_eq(&'?'));
        self.groups.push(1);
    }

    fn close(&mut self) {
        self.out.push(')');
        if self.groups.len() > 1 {
            self.last = self.groups.pop().unwrap_or(1);
            self.raise();
        }
    }

    fn raise(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            *group = self.last.max(*group);
        }
    }

    /// Reads the count of a repetition after its `{`; `None` if the brace is literal.
    fn count(&mut self) -> Result<Option<String>, Refused> {
        let mut ahead = self.rest.clone();
        let Some((least, most)) = counts(&mut ahead) else { return Ok(None) };
        let shown = match &most {
            Some(most) if *most == least => format!("{{{least}}}"),
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        };
        // A number that does not fit 32 bits is above the largest count.
        let number = |digits: &String| digits.parse::<u32>().unwrap_or(u32::MAX);
        let (least, most) = (number(&least), most.as_ref().map(number));
        // A repeated element may contain repetitions.
        self.last = self.last.saturating_mul(most.unwrap_or(least).max(1));
        if least > REPEAT_MAX || self.last > REPEAT_MAX || most.is_some_and(|most| most < least) {
            return Err(Refused::Count(shown));
        }
        self.raise();
        self.rest = ahead;
        Ok(Some(shown))
    }

    fn escape(&mut self, in_class: bool) {
        let Some(letter) = self.rest.next() else { return self.out.push('\\') };
        // A nested class is a part of its parent, so this also holds between brackets.
        let known = match letter {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => r"[\t\n\f\r ]",
            'S' => r"[^\t\n\f\r ]",
            'b' if !in_class => r"(?-u:\b)",
            '<' => "<",
            '>' => ">",
            'Q' if !in_class => return self.plain(),
            letter => {
                self.out.push('\\');
                self.out.push(letter);
                if matches!(letter, 'p' | 'P' | 'x') && self.rest.peek() == Some(&'{') {
                    let named = std::iter::from_fn(|| self.rest.next_if(|letter| *letter != '}'));
                    self.out.push_str(&named.collect::<String>());
                    self.out.extend(self.rest.next());
                }
                return;
            }
        };
        self.out.push_str(known);
    }

    /// Copies the text up to `\E` as a literal.
    fn plain(&mut self) {
        let mut text = String::new();
        while let Some(letter) = self.rest.next() {
            if letter == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            text.push(letter);
        }
        self.out.push_str(&regex::escape(&text));
    }

    /// Translates a character class after its `[`.
    fn class(&mut self) -> Result<(), Refused> {
        self.out.push('[');
        self.out.extend(self.rest.next_if_eq(&'^'));
        let mut first = true;
        loop {
            match self.rest.peek().copied() {
                None => return Ok(()),
                Some(']') if !first => {
                    self.rest.next();
                    self.out.push(']');
                    return Ok(());
                }
                Some('[') if self.named()? => {}
                Some(_) => self.range(),
            }
            first = false;
        }
    }

    /// Translates a named class such as `[:alpha:]` in a character class; returns whether there was one.
    fn named(&mut self) -> Result<bool, Refused> {
        let mut ahead = self.rest.clone();
        ahead.next();
        if ahead.next_if_eq(&':').is_none() {
            return Ok(false);
        }
        let name: String = std::iter::from_fn(|| ahead.next_if(|c| c.is_ascii_alphabetic() || *c == '^')).collect();
        if ahead.next() != Some(':') || ahead.next() != Some(']') {
            return Ok(false);
        }
        if !CLASSES.contains(&name.strip_prefix('^').unwrap_or(&name)) {
            return Err(Refused::Class(name));
        }
        self.rest = ahead;
        self.out.push_str("[:");
        self.out.push_str(&name);
        self.out.push_str(":]");
        Ok(true)
    }

    /// Translates one character of a character class, or a range such as `a-z`.
    fn range(&mut self) {
        self.member();
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|next| *next != ']') {
            self.rest = ahead;
            self.out.push('-');
            self.member();
        }
    }

    /// Translates one character of a character class. Characters that are special only for the crate `regex` are
    /// escaped.
    fn member(&mut self) {
        match self.rest.next() {
            Some('\\') => self.escape(true),
            Some(letter @ ('[' | ']' | '&' | '~' | '-')) => self.out.extend(['\\', letter]),
            letter => self.out.extend(letter),
        }
    }
}

/// The minimum and maximum in `2}`, `2,}` or `2,3}`; a number must not begin with a zero.
fn counts(ahead: &mut Peekable<Chars<'_>>) -> Option<(String, Option<String>)> {
    let number = |ahead: &mut Peekable<Chars<'_>>| {
        let digits: String = std::iter::from_fn(|| ahead.next_if(char::is_ascii_digit)).collect();
        (digits == "0" || (!digits.is_empty() && !digits.starts_with('0'))).then_some(digits)
    };
    let least = number(ahead)?;
    let most = if ahead.next_if_eq(&',').is_none() {
        Some(least.clone())
    } else if ahead.peek() == Some(&'}') {
        None
    } else {
        Some(number(ahead)?)
    };
    (ahead.next()? == '}').then_some((least, most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_match(pattern: &str, text: &str) -> bool {
        let compiled = Pattern::new(pattern).unwrap_or_else(|why| panic!("{pattern}: {why}"));
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
        // The é is no word character.
        assert!(is_match(r"^\bcaf\b", "café") && !is_match(r"^\bcaf\b", "cafe"));
    }

    #[test]
    fn everything_else_stays() {
        for pattern in [
            r"^a\.b\\d$",
            r"\p{Greek}\PN\x{e9}",
            r"[a\]d]",
            "é+",
            r"\",
            "(?i)a*?(?P<n>b){2,3}?[[:alpha:]]",
            "[^a-z]",
            "(?:a|b)?c",
            "[a",
        ] {
            assert_eq!(translate(pattern).as_deref(), Ok(pattern));
        }
        assert!(is_match(r"^\\d$", r"\d"));
    }

    /// Tests patterns that the crate rejects or reads differently from Go.
    #[test]
    fn what_only_go_reads() {
        for (pattern, right, wrong) in [
            (r"^\${[a-z]+}$", "${a}", "$a"),
            ("^{{.*}}$", "{{ x }}", "{ x }"),
            ("^a{,2}$", "a{,2}", "aa"),
            ("^a{01}$", "a{01}", "a"),
            ("^a{1x}$", "a{1x}", "a"),
            ("^[[a]+$", "[a", "b"),
            ("^[^[]$", "a", "["),
            ("^[a&&b]+$", "a&b", "c"),
            ("^[a~~b]+$", "a~b", "c"),
            ("^[+--]+$", "+,-", "."),
            ("^[--0]+$", "-./0", "1"),
            ("^[]a]+$", "]a", "b"),
            ("^[^]a]+$", "b", "]"),
            (r"^[\d-z]+$", "1-z", "y"),
            (r"^\<a\>$", "<a>", "a"),
            (r"^[\<\>]+$", "<>", "a"),
            (r"^\Qa.b\E+$", "a.bb", "axb"),
            (r"^\Q[", "[", "a"),
            ("^[[:digit:]_]+$", "1_", "a"),
            ("^[[:]+$", "[:", "a"),
        ] {
            assert!(is_match(pattern, right), "{pattern} {right}");
            assert!(!is_match(pattern, wrong), "{pattern} {wrong}");
        }
    }

    #[test]
    fn what_go_refuses() {
        for (pattern, why) in [
            ("^.{0,1001}$", "invalid repeat count: `{0,1001}`"),
            ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{500}){3}", "invalid repeat count: `{3}`"),
            ("((a{10}b{2}){10}c){11}", "invalid repeat count: `{11}`"),
            ("a{600}(b|c{2,}){501}", "invalid repeat count: `{501}`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a++", "invalid nested repetition operator: `++`"),
            ("a+?{2}", "invalid nested repetition operator: `+?{2}`"),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap_err().to_string(), why);
        }
        for pattern in ["(", "[a", "(?=a)", "*", r"\1", r"\", "[z-a]", "a)"] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        for pattern in
            ["^.{0,1000}$", "((a{10}b{2}){10}c){10}", "a{600}(b|c{2,}){500}", "[[:^alpha:]]", "a{1000}b{1000}"]
        {
            assert!(Pattern::new(pattern).is_ok(), "{pattern}");
        }
    }

    /// Common patterns for names of objects compile to a small size.
    #[test]
    fn counted_classes_stay_small() {
        let pattern = r"^[\w.-]{1,253}$";
        assert_eq!(compile(pattern, 64 * 1024).map(|_| ()), Err(Refused::TooLarge));
        assert!(compile(&translate(pattern).unwrap(), 64 * 1024).is_ok());
    }

    proptest! {
        /// Any text compiles or is rejected without a panic, and a quoted text matches itself.
        #[test]
        fn never_panics(pattern in r"[\[\](){}*+?|^$\\.,&~:a-c0-2QEdwb-]{0,24}", text in "[a-z{}&~-]{1,10}") {
            if let Ok(translated) = translate(&pattern) {
                let _ = compile(&translated, 64 * 1024);
            }
            let plain = Pattern::new(&format!(r"^\Q{text}\E$")).map(|pattern| pattern.is_match(&text));
            prop_assert_eq!(plain, Ok(true));
            let class = Pattern::new(&format!("^[{text}q]$")).map(|pattern| pattern.is_match("q"));
            prop_assert!(class.is_err() || class == Ok(true));
        }
    }
}
