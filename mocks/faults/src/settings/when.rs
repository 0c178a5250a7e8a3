//! `when`: a beginning that depends on an event instead of a time.
//!
//! Owns the two kinds of events, the first hit of another fault and a write of the subject, with their checks and their
//! texts.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::{Error, On};

/// Maximum number of fields in a trigger.
const FIELDS_MAX: usize = 32;

/// The event with which a fault begins: write either `hit` or `write`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct When {
    /// The `id` of another fault; its first hit counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
    /// A write of the subject, such as `{verb: create, resource: pods}`. Only the mock API server sees writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WriteOf>,
    /// The number of the write among the matching writes since the subject started, counted from 1. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u64>,
    /// Whether the fault begins before the write is carried out, or after it is stored and before the subject gets the
    /// answer. Default: `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The delay from the event to the beginning of this fault. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plus: Option<Span>,
}

/// The writes that a trigger waits for. Every given key must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WriteOf {
    /// `create`, `update`, `patch` or `delete`; several as a list. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<On>,
    /// The resource: `pods`, `packages` or `packages.longhaul.dev`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The subresource, such as `status`; an empty text means no subresource. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// The name of the object. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that the write changes, such as `spec.replicas`. A field also stands for the fields below it. All of them
    /// must change. Default: any change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// A write of a client, as a trigger sees it.
#[derive(Debug, Clone, Copy)]
pub struct Wrote<'a> {
    pub user: &'a str,
    pub user_agent: &'a str,
    pub verb: On,
    /// The full name of the resource, such as `packages.longhaul.dev`.
    pub resource: &'a str,
    /// The subresource; empty if there is none.
    pub subresource: &'a str,
    /// The name of the object; empty if the server generates it.
    pub name: &'a str,
    /// The changed fields, such as `spec.replicas`; none for creations and deletions.
    pub fields: &'a [String],
}

/// Whether a fault begins before or after a write is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Before,
    #[default]
    After,
}

impl When {
    /// The first hit of another fault.
    pub fn hit(id: &str, plus: Option<Span>) -> Self {
        Self { hit: Some(id.to_owned()), plus, ..Self::default() }
    }

    /// The side of the write on which the fault begins.
    pub fn side(&self) -> Side {
        self.side.unwrap_or_default()
    }

    /// The number of the awaited write, counted from 1.
    pub fn occurrence(&self) -> u64 {
        self.occurrence.unwrap_or(1)
    }

    /// Refuses contradictory keys.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |key, given: &str, instead| Err(Error::Value { key, given: given.to_owned(), instead });
        let Some(write) = &self.write else {
            return match self {
                Self { hit: None, .. } => {
                    wrong("when", "without an event", "write `{hit: ID}` or `{write: {verb: create, resource: pods}}`")
                }
                Self { occurrence: Some(_), .. } => wrong("occurrence", "set beside `hit`", "only writes are counted"),
                Self { side: Some(_), .. } => wrong("side", "set beside `hit`", "only writes have two sides"),
                _ => Ok(()),
            };
        };
        if self.hit.is_some() {
            return wrong("when", "both `hit` and `write`", "keep one");
        }
        if self.occurrence == Some(0) {
            return wrong("occurrence", "0", "writes are counted from 1");
        }
        if write.verb.is_some_and(On::reads) {
            return wrong("verb", "no write", "write `create`, `update`, `patch` or `delete`");
        }
        if write.fields.len() > FIELDS_MAX || write.fields.iter().any(String::is_empty) {
            return wrong("fields", "empty or too long", "write 1 to 32 fields, for example `[spec.replicas]`");
        }
        Ok(())
    }

    /// The event as text, for example `after the 2nd create of pods`.
    pub fn describe(&self) -> String {
        let mut text = self.plus.map_or(String::new(), |plus| format!("{plus} "));
        if let Some(hit) = &self.hit {
            let _ = write!(text, "after the first hit of {hit}");
            return text;
        }
        let write = self.write.clone().unwrap_or_default();
        let side = match self.side() {
            Side::Before if self.plus.is_none() => "before",
            Side::Before | Side::After => "after",
        };
        let (occurrence, verb) = (super::Every(self.occurrence()), write.verb.map_or("write".to_owned(), On::text));
        let _ = write!(text, "{side} the {occurrence} {verb} of {}", write.resource.as_deref().unwrap_or("anything"));
        if let Some(subresource) = write.subresource.filter(|subresource| !subresource.is_empty()) {
            let _ = write!(text, "/{subresource}");
        }
        if let Some(name) = write.name {
            let _ = write!(text, " `{name}`");
        }
        if !write.fields.is_empty() {
            let _ = write!(text, " that changes {}", write.fields.join(" and "));
        }
        text
    }
}

