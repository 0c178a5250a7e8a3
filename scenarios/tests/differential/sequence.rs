//! Sequences of requests, written so that the same sequence can be sent to any server.
//!
//! Placeholders stand for values that only a server knows; this module replaces placeholders by values. This module
//! sends nothing.
//!
//! The placeholder `{ns}` is the sequence's own namespace. `{rv:Kind/name}` is the newest revision of an object in any
//! answer, `{old:Kind/name}` the first revision, and `{uid:Kind/name}` the uid. `{name:Kind}` is the last name that the
//! server generated for an object of the kind. `{list}` is the revision of the last list, and `{continue}` the page
//! token of the last list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Requests that are sent in order over one connection, in a namespace that only this sequence uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The tested behaviour, for messages about the sequence.
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// An HTTP method. `WATCH` is a GET that stays open and is read after all other requests were answered. `UNTIL 410`
    /// and `UNTIL 200` are a GET that is repeated until it gets this status.
    #[serde(rename = "do")]
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A request body that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The object whose creation ends a watch. If this is `None`, the watch must end by itself (`timeoutSeconds`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Value>,
    /// A bearer token to send instead of the valid token. If this text is empty, no token is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Revisions, uids and names from the answers so far.
#[derive(Debug, Default)]
pub struct Learned {
    values: BTreeMap<String, String>,
}

impl Step {
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        Self { method: method.to_owned(), path: path.into(), ..Self::default() }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new("POST", path) }
    }

    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new("PUT", path) }
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path)
    }

    /// A patch request. `form` is the middle of its media type: `merge-patch`, `json-patch`, `strategic-merge-patch`.
    pub fn patch(path: impl Into<String>, form: &str, body: Value) -> Self {
        let content = Some(format!("application/{form}+json"));
        Self { body: Some(body), content, ..Self::new("PATCH", path) }
    }

    pub fn apply(path: impl Into<String>, body: Value) -> Self {
        let content = Some("application/apply-patch+yaml".to_owned());
        Self { body: Some(body), content, ..Self::new("PATCH", path) }
    }

    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub fn with_text(mut self, content: &str, text: &str) -> Self {
        self.content = Some(content.to_owned());
        self.text = Some(text.to_owned());
        self
    }

    pub fn accepting(mut self, accept: &str) -> Self {
        self.accept = Some(accept.to_owned());
        self
    }

    /// The status until which a GET is repeated.
    pub fn until(&self) -> Option<u16> {
        self.method.strip_prefix("UNTIL ").and_then(|status| status.parse().ok())
    }

    pub fn is_watch(&self) -> bool {
        self.method == "WATCH"
    }

    /// Whether this request was removed while the sequence was shrunk.
    pub fn is_nothing(&self) -> bool {
        self.method.is_empty()
    }
}

impl Learned {
    pub fn new(namespace: &str) -> Self {
        Self { values: BTreeMap::from([("ns".to_owned(), namespace.to_owned())]) }
    }

    /// Remembers revisions, uids and names in an answer.
    pub fn learn(&mut self, answer: &Value) {
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        // An expired list has a token for continuing without its snapshot.
        if text("/kind") == "Status" && !text("/metadata/continue").is_empty() {
            self.values.insert("continue".to_owned(), text("/metadata/continue"));
        }
        let (kind, name, revision) = (text("/kind"), text("/metadata/name"), text("/metadata/resourceVersion"));
        if kind.ends_with("List") {
            self.values.insert("list".to_owned(), revision);
            match text("/metadata/continue") {
                token if token.is_empty() => self.values.remove("continue"),
                token => self.values.insert("continue".to_owned(), token),
            };
            return;
        }
        if name.is_empty() || revision.is_empty() {
            return;
        }
        // The names of namespaces begin with the sequence's own; steps refer to the rest.
        let short = name.strip_prefix(&self.values["ns"]).unwrap_or(&name);
        let key = format!("{kind}/{short}");
        self.values.entry(format!("old:{key}")).or_insert_with(|| revision.clone());
        self.values.insert(format!("rv:{key}"), revision);
        self.values.insert(format!("uid:{key}"), text("/metadata/uid"));
        if !text("/metadata/generateName").is_empty() {
            self.values.insert(format!("name:{kind}"), name);
        }
    }

    /// Replaces the placeholders in a text. The error is a placeholder for which no answer had a value.
    pub fn fill(&self, template: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let word = from.find('}').map_or("", |end| &from[1..end]);
            let known = ["ns", "list", "continue"].contains(&word)
                || ["rv:", "old:", "uid:", "name:"].iter().any(|prefix| word.starts_with(prefix));
            if known {
                filled.push_str(self.values.get(word).ok_or_else(|| word.to_owned())?);
                rest = &from[word.len() + 2..];
            } else {
                filled.push('{');
                rest = &from[1..];
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}
