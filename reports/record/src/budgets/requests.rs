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
    /// The longest time without a list or watch of a judged resource: from the end of one to the next, or to the end of
    /// the run. Before the first watch of a resource, only time in which objects were committed counts. Judged
    /// resources are those that the scenario gives the subject to watch, else those that the subject watched.
    pub blind: Option<Span>,
    /// Fruitless requests a second, over any 5 s, for one scope. A list is fruitless if it is refused, or no newer than
    /// the subject's state; further pages, and a list before a fruitful watch, do not count. A watch is fruitless if it
    /// ends without a newer version. Any other refused request is fruitless and counts for each method and object. A
    /// faster clock (`clockRate`) raises this limit by its factor.
    pub hot_loop: Option<Rate>,
    /// Requests of any kind a second, over any 5 s. Counting begins at the first whole second, at or after the
    /// subject's first write, with no more requests than this limit. If the first half of the load has no such second,
    /// counting begins at the start of the warm-up.
    pub rate: Option<Rate>,
    /// Watches from a forbidden `resourceVersion`. A version is forbidden if the server answered it with 410 (HTTP
    /// status or `ERROR` event) and the subject has not listed since. After a watch that ended with 410, each version
    /// up to its last one is forbidden until the next list. A version is also forbidden if it is older than the
    /// subject's state. The state comes from a list while no watch of the scope was open, from a watch that the server
    /// ended cleanly, or from the start of an earlier watch. A list without `resourceVersion` from an older state (a
    /// restored control plane) resets the subject's state. A watch beside another open watch of its scope does not
    /// count.
    pub stale_resume: Option<u64>,
    /// Watches without `resourceVersion` (or with 0) and without `sendInitialEvents`, in a scope that was listed
    /// before. Changes between such a list and watch are lost.
    pub unanchored: Option<u64>,
    /// How often the subject may ask for `sendInitialEvents=true`, for each scope.
    pub initial_events: Option<u64>,
    /// `{min: 12}`: how many watches of all scopes together must have been open at once.
    pub watches: Option<AtLeast>,
    /// How many watches of one scope may be open at once. A watch that the client abandoned counts until it is closed.
    pub open_watches: Option<u64>,
    /// How many connections the subject may hold and open. `open` limits connections that are open when the drain phase
    /// ends. `perReconnect` limits new connections for each opened watch, from the end of the first watch on.
    pub connections: Option<Connections>,
}

/// A lower limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    /// The smallest value that meets the budget.
    pub min: u64,
}

/// Limits on the subject's connections, counted by the control plane. The control plane recognises a connection as the
/// subject's by its first request.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connections {
    /// How many connections may be open when the drain phase ends.
    pub open: Option<u64>,
    /// How many new connections may be used for each opened watch, from the end of the first watch on.
    pub per_reconnect: Option<f64>,
}
