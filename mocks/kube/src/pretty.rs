//! Indents JSON for people.
//!
//! Owns the decision whether JSON is indented (kube-apiserver's `isPrettyPrint`), and the format (Go's
//! `json.MarshalIndent`). The code indents a stream of bytes, so that a long list need not be in memory and keys keep
//! their order. Watches are never indented.

use super::path::pairs;

/// Programs whose output people read, by the beginning of their user agents.
const FOR_PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Whether the answer to a request is indented JSON.
pub(crate) fn is_wanted(query: &str, user_agent: &str) -> bool {
    // The parameter is rare, so the query is parsed only if it contains the name.
    if query.contains("pretty")
        && let Some((_, said)) = pairs(query).into_iter().find(|(key, said)| key == "pretty" && !said.is_empty())
    {
        return matches!(said.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    FOR_PEOPLE.iter().any(|program| user_agent.starts_with(program))
}

/// Indents JSON that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// Whether a bracket was opened and the content between the brackets has not begun.
    opened: bool,
}

impl Indenter {
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len() * 2);
        for &byte in piece {
            if self.in_text {
                out.push(byte);
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => {}
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if !std::mem::take(&mut self.opened) {
                        self.line(&mut out);
                    }
                    out.push(byte);
                }
                b',' => {
                    out.push(byte);
                    self.line(&mut out);
                }
                b':' => out.extend_from_slice(b": "),
                _ => {
                    if std::mem::take(&mut self.opened) {
                        self.line(&mut out);
                    }
                    out.push(byte);
                    self.in_text = byte == b'"';
                    if matches!(byte, b'{' | b'[') {
                        self.depth += 1;
                        self.opened = true;
                    }
                }
            }
        }
        out
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth, b' ');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn browsers_and_curl_get_it_and_whoever_asks() {
        assert!(is_wanted("", "curl/8.0") && is_wanted("", "Wget/1") && is_wanted("", "Mozilla/5.0 (X11)"));
        assert!(!is_wanted("", "kubectl/v1.33") && !is_wanted("pretty=false", "curl/8.0"));
        assert!(is_wanted("limit=1&pretty=true", "x") && is_wanted("pretty=1", "x"));
        assert!(is_wanted("pretty=", "curl/8.0") && !is_wanted("fieldManager=pretty", "x"));
    }

    proptest! {
        /// The output equals that of `serde_json`, however the input is split into pieces.
        #[test]
        fn it_is_what_the_library_makes(text in "\\PC{0,9}[\\\\\"{}:,]{0,6}", list in prop::collection::vec(any::<i8>(), 0..3), cut in 0_usize..40) {
            let value = json!({"a": text, "b": list, "c": {"d": {}, "e": [null, true, {"f": 1.5}]}, "t": [text]});
            let bytes = value.to_string().into_bytes();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let mut indenter = Indenter::default();
            let made = [indenter.push(one), indenter.push(two)].concat();
            prop_assert_eq!(String::from_utf8(made).unwrap(), serde_json::to_string_pretty::<Value>(&value).unwrap());
        }
    }
}