impl WriteOf {
    /// Whether a write has all given properties.
    pub fn matches(&self, wrote: &Wrote<'_>) -> bool {
        let plural = wrote.resource.split_once('.').map_or(wrote.resource, |(plural, _)| plural);
        let lies = |wanted: &String| wrote.fields.iter().any(|field| is_below(field, wanted));
        self.verb.is_none_or(|verb| verb.has(wrote.verb))
            && self.resource.as_deref().is_none_or(|wanted| wanted == wrote.resource || wanted == plural)
            && self.subresource.as_deref().is_none_or(|wanted| wanted == wrote.subresource)
            && self.name.as_deref().is_none_or(|wanted| wanted == wrote.name)
            && self.fields.iter().all(lies)
    }
}

/// Whether a field is `wanted` or lies below it.
fn is_below(field: &str, wanted: &str) -> bool {
    field.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Fault;
    use super::*;

    fn when(keys: Value) -> When {
        serde_json::from_value(keys).unwrap()
    }

    fn wrote<'a>(verb: On, resource: &'a str, fields: &'a [String]) -> Wrote<'a> {
        Wrote { user: "jane", user_agent: "", verb, resource, subresource: "status", name: "a", fields }
    }

    /// Every given key must match, and a field stands for the fields below it.
    #[test]
    fn a_write_must_have_all_properties() {
        let fields = ["spec.replicas".to_owned(), "status.conditions".to_owned()];
        let is = |keys: &Value| {
            when(json!({"write": keys})).write.unwrap().matches(&wrote(On::Update, "pods.example.com", &fields))
        };
        for keys in [
            json!({}),
            json!({"verb": ["update", "patch"], "resource": "pods"}),
            json!({"resource": "pods.example.com", "subresource": "status", "name": "a"}),
            json!({"fields": ["spec", "status.conditions"]}),
        ] {
            assert!(is(&keys), "{keys}");
        }
        for keys in [
            json!({"verb": "create"}),
            json!({"resource": "po"}),
            json!({"subresource": ""}),
            json!({"name": "b"}),
            json!({"fields": ["spec.replica"]}),
            json!({"fields": ["spec", "metadata"]}),
        ] {
            assert!(!is(&keys), "{keys}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let error = |when: Value| {
            let fault: Fault = serde_json::from_value(json!({"name": "watch-reset", "when": when})).unwrap();
            fault.check().unwrap_err().to_string()
        };
        assert!(error(json!({"plus": "1s"})).contains("write `{hit: ID}` or"));
        assert!(error(json!({"hit": "a", "write": {}})).contains("keep one"));
        assert!(error(json!({"hit": "a", "occurrence": 2})).contains("only writes are counted"));
        assert!(error(json!({"hit": "a", "side": "before"})).contains("only writes have two sides"));
        assert!(error(json!({"write": {}, "occurrence": 0})).contains("counted from 1"));
        assert!(error(json!({"write": {"verb": "list"}})).contains("write `create`"));
        assert!(error(json!({"write": {"fields": [""]}})).contains("spec.replicas"));
    }

    #[test]
    fn an_event_is_described() {
        let write = json!({"verb": "update", "resource": "caches", "subresource": "status", "name": "a", "fields": ["status.ready"]});
        let keys = json!({"write": write, "occurrence": 2, "side": "before"});
        let wanted = "before the 2nd update of caches/status `a` that changes status.ready";
        assert_eq!(when(keys).describe(), wanted);
        assert_eq!(when(json!({"write": {}})).describe(), "after the 1st write of anything");
        assert_eq!(when(json!({"hit": "x", "plus": "2s"})).describe(), "2s after the first hit of x");
    }
}
