//! Converts a body in JSON or YAML to JSON text, as leniently as Go.

use std::borrow::Cow;

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options};

/// The JSON text of a body. As in kube-apiserver, a body that does not begin like a JSON object is read as YAML.
pub(crate) fn json_of(body: &[u8]) -> Result<Cow<'_, str>, String> {
    // Invalid UTF-8 becomes U+FFFD in Go's strings.
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('{') {
        return Ok(if text.contains("\\u") { Cow::Owned(paired(&text)) } else { text });
    }
    let mut options = Options::default();
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    let value: Value = serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?;
    if value.is_object() { Ok(Cow::Owned(value.to_string())) } else { Err("it is no object".to_owned()) }
}

/// Replaces each unpaired surrogate in a JSON text by U+FFFD.
fn paired(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match surrogate(rest) {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(surrogate), Some(0xDC00..=0xDFFF)) => {
                out.push_str(&rest[..12]);
                12
            }
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                6
            }
            _ => {
                let taken = rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at);
                out.push_str(&rest[..taken]);
                taken
            }
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// The code unit of a `\u` escape at the beginning of a text.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}
