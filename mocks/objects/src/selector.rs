//! Label and field selectors.
//!
//! Owns their grammar (Kubernetes documentation, "Labels and Selectors" and "Field Selectors") and matching against the
//! facts in the store, so that matching parses no JSON.

mod labels;

use mock_store::Version;

use super::catalogue::Resource;
use super::status::Failure;

pub use labels::{
    Error, Requirement, from_label_selector, matches as labels_match, parse as parse_labels, text as labels_text,
};

/// Both selectors of a request, ready to match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    field: Which,
    equal: bool,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Name,
    Namespace,
    Indexed(usize),
}

impl Selector {
    /// Parses the selectors of a request; unknown field labels are refused, as in the real server.
    pub fn parse(labels: Option<&str>, fields: Option<&str>, resource: &Resource) -> Result<Self, Failure> {
        let labels = match labels {
            Some(text) => {
                parse_labels(text).map_err(|why| Failure::bad_request(format!("unable to parse requirement: {why}")))?
            }
            None => Vec::new(),
        };
        let fields = fields.map_or_else(|| Ok(Vec::new()), |text| parse_fields(text, resource))?;
        Ok(Self { labels, fields })
    }

    /// Whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    #[inline]
    pub fn matches(&self, version: &Version) -> bool {
        labels_match(&self.labels, |key| version.label(key)) && self.fields.iter().all(|term| term.matches(version))
    }
}

impl FieldTerm {
    fn matches(&self, version: &Version) -> bool {
        let value = match self.field {
            Which::Name => &*version.identity.name,
            Which::Namespace => &*version.identity.namespace,
            Which::Indexed(index) => version.facts().fields.get(index).map_or("", |value| &**value),
        };
        (value == self.value) == self.equal
    }
}

fn parse_fields(text: &str, resource: &Resource) -> Result<Vec<FieldTerm>, Failure> {
    let mut terms = Vec::new();
    for term in split_escaped(text) {
        if term.is_empty() {
            continue;
        }
        let (label, equal, value) = if let Some((label, value)) = term.split_once("!=") {
            (label, false, value)
        } else if let Some((label, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (label, true, value)
        } else {
            let message = format!("invalid selector: '{term}'; can't understand '{term}'");
            return Err(Failure::bad_request(message));
        };
        let field = match label {
            "metadata.name" => Which::Name,
            "metadata.namespace" => Which::Namespace,
            other => Which::Indexed(
                resource
                    .fields
                    .iter()
                    .position(|field| &*field.label == other)
                    .ok_or_else(|| Failure::bad_request(format!("field label not supported: {other}")))?,
            ),
        };
        terms.push(FieldTerm { field, equal, value: unescape(value) });
    }
    Ok(terms)
}

/// Splits at commas that are not escaped with a backslash.
fn split_escaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c == '\\' { out.extend(chars.next()) } else { out.push(c) }
    }
    out
}
