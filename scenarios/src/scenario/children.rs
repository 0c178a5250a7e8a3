//! The objects that a subject makes for others: how a child is known, how many there should be, and what the harness does to them.
//!
//! Owns the keys and their checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// What stands for the parent's name in `by: {name: …}`.
const NAME: &str = "{name}";
/// Deeds of one run.
const DRIFTS_MAX: usize = 100;

/// The objects that a subject makes for each object that is churned, in the same namespace, and keeps as they should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Children {
    /// What they are: `networkpolicies.networking.k8s.io/v1`, `configmaps/v1`.
    pub resource: String,
    /// How a child names its parent.
    pub by: By,
    /// How many a parent should have. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_parent: Option<u32>,
    /// Instead of that: one for each entry of this list of the parent, as a JSON pointer such as `/spec/network/allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_entry: Option<String>,
    /// The JSON pointer of the field of a child that repeats its parent's `metadata.generation`. Without it and `revision` the version
    /// of a child is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The JSON pointer of the field of a child that repeats its parent's `metadata.resourceVersion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What the harness does to children while load runs, as somebody with kubectl would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
}

/// How a child names its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// An owner reference has the uid of the parent.
    Owner,
    /// This label has the uid of the parent.
    Label(String),
    /// Its name is this, with `{name}` for the name of the parent: `{name}-config`.
    Name(String),
}

/// One deed of the harness. Which children, follows from the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Drift {
    /// When, counted from the start of the warm-up.
    pub at: Span,
    /// Which share of the children that are there then: more than 0, at most 1.
    pub share: f64,
    /// They are edited by this merge patch (RFC 7386). Without it they are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Children {
    /// What is wrong with the keys, for the author of the file; `loaded` is how long load runs.
    pub(crate) fn problem(&self, loaded: Span) -> Option<String> {
        let Some((resource, _)) = loadgen::churn::names(&self.resource) else {
            return Some(format!(
                "`children.resource: {}` is no resource: write for example `networkpolicies.networking.k8s.io/v1` or \
                 `configmaps/v1`",
                self.resource
            ));
        };
        if self.per_parent.is_some() && self.per_entry.is_some() {
            return Some("`children` has both `perParent` and `perEntry`: keep one".to_owned());
        }
        if self.per_parent == Some(0) {
            return Some(format!("`children.perParent` is 0: who should have no {resource} needs no `children`"));
        }
        let pointers = [("perEntry", &self.per_entry), ("generation", &self.generation), ("revision", &self.revision)];
        for (key, pointer) in pointers {
            if let Some(pointer) = pointer.as_ref().filter(|pointer| !pointer.starts_with('/')) {
                return Some(format!(
                    "`children.{key}: {pointer}` is no JSON pointer: write for example `/spec/entries`"
                ));
            }
        }
        match &self.by {
            By::Label(key) if key.trim().is_empty() => {
                return Some("`children.by.label` is empty: write the key of a label".to_owned());
            }
            By::Name(pattern) if pattern.matches(NAME).count() != 1 => {
                return Some(format!(
                    "`children.by.name: {pattern}` must have `{NAME}` once, for the name of the parent: write for example \
                     `{NAME}-config`"
                ));
            }
            By::Name(_) if self.per_entry.is_some() || self.per_parent.is_some_and(|number| number > 1) => {
                return Some(
                    "`children.by.name` finds one child of each parent: use `owner` or `label` for more".to_owned(),
                );
            }
            _ => {}
        }
        if self.drift.len() > DRIFTS_MAX {
            return Some(format!("`children.drift` has more than {DRIFTS_MAX} entries"));
        }
        self.drift.iter().find_map(|drift| drift.problem(loaded))
    }

    /// How the name of a child is made of that of its parent: what stands before and behind it.
    pub(crate) fn name_parts(pattern: &str) -> (&str, &str) {
        pattern.split_once(NAME).unwrap_or((pattern, ""))
    }

    /// In words, for the plan.
    pub(crate) fn describe(&self) -> String {
        let many = match (&self.per_entry, self.per_parent.unwrap_or(1)) {
            (Some(pointer), _) => format!("one for each entry of {pointer}"),
            (None, number) => format!("{number} each"),
        };
        format!("{}, {many}", self.resource)
    }
}

impl Drift {
    fn problem(&self, loaded: Span) -> Option<String> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Some(format!(
                "`drift.share` is {}: write a number above 0 and at most 1, such as `0.5`",
                self.share
            ));
        }
        if self.edit.as_ref().is_some_and(serde_json::Map::is_empty) {
            return Some("`drift.edit` changes nothing: write a patch, or leave it out to delete".to_owned());
        }
        (self.at >= loaded)
            .then(|| format!("`drift` at {} comes too late, load ends at {loaded}: make it earlier", self.at))
    }

    /// In words, for plan and record.
    pub(crate) fn describe(&self) -> String {
        let how = if self.edit.is_some() { "edited" } else { "deleted" };
        format!("{:.0} % of the children are {how} at {}", self.share * 100.0, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(text: &str) -> Children {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        let problem = |text: &str| children(text).problem(Span::from_secs(10));
        assert_eq!(problem("{resource: configmaps/v1, by: owner}"), None);
        assert_eq!(problem("{resource: configmaps/v1, by: {name: \"{name}-x\"}, generation: /data/g}"), None);
        let drift = "{resource: configmaps/v1, by: {label: a/b}, perParent: 3, drift: [{at: 5s, share: 0.5, edit: {data: {a: b}}}]}";
        assert_eq!(problem(drift), None);
        for (text, expected) in [
            ("{resource: configmaps, by: owner}", "is no resource"),
            ("{resource: configmaps/v1, by: owner, perParent: 1, perEntry: /a}", "keep one"),
            ("{resource: configmaps/v1, by: owner, perParent: 0}", "is 0"),
            ("{resource: configmaps/v1, by: owner, generation: data.g}", "is no JSON pointer"),
            ("{resource: configmaps/v1, by: {name: child}}", "must have `{name}` once"),
            ("{resource: configmaps/v1, by: {name: \"{name}-x\"}, perParent: 2}", "finds one child"),
            ("{resource: configmaps/v1, by: {label: \"\"}}", "is empty"),
            ("{resource: configmaps/v1, by: owner, drift: [{at: 5s, share: 0}]}", "above 0"),
            ("{resource: configmaps/v1, by: owner, drift: [{at: 5s, share: 20}]}", "at most 1"),
            ("{resource: configmaps/v1, by: owner, drift: [{at: 10s, share: 1}]}", "comes too late"),
            ("{resource: configmaps/v1, by: owner, drift: [{at: 1s, share: 1, edit: {}}]}", "changes nothing"),
        ] {
            let found = problem(text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
