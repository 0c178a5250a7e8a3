//! `children`: the objects that a subject creates for other objects.
//!
//! This module owns the keys and their checks: how a child refers to its parent, the number of children, and changes
//! that the harness makes to children.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// The placeholder for the parent's name in `by: {name: …}`.
const NAME: &str = "{name}";
/// Maximum number of changes to children in one run.
const DRIFTS_MAX: usize = 100;
/// Maximum number of kinds of children; the harness opens a watch for each kind.
const KINDS_MAX: usize = 10;
/// Minimum time from a change of children after the load until the run ends. The shortest allowed deadline of events is
/// equal, so that a subject has time to restore the child.
const RESTORED_WITHIN: Span = Span::from_secs(3);

/// The kinds of objects that a subject creates for others: none, one, or a list of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kinds(pub Vec<Children>);

/// The objects that a subject creates for each churned object, in the same namespace, and keeps in their desired state.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Children {
    /// Resource of the children: `networkpolicies.networking.k8s.io/v1`, `configmaps/v1`.
    pub resource: String,
    /// How a child refers to its parent.
    pub by: By,
    /// Number of children per parent. Default: 1.
    pub per_parent: Option<u32>,
    /// Instead of `perParent`: one child per entry of this list of the parent, as a JSON pointer such as
    /// `/spec/network/allow`.
    pub per_entry: Option<String>,
    /// The JSON pointer of the field of a child that repeats its parent's `metadata.generation`. If neither this nor
    /// `revision` is set, the version of a child is not judged.
    pub generation: Option<String>,
    /// The JSON pointer of the field of a child that repeats its parent's `metadata.resourceVersion`.
    pub revision: Option<String>,
    /// Changes that the harness makes to children while load runs, as a user with kubectl could.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
}

/// How a child refers to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// An owner reference has the uid of the parent.
    Owner,
    /// This label has the uid of the parent.
    Label(String),
    /// The child's name has this pattern, with `{name}` for the parent's name: `{name}-config`.
    Name(String),
}

/// One change that the harness makes to children. The seed selects the children.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Drift {
    /// Time of the change, counted from the start of the warm-up. The harness leaves out children whose parents are
    /// written soon afterwards, because a subject that only follows the parents would restore those as well.
    pub at: Option<Span>,
    /// Instead of `at`: time after the last write of the load, when no further writes come.
    pub after_load: Option<Span>,
    /// The share of the children existing at that time that are changed: more than 0, at most 1.
    pub share: f64,
    /// A merge patch (RFC 7386) that edits the selected children. Default: they are deleted.
    pub edit: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Children {
    /// A mistake in the keys, as a message for the author of the scenario. `loaded` is the length of the load, and
    /// `drain` is the length of the drain phase.
    fn problem(&self, loaded: Span, drain: Span) -> Option<String> {
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
            return Some(format!(
                "`children.perParent` is 0: write 1 or more, or leave `children` out for parents without {resource}"
            ));
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
        self.drift.iter().find_map(|drift| drift.problem(loaded, drain))
    }

    /// The text before and the text after the parent's name in a child's name.
    pub fn name_parts(pattern: &str) -> (&str, &str) {
        pattern.split_once(NAME).unwrap_or((pattern, ""))
    }

    /// Description of the children for the printed plan.
    pub fn describe(&self) -> String {
        let many = match (&self.per_entry, self.per_parent.unwrap_or(1)) {
            (Some(pointer), _) => format!("one for each entry of {pointer}"),
            (None, number) => format!("{number} each"),
        };
        format!("{}, {many}", self.resource)
    }
}

impl Drift {
    /// The time of this change of children, counted from the start of the warm-up, if the load ends at `loaded`.
    pub fn due(&self, loaded: Duration) -> Duration {
        self.after_load.map_or_else(|| self.at.unwrap_or_default().0, |after| loaded.saturating_add(after.0))
    }

    fn problem(&self, loaded: Span, drain: Span) -> Option<String> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Some(format!(
                "`drift.share` is {}: write a number above 0 and at most 1, such as `0.5`",
                self.share
            ));
        }
        if self.edit.as_ref().is_some_and(serde_json::Map::is_empty) {
            return Some("`drift.edit` changes nothing: write a patch, or leave it out to delete".to_owned());
        }
        match (self.at, self.after_load) {
            (Some(at), None) => (at >= loaded)
                .then(|| format!("`drift` at {at} comes too late, load ends at {loaded}: make it earlier, or write `afterLoad`")),
            (None, Some(after)) => (after.0.saturating_add(RESTORED_WITHIN.0) > drain.0).then(|| {
                format!(
                    "`drift` {after} after load leaves less than {RESTORED_WITHIN} to restore anything, the drain has {drain}: make `drain` in \
                     `phases` longer"
                )
            }),
            _ => Some("`drift` needs either `at` or `afterLoad`: write for example `afterLoad: 1s`".to_owned()),
        }
    }

    /// Description of all kinds of children for plan and record.
    pub fn describe(&self) -> String {
        let how = if self.edit.is_some() { "edited" } else { "deleted" };
        let when = match (self.at, self.after_load) {
            (_, Some(after)) => format!("{after} after the load"),
            (at, None) => format!("at {}", at.unwrap_or_default()),
        };
        format!("{:.0} % of the children are {how} {when}", self.share * 100.0)
    }
}

