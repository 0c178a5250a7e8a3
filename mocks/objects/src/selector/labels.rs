//! The grammar of label selectors, as text (`a=b,c in (d,e),!f`) and as a `LabelSelector` object.
//!
//! Owns parsing and matching; callers pass the values of labels.

use mock_cel::formats::is_name;
use serde_json::Value;

/// One condition about one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

/// Why a selector is invalid, with the real server's messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text between two commas or after the last comma is empty.
    #[error("found ',', expected: identifier after ','")]
    NoTerm,
    /// A closing bracket has no opening bracket.
    #[error("found ')', expected: identifier")]
    NotOpened,
    /// An opening bracket has no closing bracket.
    #[error("found '', expected: ')'")]
    NotClosed,
    #[error("found '{0}', expected: in, notin, =, ==, !=, gt, lt")]
    NoOperator(String),
    /// `in` or `notin` has no list of values.
    #[error("found '{0}', expected: '('")]
    NoList(String),
    /// The value of a numeric comparison is not a number.
    #[error("{0:?} is not an integer")]
    NotANumber(String),
    #[error("<nil>: Invalid value: \"{0}\": name part must consist of alphanumeric characters, '-', '_' or '.'")]
    Key(String),
    #[error(
        "values: Invalid value: \"{0}\": a valid label must be an empty string or consist of alphanumeric characters, \
         '-', '_' or '.'"
    )]
    Value(String),
    #[error("the value of {0} is not a string")]
    NotAText(String),
    #[error("\"{0}\" is not a valid label selector operator")]
    Operator(String),
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            // A missing label is "not in" as well.
            Test::NotIn(values) => !value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Test::Above(limit) => number(value).is_some_and(|value| value > *limit),
            Test::Below(limit) => number(value).is_some_and(|value| value < *limit),
        }
    }
}

pub fn matches<'a>(requirements: &[Requirement], label: impl Fn(&str) -> Option<&'a str>) -> bool {
    requirements.iter().all(|requirement| requirement.holds(label(&requirement.key)))
}

/// The text of a selector object, which is a `LabelSelector` or a plain map, sorted by keys.
pub fn text(selector: &Value) -> String {
    let selector = match selector {
        Value::Object(map) if !map.contains_key("matchLabels") && !map.contains_key("matchExpressions") => {
            &serde_json::json!({"matchLabels": map})
        }
        selector => selector,
    };
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let term = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    // Sorted by key alone, as in the real server: two terms with one key keep their order.
    terms.sort_by(|(left, _), (right, _)| left.cmp(right));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}

pub fn parse(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut requirements = Vec::new();
    for term in split_outside_parentheses(text)? {
        let term = term.trim();
        if term.is_empty() {
            if text.trim().is_empty() {
                continue;
            }
            return Err(Error::NoTerm);
        }
        requirements.push(requirement(term)?);
    }
    Ok(requirements)
}

/// Reads a `LabelSelector` object: `matchLabels` and `matchExpressions`. An absent or empty selector selects
/// everything.
pub fn from_label_selector(selector: &Value) -> Result<Vec<Requirement>, Error> {
    let mut requirements = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| Error::NotAText(key.clone()))?;
        requirements.push(Requirement { key: key.clone(), test: Test::In(vec![value.to_owned()]) });
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default().to_owned();
        let values = expression["values"].as_array().into_iter().flatten();
        let values: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
        let test = match expression["operator"].as_str().unwrap_or_default() {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::Absent,
            other => return Err(Error::Operator(other.to_owned())),
        };
        requirements.push(Requirement { key, test });
    }
    Ok(requirements)
}

fn requirement(term: &str) -> Result<Requirement, Error> {
    if let Some(key) = term.strip_prefix('!') {
        return Ok(Requirement { key: checked_key(key)?, test: Test::Absent });
    }
    for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = term.split_once(sign) {
            let values = vec![checked_value(value)?];
            let test = if equal { Test::In(values) } else { Test::NotIn(values) };
            return Ok(Requirement { key: checked_key(key)?, test });
        }
    }
    for sign in ['>', '<'] {
        if let Some((key, value)) = term.split_once(sign) {
            let limit = value.trim().parse().map_err(|_| Error::NotANumber(value.to_owned()))?;
            let test = if sign == '>' { Test::Above(limit) } else { Test::Below(limit) };
            return Ok(Requirement { key: checked_key(key)?, test });
        }
    }
    let mut words = term.splitn(2, char::is_whitespace);
    let key = words.next().unwrap_or_default();
    let Some(rest) = words.next() else {
        return Ok(Requirement { key: checked_key(term)?, test: Test::Exists });
    };
    let rest = rest.trim_start();
    let (negated, list) = match (rest.strip_prefix("notin"), rest.strip_prefix("in")) {
        (Some(list), _) => (true, list),
        (None, Some(list)) => (false, list),
        (None, None) => return Err(Error::NoOperator(rest.to_owned())),
    };
    let list = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')'));
    let list = list.ok_or_else(|| Error::NoList(rest.to_owned()))?;
    let values = list.split(',').map(checked_value).collect::<Result<Vec<_>, _>>()?;
    Ok(Requirement { key: checked_key(key)?, test: if negated { Test::NotIn(values) } else { Test::In(values) } })
}

fn split_outside_parentheses(text: &str) -> Result<Vec<&str>, Error> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0_usize, 0_usize);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1).ok_or(Error::NotOpened)?,
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err(Error::NotClosed);
    }
    parts.push(&text[start..]);
    Ok(parts)
}

/// Checks a label key: an optional DNS prefix and a slash, then up to 63 characters.
fn checked_key(key: &str) -> Result<String, Error> {
    let key = key.trim();
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    if name.is_empty() || name.len() > 63 || !is_name(name) {
        return Err(Error::Key(key.to_owned()));
    }
    Ok(key.to_owned())
}

fn checked_value(value: &str) -> Result<String, Error> {
    let value = value.trim();
    if value.len() > 63 || !(value.is_empty() || is_name(value)) {
        return Err(Error::Value(value.to_owned()));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &'static str)]) -> bool {
        let requirements = parse(selector).unwrap();
        matches(&requirements, |key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
    }

    #[test]
    fn every_operator() {
        let labels = [("app", "web"), ("example.com/tier", "front"), ("n", "5"), ("empty", "")];
        for yes in "|app=web|app==web|app!=db|app|!gone|app in (web, db)|app notin (db)|gone notin (a)|gone!=x|\
            example.com/tier=front,app|n>4|n<6|empty=|empty in ()"
            .split('|')
        {
            assert!(selects(yes, &labels), "{yes}");
        }
        for no in ["app=db", "app!=web", "gone", "!app", "app in (db)", "app notin (web)", "gone=", "n>5", "app>1"] {
            assert!(!selects(no, &labels), "{no}");
        }
        for wrong in ["a,", "a in b", "a in (b", "=b", "a b", "a=b=c", "-a", "a=b c", "n>x", ")"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Parsing any text ends with a value or an error.
        #[test]
        fn parsing_never_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
