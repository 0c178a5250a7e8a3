//! Budgets of the subject's requests to the control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Rate, Span};

/// Limits on the subject's requests. An absent key is not judged.
///
/// A *scope* is what one informer follows: a resource, a namespace or all of them, a label and a field selector.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    /// The longest time without a list or watch of a judged resource, from the end of one to the next or to the end of the run;
    /// before the first watch of the resource only while something was committed. Judged resources: those that the subject was
    /// given to watch, else those that it watched.
    pub blind: Option<Span>,
    /// Fruitless requests a second, over any 5 s, for one scope. Fruitless are a list that is refused or no newer than the
    /// subject's state (not further pages, nor a list before a fruitful watch), a watch that ends without a newer version, and
    /// any other refused request, counted for each method and object. A faster clock allows as many times more.
    pub hot_loop: Option<Rate>,
    /// Requests of any kind a second, over any 5 s. Counting begins at the first whole second with no more requests than that,
    /// at or after the subject's first write; if the first half of the load has none, at the start of the warm-up.
    pub rate: Option<Rate>,
    /// Watches from a forbidden `resourceVersion`. It was refused with 410 (HTTP status or `ERROR` event), or is not newer than
    /// the end of such a watch, without a list in between. Or it is older than the subject's state: from a list while no watch
    /// of the scope was open, from a watch that the server ended cleanly, or from the start of an earlier watch. A list without
    /// `resourceVersion` from an older state (a restored control plane) resets that. Not counted: a watch beside another one of
    /// its scope.
    pub stale_resume: Option<u64>,
    /// Watches without `resourceVersion` (or with 0), and without `sendInitialEvents`, in a scope that was listed before: changes
    /// between list and watch are lost.
    pub unanchored: Option<u64>,
    /// How often the subject may ask for `sendInitialEvents=true`, for each scope.
    pub initial_events: Option<u64>,
    /// `{min: 12}`: how many watches must have been open at once, of all scopes together.
    pub watches: Option<AtLeast>,
    /// How many watches of one scope may be open at once. An abandoned watch counts until it is closed.
    pub open_watches: Option<u64>,
    /// How many connections the subject may hold and open. `open`: open when the drain phase ends. `perReconnect`: new ones for each
    /// opened watch, from the end of the first watch on.
    pub connections: Option<Connections>,
}

/// A lower limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    /// The least that must be reached.
    pub min: u64,
}

/// Limits on the subject's connections, counted by the control plane. A connection is known to be the subject's from its first
/// request on.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connections {
    /// How many may be open when the drain phase ends.
    pub open: Option<u64>,
    /// How many new ones may be used for each watch that is opened, from the end of the first watch on.
    pub per_reconnect: Option<f64>,
}
