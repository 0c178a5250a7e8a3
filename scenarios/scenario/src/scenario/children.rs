//! `children`: the objects that a subject creates for other objects.
//!
//! This module owns the keys and their checks: how a child refers to its parent, and the number of children.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The placeholder for the parent's name in `by: {name: …}`.
const NAME: &str = "{name}";
/// Maximum number of kinds of children; the harness opens a watch for each kind.
const KINDS_MAX: usize = 10;

/// The kinds of objects that a subject creates for other objects: none, one, or a list of kinds.
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

impl Children {
    /// A mistake in the keys, as a message for the author of the scenario.
    fn problem(&self) -> Option<String> {
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
        None
    }

    /// Whether a fault means these children by `resource`: `configmaps/v1`, `configmaps`, `deployments.apps`.
    pub fn is_called(&self, resource: &str) -> bool {
        let name = self.resource.split_once('/').map_or(self.resource.as_str(), |(name, _)| name);
        let plural = name.split_once('.').map_or(name, |(plural, _)| plural);
        [self.resource.as_str(), name, plural].contains(&resource)
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

impl Kinds {
    /// A mistake in the keys, as a message for the author of the scenario.
    pub fn problem(&self) -> Option<String> {
        if self.len() > KINDS_MAX {
            return Some(format!("`children` has more than {KINDS_MAX} entries"));
        }
        let alike = |at: usize, one: &Children| {
            self[..at].iter().any(|other| other.resource == one.resource && other.by == one.by)
        };
        if let Some((_, twice)) = self.iter().enumerate().find(|(at, one)| alike(*at, one)) {
            return Some(format!("`children` names {} twice with the same `by`: leave one out", twice.resource));
        }
        self.iter().find_map(Children::problem)
    }

    /// The index of the kind that a fault means by the name `called`; without a name, the only kind.
    pub fn meant(&self, called: Option<&str>) -> Option<usize> {
        match called {
            Some(called) => self.iter().position(|kind| kind.is_called(called)),
            None => (self.len() == 1).then_some(0),
        }
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
        let problem = |text: &str| children(text).problem();
        assert_eq!(problem("{resource: configmaps/v1, by: owner}"), None);
        assert_eq!(problem("{resource: configmaps/v1, by: {name: \"{name}-x\"}, generation: /data/g}"), None);
        for (text, expected) in [
            ("{resource: configmaps, by: owner}", "is no resource"),
            ("{resource: configmaps/v1, by: owner, perParent: 1, perEntry: /a}", "keep one"),
            ("{resource: configmaps/v1, by: owner, perParent: 0}", "is 0"),
            ("{resource: configmaps/v1, by: owner, generation: data.g}", "is no JSON pointer"),
            ("{resource: configmaps/v1, by: {name: child}}", "must have `{name}` once"),
            ("{resource: configmaps/v1, by: {name: \"{name}-x\"}, perParent: 2}", "finds one child"),
            ("{resource: configmaps/v1, by: {label: \"\"}}", "is empty"),
        ] {
            let found = problem(text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn one_kind_several_or_none() {
        let read = |text: &str| serde_saphyr::from_str::<Kinds>(text).unwrap();
        let (one, other) = ("{resource: configmaps/v1, by: owner}", "{resource: services/v1, by: owner}");
        assert_eq!(read(one).len(), 1);
        let both = read(&format!("[{one}, {other}]"));
        assert_eq!((both.len(), both.problem()), (2, None));
        for kinds in [read(one), both, Kinds::default()] {
            assert_eq!(serde_json::from_value::<Kinds>(serde_json::to_value(&kinds).unwrap()).unwrap(), kinds);
        }
        let twice = read(&format!("[{one}, {one}]")).problem().unwrap();
        assert!(twice.contains("configmaps/v1 twice"), "{twice}");
    }

    #[test]
    fn a_fault_names_its_children_if_there_are_several() {
        let read = |text: &str| serde_saphyr::from_str::<Kinds>(text).unwrap();
        let one = read("{resource: deployments.apps/v1, by: owner}");
        let two = read("[{resource: configmaps/v1, by: owner}, {resource: deployments.apps/v1, by: owner}]");
        assert_eq!((one.meant(None), two.meant(None), one.meant(Some("pods"))), (Some(0), None, None));
        for called in ["deployments", "deployments.apps", "deployments.apps/v1"] {
            assert_eq!(two.meant(Some(called)), Some(1), "{called}");
        }
    }
}