impl Kinds {
    /// A mistake in the keys, as a message for the author of the scenario.
    pub fn problem(&self, loaded: Span, drain: Span) -> Option<String> {
        if self.len() > KINDS_MAX {
            return Some(format!("`children` has more than {KINDS_MAX} entries"));
        }
        let alike = |at: usize, one: &Children| {
            self[..at].iter().any(|other| other.resource == one.resource && other.by == one.by)
        };
        if let Some((_, twice)) = self.iter().enumerate().find(|(at, one)| alike(*at, one)) {
            return Some(format!("`children` names {} twice with the same `by`: leave one out", twice.resource));
        }
        if self.iter().map(|one| one.drift.len()).sum::<usize>() > DRIFTS_MAX {
            return Some(format!("`children.drift` has more than {DRIFTS_MAX} entries"));
        }
        self.iter().find_map(|one| one.problem(loaded, drain))
    }

    /// All changes that the harness makes to children, each with the index of its kind, ordered by time.
    pub fn drifts(&self, loaded: Duration) -> Vec<(usize, Drift)> {
        let all =
            self.iter().enumerate().flat_map(|(at, kind)| kind.drift.iter().map(move |drift| (at, drift.clone())));
        let mut all: Vec<(usize, Drift)> = all.collect();
        all.sort_by_key(|(_, drift)| drift.due(loaded));
        all
    }
}

loadgen::one_or_more! {
    Kinds of Children, at most KINDS_MAX, as "ChildrenKinds",
    "children such as `{resource: configmaps/v1, by: owner}`, or a list of them"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(text: &str) -> Children {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        let problem = |text: &str| children(text).problem(Span::from_secs(10), Span::from_secs(6));
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
            ("{resource: configmaps/v1, by: owner, drift: [{afterLoad: 4s, share: 1}]}", "leaves less than 3s"),
            ("{resource: configmaps/v1, by: owner, drift: [{share: 1}]}", "either `at` or `afterLoad`"),
            (
                "{resource: configmaps/v1, by: owner, drift: [{at: 1s, afterLoad: 1s, share: 1}]}",
                "either `at` or `afterLoad`",
            ),
            ("{resource: configmaps/v1, by: owner, drift: [{at: 1s, share: 1, edit: {}}]}", "changes nothing"),
        ] {
            let found = problem(text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
        assert_eq!(problem("{resource: configmaps/v1, by: owner, drift: [{afterLoad: 3s, share: 1}]}"), None);
    }

    #[test]
    fn one_kind_several_or_none() {
        let read = |text: &str| serde_saphyr::from_str::<Kinds>(text).unwrap();
        let (one, other) = ("{resource: configmaps/v1, by: owner}", "{resource: services/v1, by: owner}");
        assert_eq!(read(one).len(), 1);
        let both = read(&format!("[{one}, {other}]"));
        assert_eq!((both.len(), both.problem(Span::from_secs(9), Span::from_secs(9))), (2, None));
        for kinds in [read(one), both, Kinds::default()] {
            assert_eq!(serde_json::from_value::<Kinds>(serde_json::to_value(&kinds).unwrap()).unwrap(), kinds);
        }
        let twice = read(&format!("[{one}, {one}]")).problem(Span::from_secs(9), Span::from_secs(9)).unwrap();
        assert!(twice.contains("configmaps/v1 twice"), "{twice}");
    }

    /// The changes to children of all kinds are sorted by time in one list.
    #[test]
    fn deeds_are_sorted_by_time() {
        let kinds: Kinds = serde_saphyr::from_str(
            "[{resource: configmaps/v1, by: owner, drift: [{afterLoad: 1s, share: 1}, {at: 2s, share: 1}]}, \
              {resource: services/v1, by: owner, drift: [{at: 1s, share: 1}]}]",
        )
        .unwrap();
        let drifts = kinds.drifts(Duration::from_secs(10));
        let due: Vec<_> =
            drifts.iter().map(|(kind, drift)| (*kind, drift.due(Duration::from_secs(10)).as_secs())).collect();
        assert_eq!(due, [(1, 1), (0, 2), (0, 11)]);
    }
}
