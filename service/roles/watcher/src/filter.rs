//! Filters, which decide whether an action handles an event.
//!
//! A filter checks the object in the event: its state after the change, or the last known state of a deleted object. If
//! a change makes an object stop matching, the action handles neither this event nor later events, until the object
//! matches again. With `labelSelector`, which the API server applies, such a change counts as a deletion.

use std::collections::BTreeMap;

use regex::Regex;
use service_watch::{Change, Object};

use crate::meta::{Meta, Wanted};

/// The kinds of changes that an action handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct On {
    /// New objects, including those that exist when the process starts.
    pub created: bool,
    pub updated: bool,
    pub deleted: bool,
}

/// A regular expression that can be compared. Two expressions are equal if their texts are equal.
#[derive(Debug, Clone)]
pub struct Pattern(pub Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// A filter of events. A condition that is not set matches every event.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub on: On,
    /// The namespaces of matching objects; an empty list means all namespaces.
    pub namespaces: Vec<String>,
    /// A regular expression that must match a part of the namespace, or the whole namespace if it has anchors.
    pub namespace_regex: Option<Pattern>,
    pub name: Option<String>,
    /// A regular expression that must match a part of the name, or the whole name if it has anchors.
    pub name_regex: Option<Pattern>,
    /// Required labels; an empty value matches any value.
    pub labels: BTreeMap<String, String>,
    /// Required annotations; an empty value matches any value.
    pub annotations: BTreeMap<String, String>,
    /// Whether the filter matches only objects that are being deleted and still have finalizers.
    pub deleting: bool,
}

impl Filter {
    pub fn passes(&self, change: Change, object: &Object<Meta>) -> bool {
        let on = match change {
            Change::Added => self.on.created,
            Change::Modified => self.on.updated,
            Change::Deleted => self.on.deleted,
        };
        on && self.selects(object)
    }

    /// Adds the fields that the filter needs to `wanted`.
    pub fn add_to(&self, wanted: &mut Wanted) {
        wanted.labels.extend(self.labels.keys().map(|key| key.as_str().into()));
        wanted.annotations.extend(self.annotations.keys().map(|key| key.as_str().into()));
    }

    /// Whether `wanted` has all fields that the filter needs.
    pub fn is_covered(&self, wanted: &Wanted) -> bool {
        self.labels.keys().all(|key| wanted.labels.contains(key.as_str()))
            && self.annotations.keys().all(|key| wanted.annotations.contains(key.as_str()))
    }

    /// Whether an object matches the filter, whatever the kind of change is.
    pub fn selects(&self, object: &Object<Meta>) -> bool {
        let (namespace, name) = (&*object.key.namespace, &*object.key.name);
        let fits = |pattern: &Option<Pattern>, text: &str| pattern.as_ref().is_none_or(|one| one.0.is_match(text));
        (self.namespaces.is_empty() || self.namespaces.iter().any(|one| one == namespace))
            && fits(&self.namespace_regex, namespace)
            && self.name.as_ref().is_none_or(|one| one == name)
            && fits(&self.name_regex, name)
            && (!self.deleting || object.body.deleting)
            && (self.labels.is_empty() || object.body.labels.has(&self.labels))
            && (self.annotations.is_empty() || object.body.annotations.has(&self.annotations))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::object;

    fn filter() -> Filter {
        Filter {
            on: On { created: true, updated: true, deleted: true },
            namespaces: Vec::new(),
            namespace_regex: None,
            name: None,
            name_regex: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            deleting: false,
        }
    }

    fn one(namespace: &str, name: &str, rest: &str) -> Object<Meta> {
        let id = format!(r#""namespace":"{namespace}","name":"{name}","uid":"u","resourceVersion":"5""#);
        object(&format!(r#"{{"metadata":{{{id}{rest}}}}}"#))
    }

    #[test]
    fn each_part_of_a_filter_decides() {
        let plain = one("team-a", "web-1", "");
        let labelled = one("team-a", "web-1", r#","labels":{"app":"web","tier":"x"},"annotations":{"note":"1"}"#);
        let going = one("team-a", "web-1", r#","deletionTimestamp":"2026-01-01T00:00:00Z""#);
        let regex = |text| Some(Pattern(Regex::new(text).unwrap()));
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let cases: [(&str, Filter, [bool; 3]); 12] = [
            ("all", filter(), [true, true, true]),
            ("namespace", Filter { namespaces: vec!["b".into(), "team-a".into()], ..filter() }, [true, true, true]),
            ("other namespace", Filter { namespaces: vec!["team".into()], ..filter() }, [false, false, false]),
            ("namespace pattern", Filter { namespace_regex: regex("^team-"), ..filter() }, [true, true, true]),
            ("other namespace pattern", Filter { namespace_regex: regex("^eam-"), ..filter() }, [false; 3]),
            ("name", Filter { name: Some("web-1".into()), ..filter() }, [true; 3]),
            ("other name", Filter { name: Some("web".into()), ..filter() }, [false; 3]),
            ("name pattern", Filter { name_regex: regex("-[0-4]$"), ..filter() }, [true; 3]),
            ("other name pattern", Filter { name_regex: regex("-[5-9]$"), ..filter() }, [false; 3]),
            ("label", Filter { labels: map("app", "web"), ..filter() }, [false, true, false]),
            ("annotation of any value", Filter { annotations: map("note", ""), ..filter() }, [false, true, false]),
            ("being deleted", Filter { deleting: true, ..filter() }, [false, false, true]),
        ];
        for (what, filter, expected) in cases {
            let passes = [&plain, &labelled, &going].map(|object| filter.passes(Change::Modified, object));
            assert_eq!(passes, expected, "{what}");
        }
    }

    #[test]
    fn the_kind_of_change_decides() {
        let plain = one("n", "a", "");
        for (at, change) in [Change::Added, Change::Modified, Change::Deleted].into_iter().enumerate() {
            for bits in 0..8u8 {
                let on = On { created: bits & 1 != 0, updated: bits & 2 != 0, deleted: bits & 4 != 0 };
                assert_eq!(Filter { on, ..filter() }.passes(change, &plain), bits & (1 << at) != 0);
            }
        }
    }
}
