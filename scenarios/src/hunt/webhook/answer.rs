//! Answers of a webhook in a form in which two of them can be compared.
//!
//! Owns which parts of an answer can never be equal twice, and which answers say that the webhook could not decide.
//! Does no I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use loadgen::admission::Reviewed;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// Maximum number of changed places of one answer that are compared.
const CHANGES_MAX: usize = 4096;
/// Longest shown text, in characters.
const TEXT_MAX: usize = 200;
/// Statuses of a denial that say that the webhook could not decide: too many requests, and errors of the server.
const OVERLOADED: i32 = 429;
const SERVER_ERROR: i32 = 500;

/// The changed places of an object, with their new values; null for a removed place.
pub(crate) type Changes = BTreeMap<String, Value>;

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Given(Given),
    /// The webhook failed in a way that the API server sees: no valid answer, or a denial with an error of the server.
    Failed(String),
}

/// A valid answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Given {
    pub(crate) allowed: bool,
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) changes: Changes,
    /// Why the patch cannot be applied.
    pub(crate) unusable: Option<String>,
}

impl Answer {
    /// The answer about this object.
    pub(crate) fn of(reviewed: Result<Reviewed, String>, object: &Value) -> Self {
        let reviewed = match reviewed {
            Ok(reviewed) => reviewed,
            Err(why) => return Self::Failed(why),
        };
        let Reviewed { allowed, code, message, warnings, after } = reviewed;
        if !allowed && (code == OVERLOADED || code >= SERVER_ERROR) {
            return Self::Failed(format!("denied with code {code}: {message}"));
        }
        let mut given = Given { allowed, code, message, warnings, ..Given::default() };
        match after {
            Some(Ok(after)) => differ(object, &after, "", &mut given.changes),
            Some(Err(why)) => given.unusable = Some(why),
            None => {}
        }
        Self::Given(given)
    }

    pub(crate) fn given(&self) -> Option<&Given> {
        match self {
            Self::Given(given) => Some(given),
            Self::Failed(_) => None,
        }
    }

    /// The answer in a few words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Failed(why) => format!("no valid answer ({})", shortened(why)),
            Self::Given(given) if !given.allowed => format!("denied: {}", shortened(&given.message)),
            Self::Given(given) => {
                let mut text = "allowed".to_owned();
                if let Some((place, value)) = given.changes.first_key_value() {
                    let more = given.changes.len() - 1;
                    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                    text = format!("{text}, with {} = {}{more}", place, shortened(&value.to_string()));
                }
                if let Some(warning) = given.warnings.first() {
                    text = format!("{text}, with the warning: {}", shortened(warning));
                }
                text
            }
        }
    }
}

/// The changed places between two values, as JSON pointers.
pub(crate) fn differ(before: &Value, after: &Value, at: &str, changes: &mut Changes) {
    if changes.len() >= CHANGES_MAX {
        return;
    }
    let below = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                match other.get(key) {
                    Some(new) => differ(value, new, &below(key), changes),
                    None => drop(changes.insert(below(key), Value::Null)),
                }
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                changes.insert(below(key), value.clone());
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for (number, new) in other.iter().enumerate() {
                match one.get(number) {
                    Some(value) => differ(value, new, &below(&number.to_string()), changes),
                    None => drop(changes.insert(below(&number.to_string()), new.clone())),
                }
            }
            for number in other.len()..one.len() {
                changes.insert(below(&number.to_string()), Value::Null);
            }
        }
        (one, other) if one != other => drop(changes.insert(at.to_owned(), other.clone())),
        _ => {}
    }
}

/// Values in texts that differ each time: times, uids, addresses in memory, durations.
static VOLATILE: LazyLock<Regex> = LazyLock::new(|| {
    let parts = [
        r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?( [+-]\d{4} \w+)?( m=[+-][\d.]+)?",
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
        r"0x[0-9a-fA-F]+",
        r"127\.0\.0\.1:\d+",
        r"\b\d+(\.\d+)?(ns|µs|us|ms|s)\b",
    ];
    let pattern = parts.join("|");
    RegexBuilder::new(&pattern).unicode(false).build().expect("a pattern of the source, which a test compiles")
});

/// A text without volatile values.
pub(crate) fn steady(text: &str) -> Cow<'_, str> {
    VOLATILE.replace_all(text, "…")
}

/// A text without volatile values, with its words in order: Go writes the errors of a map in any order.
pub(crate) fn plain(text: &str) -> Vec<String> {
    let text = steady(text);
    let mut words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || ",;[]()".contains(c))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.sort_unstable();
    words
}

/// A JSON pointer with `*` for the numbers of items.
pub(crate) fn general(pointer: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    pointer.split('/').map(|part| if is_number(part) { "*" } else { part }).collect::<Vec<_>>().join("/")
}

/// A text on one line, of limited length.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= TEXT_MAX {
        return line;
    }
    line.chars().take(TEXT_MAX).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reviewed(allowed: bool, code: i32) -> Reviewed {
        Reviewed { allowed, code, message: "why".to_owned(), warnings: Vec::new(), after: None }
    }

    #[test]
    fn a_patch_is_its_effect() {
        let before = json!({"spec": {"a": 1, "list": [1, 2], "gone": true}});
        let after = json!({"spec": {"a": 1, "list": [1, 3, 4], "new/key": {"x": 1}}});
        let given = Reviewed { after: Some(Ok(after)), ..reviewed(true, 0) };
        let answer = Answer::of(Ok(given), &before);
        let changes = &answer.given().unwrap().changes;
        let expected = json!({"/spec/gone": null, "/spec/list/1": 3, "/spec/list/2": 4, "/spec/new~1key": {"x": 1}});
        assert_eq!(json!(changes), expected);
        assert_eq!(general("/spec/list/1/x2"), "/spec/list/*/x2");
        assert_eq!(answer.describe(), "allowed, with /spec/gone = null and 3 more");
    }

    /// A denial with an error of the server says that the webhook could not decide.
    #[test]
    fn an_error_is_no_denial() {
        let of = |allowed, code| Answer::of(Ok(reviewed(allowed, code)), &Value::Null);
        assert!(of(false, 403).given().is_some_and(|given| !given.allowed));
        assert_eq!(of(false, 500), Answer::Failed("denied with code 500: why".to_owned()));
        assert!(of(false, 429).given().is_none());
        assert!(Answer::of(Err("timeout".to_owned()), &Value::Null).given().is_none());
    }

    #[test]
    fn volatile_words_and_their_order_are_no_difference() {
        let one = "[b: Required, a: Invalid] at 2026-01-05T08:00:00.123Z after 12.5ms, request 6c6f6e67-6861-4756-8c00-000000000001";
        let other =
            "[a: Invalid, b: Required] at 2027-01-05T09:00:00Z after 3ms, request 6c6f6e67-6861-4756-8c00-000000000002";
        assert_eq!(plain(one), plain(other));
        assert_ne!(plain("a is 3"), plain("a is 4"));
    }
}
