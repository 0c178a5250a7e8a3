//! Texts that match a pattern in a schema. Pure: the same pattern gives the same texts.
//!
//! A text is a guess, which the regular expression checks; a wrong guess is discarded. The API server reads a pattern
//! by Go's rules. The regular expressions of Rust's crate `regex` have the same rules, except for rare ones that
//! schemas do not use.

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// The number of different texts for one pattern, so that updates change the field.
const TEXTS: usize = 4;
/// Maximum number of choices of characters and alternatives that are tried.
const CHOICES: usize = 16;
/// Maximum number of additional repetitions in a text, which make it long enough.
const ROUNDS: u32 = 64;
/// Maximum number of characters of a text; a longer text is not readable in a report.
const CHARACTERS: usize = 1024;
/// Maximum memory of a compiled expression in bytes, because the pattern comes from outside.
const EXPRESSION_BYTES: usize = 1 << 20;

/// Up to [`TEXTS`] different matching texts of `least` to `most` characters; empty if no guess matches.
pub(super) fn matching(pattern: &str, least: usize, most: usize) -> Vec<String> {
    let compiled = regex::RegexBuilder::new(pattern).size_limit(EXPRESSION_BYTES).build();
    let (Ok(regex), Ok(hir)) = (compiled, regex_syntax::parse(pattern)) else { return Vec::new() };
    let mut found = Vec::new();
    for choice in 0..CHOICES {
        // The shortest of each choice: with more rounds the same text only becomes longer. An empty text comes last,
        // because it often means that a field is absent.
        let shortest = |may_be_empty: bool| {
            let guesses = (0..=ROUNDS).filter_map(|rounds| guess(&hir, choice, rounds));
            let mut guesses = guesses.filter(|text| may_be_empty || !text.is_empty());
            guesses.find_map(|text| fit(text, &regex, least, most))
        };
        let fitting = shortest(false).or_else(|| shortest(true));
        if let Some(text) = fitting.filter(|text| !found.contains(text)) {
            found.push(text);
        }
        if found.len() == TEXTS {
            break;
        }
    }
    found
}

/// The text, made longer if it is too short and the pattern allows that; `None` if it does not match.
fn fit(mut text: String, regex: &Regex, least: usize, most: usize) -> Option<String> {
    let length = text.chars().count();
    text.extend(std::iter::repeat_n('a', least.min(CHARACTERS).saturating_sub(length)));
    let length = text.chars().count();
    ((least..=most).contains(&length) && regex.is_match(&text)).then_some(text)
}

fn guess(hir: &Hir, choice: usize, rounds: u32) -> Option<String> {
    let mut text = String::new();
    write(hir, choice, rounds, &mut text).then_some(text)
}

/// Writes a matching text; false if no text matches or the text is too long.
fn write(hir: &Hir, choice: usize, rounds: u32, text: &mut String) -> bool {
    match hir.kind() {
        // Assertions on the start and the end are checked when the text is matched.
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(literal) => {
                text.push_str(literal);
                text.len() <= CHARACTERS
            }
            Err(_) => false,
        },
        HirKind::Class(class) => match character(class, choice.wrapping_add(text.len())) {
            Some(char) => {
                text.push(char);
                true
            }
            None => false,
        },
        HirKind::Repetition(repetition) => repeat(repetition, choice, rounds, text),
        HirKind::Capture(capture) => write(&capture.sub, choice, rounds, text),
        HirKind::Concat(parts) => parts.iter().all(|part| write(part, choice, rounds, text)),
        HirKind::Alternation(branches) => {
            branches.get(choice % branches.len().max(1)).is_some_and(|branch| write(branch, choice, rounds, text))
        }
    }
}

fn repeat(repetition: &Repetition, choice: usize, rounds: u32, text: &mut String) -> bool {
    let times = repetition.min.saturating_add(rounds).min(repetition.max.unwrap_or(u32::MAX));
    for _ in 0..times {
        let before = text.len();
        if !write(&repetition.sub, choice, rounds, text) || text.len() > CHARACTERS {
            return false;
        }
        // A repetition that writes nothing stays empty with any number of rounds.
        if text.len() == before {
            break;
        }
    }
    true
}

/// A character of a class; a letter or a digit if the class contains one.
fn character(class: &Class, choice: usize) -> Option<char> {
    let has = |char: char| match class {
        Class::Unicode(class) => class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&char)),
        Class::Bytes(class) => u8::try_from(char)
            .is_ok_and(|byte| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte))),
    };
    let mut plain = ('a'..='z').chain('A'..='Z').chain('0'..='9').filter(|char| has(*char));
    let count = plain.clone().count();
    if count > 0 {
        return plain.nth(choice % count);
    }
    let printed = (' '..='~').find(|char| has(*char));
    printed.or_else(|| match class {
        Class::Unicode(class) => class.ranges().first().map(regex_syntax::hir::ClassUnicodeRange::start),
        Class::Bytes(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each returned text matches its pattern and has the required length. The tested patterns come from definitions in
    /// use.
    #[test]
    fn each_text_matches_and_has_its_length() {
        for (pattern, least, most) in [
            ("^a+$", 0, 100),
            ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 1, 63),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", 10, 253),
            (
                r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
                0,
                64,
            ),
            ("^([0-9]+(s|m|h))+$", 3, 20),
            (r"^https?://.+", 0, 2048),
            (r"^sha256:[a-f0-9]{64}$", 71, 71),
            (r"^([A-Za-z_.][A-Za-z_.0-9-]*)?$", 1, 100),
            ("foo", 8, 8),
            (r"^\d{4}-\d{2}-\d{2}$", 0, 10),
            ("^(Always|Never|IfNotPresent)$", 0, 100),
            (r"^\S+$", 5, 5),
            ("^[^/]+/[^/]+$", 0, 100),
        ] {
            let texts = matching(pattern, least, most);
            let regex = Regex::new(pattern).unwrap();
            assert!(!texts.is_empty(), "{pattern}");
            for text in &texts {
                assert!(regex.is_match(text), "{text} of {pattern}");
                assert!((least..=most).contains(&text.chars().count()), "{text} of {pattern}");
            }
            assert_eq!(texts, matching(pattern, least, most));
        }
        assert_eq!(matching("^(Always|Never|IfNotPresent)$", 0, 9), ["Always", "Never"]);
        assert!(matching("^[a-z]{8}$", 8, 8).len() > 1, "updates have something to change");
        assert_eq!(matching("^[^/]*$", 0, 100), ["a", "b", "c", "d"], "a text that is not empty comes first");
        assert_eq!((matching("^$", 0, 9), matching("^a*$", 0, 0)), (vec![String::new()], vec![String::new()]));
    }

    #[test]
    fn what_nothing_matches_or_nobody_can_read_has_no_text() {
        for (pattern, least, most) in [
            ("^a{5}$", 0, 4),
            (r"a\bb", 0, 9),
            ("(", 0, 9),
            (r"^(?=a)a$", 0, 9),
            ("^a{2000}$", 0, 4000),
            ("[a&&b]", 0, 9),
        ] {
            assert!(matching(pattern, least, most).is_empty(), "{pattern}");
        }
    }
}
