//! `LimitRange`: limits and defaults for the resources of pods and containers in a namespace.

use serde_json::Value;

use super::{Generation, Kind};
use crate::fields::{each, set};

pub(super) const LIMIT_RANGE: Kind = Kind {
    short_names: &["limits"],
    about: "Bounds and defaults of what single pods and containers of a namespace use.",
    messages: &[
        "LimitRange 1:metadata:ObjectMeta 2:spec:LimitRangeSpec",
        "LimitRangeSpec 1:limits:[LimitRangeItem]!",
        "LimitRangeItem 1:type:s! 2:max:{Q} 3:min:{Q} 4:default:{Q} 5:defaultRequest:{Q} 6:maxLimitRequestRatio:{Q}",
    ],
    defaults,
    generation: Generation::None,
    created_by_update: true,
    ..Kind::namespaced("", &["v1"], "limitranges", "LimitRange")
};

/// Fills in the missing default limits and requests of containers from the given limits.
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
