//! Events in the life of churned objects besides churn's own writes: finalizers, dependents, deletion policies, writes
//! of a second writer. Owns the scenario keys of these events, and the checks of the keys.

use serde_json::Value;
use units::Span;

use super::Error;
use super::refuse;
use super::resource::Scope;

/// The longest time that a finalizer may hold an object. After the load, half a minute remains for pending deletions.
const HOLD_MAX: Span = Span::from_secs(30);
/// Maximum number of dependents of one object.
const PER_MAX: u32 = 100;
/// The default name of the finalizer.
const FINALIZER: &str = "longhaul.dev/hold";

/// A finalizer of the harness: a deleted object is only marked, and disappears when the finalizer is removed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finalizers {
    /// The fraction of the objects that have the finalizer, 0 to 1. Default: all.
    #[serde(default = "whole")]
    pub share: f64,
    /// How long after the deletion the finalizer is removed, at most `30s`. Default: `1s`.
    #[serde(default = "a_second")]
    pub hold_for: Span,
    /// The name of the finalizer. Default: `longhaul.dev/hold`.
    #[serde(default = "finalizer")]
    pub name: String,
}

/// Dependents of each object, which have an owner reference to the object.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tree {
    /// The resource of the dependents, written as in `churn.resource`. Dependents are judged if `subject.watches` names
    /// the resource.
    pub resource: String,
    /// The contents of the dependents, as in `churn.template`.
    pub template: Option<Value>,
    /// Whether the dependents are in namespaces, as in `churn.scope`; the same as for their owners.
    pub scope: Option<Scope>,
    /// The number of dependents of each object, at most 100.
    pub per: u32,
}

/// The treatment of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum Propagation {
    /// The dependents are deleted after the object.
    Background,
    /// The dependents are deleted before the object.
    Foreground,
    /// The dependents stay without an owner; the harness deletes those of `tree` a second later.
    Orphan,
}

/// Another writer of the same objects, with its own field manager.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Also {
    /// The field manager of the writer, such as `kubectl-edit`.
    pub field_manager: String,
    /// How the writer writes. Default: `apply`.
    #[serde(default)]
    pub by: By,
    /// The fields that the writer changes. Default: `annotations`.
    #[serde(default)]
    pub changes: Changes,
    /// How often the writer writes, as a weight in addition to those of `mix`. Default: 2.
    #[serde(default = "two")]
    pub weight: u32,
}

/// How another writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// Server-side apply of the changed fields, with force.
    #[default]
    Apply,
    /// Another writer reads the object and replaces it.
    Update,
}

/// The fields that another writer changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Changes {
    /// The writer changes a label.
    Labels,
    /// The writer changes an annotation.
    #[default]
    Annotations,
    /// The fields that churn's updates change.
    Fields,
}

impl Finalizers {
    pub(super) fn check(&self) -> Result<(), Error> {
        if !(0.0..=1.0).contains(&self.share) {
            return refuse("finalizers.share", format!("is {}: write 0 to 1", self.share));
        }
        if self.hold_for > HOLD_MAX {
            return refuse("finalizers.holdFor", format!("is {}: write at most `{HOLD_MAX}`", self.hold_for));
        }
        if !self.name.contains('/') {
            return refuse("finalizers.name", format!("`{}`: write it with a domain, as `{FINALIZER}`", self.name));
        }
        Ok(())
    }
}

impl Tree {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.per == 0 || self.per > PER_MAX {
            return refuse("tree.per", format!("is {}: write 1 to {PER_MAX}", self.per));
        }
        Ok(())
    }
}

impl Also {
    pub(super) fn check(&self) -> Result<(), Error> {
        // Kubernetes takes 128 printable characters at most ("Field management").
        let fine =
            (1..=128).contains(&self.field_manager.len()) && self.field_manager.bytes().all(|b| b.is_ascii_graphic());
        if !fine {
            let given = &self.field_manager;
            return refuse("also.fieldManager", format!("`{given}`: write 1 to 128 characters without spaces"));
        }
        if self.weight == 0 {
            return refuse("also.weight", "is 0, so it never writes: write 1 or more, or leave `also` out");
        }
        Ok(())
    }
}

impl Propagation {
    /// The name of the policy in `DeleteOptions`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

fn whole() -> f64 {
    1.0
}

fn a_second() -> Span {
    Span::from_secs(1)
}

fn two() -> u32 {
    2
}

fn finalizer() -> String {
    FINALIZER.to_owned()
}
