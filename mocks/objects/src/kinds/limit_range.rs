//! `LimitRange`: limits and defaults for the resources of pods and containers in a namespace.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::At;
use super::causes::Refuse;
use super::{Causes, Generation, Kind};
use crate::fields::{each, set};

pub(super) const LIMIT_RANGE: Kind = Kind {
    about: "Bounds and defaults of what single pods and containers of a namespace use.",
    defaults,
    check,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("limitranges")
};

/// The error message for a name that is not a resource.
pub(super) const NO_RESOURCE: &str = "must be a standard resource type or fully qualified";

/// Whether a name without a domain is the name of a resource.
pub(super) fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage") || name.starts_with("hugepages-")
}

fn check(value: &Value, causes: &mut Causes) {
    let (at, mut known) = (At::from("spec.limits"), BTreeSet::new());
    for (index, limit) in value["spec"]["limits"].as_array().into_iter().flatten().enumerate() {
        let (one, kind) = (at.item(index), limit["type"].as_str().unwrap_or_default());
        if !known.insert(kind) {
            causes.duplicate(one.field("type"), kind);
        }
        if !kind.contains('/') && !["Container", "PersistentVolumeClaim", "Pod"].contains(&kind) {
            causes.invalid_text(one.field("type"), kind, "must be a standard limit type or fully qualified");
        }
        for bound in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let names = limit[bound].as_object().into_iter().flat_map(serde_json::Map::keys);
            for name in names.filter(|name| !name.contains('/') && !is_standard(name)) {
                causes.invalid_text(one.field(bound).key(name), name, NO_RESOURCE);
            }
        }
    }
}

/// Fills in missing default limits and default requests from the other limits of the `LimitRange`.
fn defaults(value: &mut Value) {
    let Some(spec) = value.get_mut("spec") else { return };
    each(spec, "limits", |limit| {
        if limit["type"] != "Container" {
            return;
        }
        for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            for (resource, amount) in limit[source].as_object().cloned().into_iter().flatten() {
                set(limit, &[target], &resource, amount);
            }
        }
    });
}
