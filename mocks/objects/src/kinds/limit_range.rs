//! `LimitRange`: bounds and defaults of what single pods and containers of a namespace use.

use serde_json::Value;

use super::{Generation, Kind};
use crate::fields::{each, set};

pub(super) const LIMIT_RANGE: Kind = Kind {
    about: "Bounds and defaults of what single pods and containers of a namespace use.",
    defaults,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::of("limitranges")
};

/// The limits of containers follow from each other.
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
