//! Events in the life of churned objects besides their own writes: finalizers, dependents, deletion policies, other
//! writers. Keys and checks.

use serde_json::Value;
use units::Span;

use super::Error;
use super::refuse;
use super::resource::Scope;

/// The longest hold of a finalizer: load has half a minute to come to rest.
const HOLD_MAX: Span = Span::from_secs(30);
/// Children of one parent.
const PER_MAX: u32 = 100;
/// The default finalizer.
const FINALIZER: &str = "longhaul.dev/hold";

/// A finalizer of the harness: the object is marked first, and is deleted when the finalizer is removed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finalizers {
    /// The share of the objects that has it, 0 to 1. Default: all.
    #[serde(default = "whole")]
    pub share: f64,
    /// The time after the deletion at which it is removed, at most `30s`. Default: `1s`.
    #[serde(default = "a_second")]
    pub hold_for: Span,
    /// Its name. Default: `longhaul.dev/hold`.
    #[serde(default = "finalizer")]
    pub name: String,
}

/// Dependents of each object, with an owner reference to it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tree {
    /// Their resource, spelled as `churn.resource`. They are judged if `subject.watches` names them.
    pub resource: String,
    /// Their contents, as in `churn.template`.
    pub template: Option<Value>,
    /// Whether they are in namespaces, as `churn.scope`; the same as their parents.
    pub scope: Option<Scope>,
    /// The number of dependents of each object, at most 100.
    pub per: u32,
}

/// The fate of a deleted object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay. The harness deletes those of `tree` a second later.
    Orphan,
}

/// Another writer of the same objects, with a field manager of its own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Also {
    /// Its name, such as `kubectl-edit`.
    pub field_manager: String,
    /// The method of its writes. Default: `apply`.
    #[serde(default)]
    pub by: By,
    /// The fields that it changes. Default: `annotations`.
    #[serde(default)]
    pub changes: Changes,
    /// The frequency of its writes, as a weight beside those of `mix`. Default: 2.
    #[serde(default = "two")]
    pub weight: u32,
}

/// The method of another writer's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// Server-side apply of the changed fields, with force.
    #[default]
    Apply,
    /// The writer reads the object and replaces it.
    Update,
}

/// The fields that another writer changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Changes {
    /// A label.
    Labels,
    /// An annotation.
    #[default]
    Annotations,
    /// The fields that updates change.
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
    /// The spelling in `DeleteOptions`.
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
