//! What the subject may ask of the control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Rate, Span};

/// Limits on what the subject asks. An absent key is not judged.
///
/// A *scope* is what one informer follows: a resource, a namespace or all of them, a label and a field selector.
#[serde_with::apply(Option => #[serde(default, skip_serializing_if = "Option::is_none")])]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requests {
    /// The longest time in which no list and no watch of a judged resource was open and none was sent, from the end of one to the start of
    /// the next or to the end of the run. It counts once the subject has watched that resource, and otherwise only while something was
    /// committed. Judged resources: what the subject was told to watch, or else what it has watched.
    pub blind: Option<Span>,
    /// How many fruitless requests a second, over any 5 s, for one scope. A list is fruitless if it is refused or its revision is no newer
    /// than the subject had been given before; further pages of a list are not, nor is one that a fruitful watch follows. A watch is
    /// fruitless if it is over without having carried a version newer than that. Any other request is fruitless if it is refused; those
    /// are counted for each method and object. A subject with a faster clock may send as many times more: its back-off runs on that clock.
    pub hot_loop: Option<Rate>,
    /// How many requests a second of any kind, over any 5 s, lists, watches and their resumptions included. Counting begins with the first
    /// quiet moment: the first whole second of the run with no more requests than that, at or after the subject's first write. A subject that
    /// is not quiet in the first half of the load is counted from the start of the warm-up.
    pub rate: Option<Rate>,
    /// Watches from a `resourceVersion` that must not be used any more. One that was refused with 410 (as HTTP status or as `ERROR`
    /// event), or not newer than what a so ended watch had reached, without a list in between; or one older than the subject had been
    /// given: by a list while no watch of the scope was open, by a watch that the server ended cleanly, or than it had itself watched
    /// from. A list without `resourceVersion` that is answered from an older state (a restored control plane) takes that back. Not
    /// counted: a watch beside another one of its scope.
    pub stale_resume: Option<u64>,
    /// Watches without `resourceVersion` (or with 0), and without `sendInitialEvents`, in a scope that was listed before: what happened
    /// between list and watch is lost.
    pub unanchored: Option<u64>,
    /// How often the subject may ask for `sendInitialEvents=true`, for each scope.
    pub initial_events: Option<u64>,
    /// `{min: 12}`: so many watches must have been open at once, of all scopes together.
    pub watches: Option<AtLeast>,
    /// How many watches of one scope may be open at once, as the control plane sees it: a watch that the subject abandoned without closing
    /// it is open.
    pub open_watches: Option<u64>,
    /// How many connections the subject may hold and open. `open`: open when the drain phase ends. `perReconnect`: new ones for each watch
    /// that is opened, from the end of the first watch on.
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
