//! Writes YAML with comments. Text from other files is quoted.
//!
//! Owns the quoting of texts, so that any text stays a single value on its line. Does no I/O.

use std::fmt::Write as _;

use reports::outside::is_hidden;
use serde_json::Value;

/// Parses a Kubernetes object as YAML 1.1, as Kubernetes' own tools do: `0644` is an octal number.
pub(super) fn object(text: &str) -> Result<Value, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { legacy_octal_numbers: true })
}

/// A YAML scalar that every parser reads as exactly this string.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = text.chars().all(|char| char.is_ascii_alphanumeric() || "./_-=".contains(char))
        && text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '.' || char == '/');
    if is_plain && !is_word_of_yaml(text) {
        text.to_owned()
    } else if !text.contains(is_hidden) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        escaped(text)
    }
}

/// Whether any version of YAML reads the text as another type than a string.
fn is_word_of_yaml(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null" | ".inf" | ".nan")
        || text.parse::<f64>().is_ok()
}

/// Text in double quotes, with the escapes of JSON.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if !is_hidden(char) => out.push(char),
            // YAML has no surrogate pairs. Writing to a string cannot fail.
            char if u32::from(char) > 0xffff => {
                let _ = write!(out, "\\U{:08x}", u32::from(char));
            }
            char => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
        }
    }
    out.push('"');
    out
}

/// Text for a comment or a sentence: one line, without control characters.
pub(super) fn printable(text: &str) -> String {
    crate::shown::line(text).into_owned()
}

/// Writes a value as a block with this indentation; an empty mapping or list is written on one line.
pub(super) fn block(value: &Value, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(parts) if !parts.is_empty() => {
            for (key, part) in parts {
                let _ = write!(out, "{space}{}:", quoted(key));
                below(part, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "{space}-");
                below(item, indent, out);
            }
        }
        other => {
            let _ = writeln!(out, "{space}{}", scalar(other));
        }
    }
}

fn below(value: &Value, indent: usize, out: &mut String) {
    let is_empty =
        value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    if (value.is_object() || value.is_array()) && !is_empty {
        out.push('\n');
        block(value, indent + 2, out);
    } else {
        let _ = writeln!(out, " {}", scalar(value));
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Any quoted text is read back unchanged, and stays on its line.
    #[test]
    fn what_is_written_is_read_as_it_was() {
        let value = json!({
            "plain": "nginx:1.27", "yes": "no", "number": "12", "real": 1.5, "truth": true, "nothing": null, "empty": {}, "none": [],
            "lines": "a\nkey: value", "quote's": "it's \"so\"", "turned": "a\u{202e}b\u{1b}[2J", "tag": "a\u{e0041}b", "list": [{"a": [1, 2]}, "b", []],
            "- dash": "- x", "#": "# x", "": "", "${random 1..3}": "${random 1..3}", "sp ace": " x ", "e": "1e3", "back\\slash": "\\n\n",
        });
        let mut out = String::new();
        block(&value, 2, &mut out);
        assert!(!out.contains('\u{202e}') && !out.contains('\u{1b}'), "{out}");
        let back: Value = serde_saphyr::from_str(&out).unwrap_or_else(|error| panic!("{out}\n{error}"));
        assert_eq!(back, value, "{out}");
    }

    #[test]
    fn an_object_is_read_as_its_tools_read_it() {
        let read = object("defaultMode: 0777\nplain: 10\nzero: 0\ntext: '0777'\nis: yes\n").unwrap();
        assert_eq!((&read["defaultMode"], &read["plain"], &read["zero"]), (&json!(511), &json!(10), &json!(0)));
        assert_eq!(read["text"], "0777");
    }

    #[test]
    fn a_text_of_a_sentence_is_one_line() {
        assert_eq!(printable("a\nfaults: x\u{1b}[2J\u{202e}"), "a\\nfaults: x\\u001b[2J\\u202e");
    }
}
