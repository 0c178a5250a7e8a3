//! The subset of `JSONPath` that printer columns use: `.a.b`, `['a.b']`, `\.` in a name, `[0]`, and
//! `[?(@.type=="Ready")]`.

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Where { field: String, equals: String },
}

/// The first value at `path`; `None` if there is no value or the path is not supported.
pub(super) fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path)?.iter().try_fold(value, |at, step| match step {
        Step::Field(name) => at.get(name),
        Step::Index(index) => at.get(index),
        Step::Where { field, equals } => {
            let wanted = |item: &&Value| item.get(field).is_some_and(|value| value.as_str() == Some(equals));
            at.as_array()?.iter().find(wanted)
        }
    })
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            steps.push(bracket(&inner[..end])?);
            rest = &inner[end + 1..];
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (field, after) = field(name);
            if !field.is_empty() {
                steps.push(Step::Field(field));
            } else if !after.starts_with('[') && !after.is_empty() {
                return None;
            }
            rest = after;
        }
    }
    Some(steps)
}

/// The position of the closing bracket, ignoring brackets in quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (None, ']') => return Some(index),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let unquoted = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
    if let Some(filter) = inner.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (field, equals) = filter.split_once("==")?;
        let field = field.trim().strip_prefix("@.")?;
        return Some(Step::Where { field: field.to_owned(), equals: unquoted(equals) });
    }
    if inner.starts_with(['\'', '"']) {
        return Some(Step::Field(unquoted(inner)));
    }
    if inner == "*" {
        return Some(Step::Index(0));
    }
    inner.parse().ok().map(Step::Index)
}

fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, &text[index..]),
            _ => name.push(c),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_printer_columns_use() {
        let value = json!({
            "spec": {"image": "x", "list": [{"a": 1}, {"a": 2}]},
            "metadata": {"annotations": {"example.com/a": "b"}},
            "status": {"conditions": [{"type": "Other", "status": "No"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.image", json!("x")),
            ("{.spec.image}", json!("x")),
            (".spec.list[1].a", json!(2)),
            (r".metadata.annotations.example\.com/a", json!("b")),
            (".metadata.annotations['example.com/a']", json!("b")),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
        ] {
            assert_eq!(find(&value, path), Some(&expected), "{path}");
        }
        assert_eq!(find(&value, ".spec.gone"), None);
    }

    proptest! {
        /// A lookup with any text as its path ends without a panic.
        #[test]
        fn never_panics(path in "\\PC{0,40}") {
            let _ = find(&json!({"a": [1]}), &path);
        }
    }
}
