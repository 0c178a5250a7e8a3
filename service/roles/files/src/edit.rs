//! Replaces scalars in a YAML text; all other bytes of the text do not change.
//!
//! A replaced scalar keeps its style of quotes.

use std::ops::Range;

use granit_parser::ScalarStyle;

use crate::yaml::{Document, Id, Value};

/// A range of bytes in a YAML text, and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// The edit that replaces the scalar `id` of `text`; `None` for block scalars, which cannot be replaced in place.
pub fn scalar(text: &str, document: &Document, id: Id, new: &str) -> Option<Edit> {
    let node = document.node(id);
    let Value::Scalar(..) = &node.value else { return None };
    let written = text.get(node.range.clone())?;
    // Only the part between quotes: a tag may stand before them, and is no part of the node.
    let style = match written.as_bytes().first()? {
        b'\'' => ScalarStyle::SingleQuoted,
        b'"' => ScalarStyle::DoubleQuoted,
        b'|' | b'>' => return None,
        _ => ScalarStyle::Plain,
    };
    if written.contains('\n') {
        return None;
    }
    let trimmed = node.range.start..node.range.start + written.trim_end().len();
    Some(Edit { range: trimmed, text: quoted(new, style) })
}

fn quoted(new: &str, style: ScalarStyle) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte);
    let first = new.bytes().next();
    match style {
        ScalarStyle::Plain
            if new.bytes().all(is_plain)
                && first.is_some_and(|byte| byte.is_ascii_alphanumeric())
                && !new.ends_with(':') =>
        {
            new.to_owned()
        }
        ScalarStyle::SingleQuoted if !new.contains(['\'', '\n']) => format!("'{new}'"),
        // JSON is YAML.
        _ => serde_json::Value::from(new).to_string(),
    }
}

/// Returns `text` after all edits. If two edits overlap, only the first edit is used.
pub fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let (mut out, mut at) = (String::with_capacity(text.len() + 128 * edits.len()), 0);
    for edit in edits {
        if edit.range.start < at {
            continue;
        }
        out.push_str(&text[at..edit.range.start]);
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

    /// The text with a new scalar at `/a`.
    fn changed(text: &str) -> Option<String> {
        let document = &documents(text).unwrap()[0];
        let id = document.at(document.root(), "/a").unwrap();
        Some(apply(text, vec![scalar(text, document, id, "r/a:1@sha256:0")?]))
    }

    #[test]
    fn quotes_and_everything_around_stay() {
        for (before, after) in [
            ("a: x # why\nb: 1\n", "a: r/a:1@sha256:0 # why\nb: 1\n"),
            ("a:   'x'\n", "a:   'r/a:1@sha256:0'\n"),
            ("a: \"x\"", "a: \"r/a:1@sha256:0\""),
            ("{a: x, b: [1]} # flow", "{a: r/a:1@sha256:0, b: [1]} # flow"),
            ("{\"a\":\"x\"}", "{\"a\":\"r/a:1@sha256:0\"}"),
            ("a: !!str x\r\nb: ü\r\n", "a: !!str r/a:1@sha256:0\r\nb: ü\r\n"),
            ("# ü\nb: &n x\na: *n\n", "# ü\nb: &n r/a:1@sha256:0\na: *n\n"),
            ("a: x   \n---\nc: d", "a: r/a:1@sha256:0   \n---\nc: d"),
        ] {
            assert_eq!(changed(before).as_deref(), Some(after), "{before}");
        }
        assert_eq!(changed("a: >-\n  x\n"), None);
        assert_eq!(changed("a: |\n  x\n"), None);
        assert_eq!(changed("a: x\n  y\n"), None);
    }

    #[test]
    fn what_is_no_plain_text_is_quoted() {
        assert_eq!(quoted("a: b", ScalarStyle::Plain), "\"a: b\"");
        assert_eq!(quoted("a:", ScalarStyle::Plain), "\"a:\"");
        assert_eq!(quoted("it's", ScalarStyle::SingleQuoted), "\"it's\"");
        let twice = vec![Edit { range: 1..2, text: "x".into() }, Edit { range: 1..2, text: "y".into() }];
        assert_eq!(apply("abc", twice), "axc");
    }
}
