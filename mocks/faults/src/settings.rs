//! The configuration of a fault, as it is written in a scenario file.
//!
//! Owns the keys that faults share, with their units, and the checks of a list of faults. Keys of a single fault are
//! declared in that fault's catalogue entry, with their defaults. This module carries out no fault.

mod described;
mod error;
mod keys;
mod own;
mod row;
mod shared;
mod turns;
mod values;
mod when;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use units::Span;

use super::Name;

#[cfg(test)]
pub(super) use described::defaults_of_on;
pub use error::Error;
pub use keys::check_all;
#[cfg(test)]
pub(super) use keys::those;
pub use own::{Keys, Settings, Takes};
pub(crate) use own::{error_status, keys, not_zero};
pub use row::{Drawn, Family, Row, Target};
#[cfg(test)]
pub(super) use shared::OF_ALL;
pub use turns::{Every, Nth};
pub use values::{
    Code, Connections, Direction, ErrorBody, Form, How, Http2Code, Kind, NewConnections, NewStreams, Newer, On, Then,
    Watches,
};
pub use when::{Side, When, WriteOf, Wrote};

/// The default time between the starts of two successive effects of one fault.
pub const PAUSE: Span = Span::from_secs(20);

/// One fault of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", remote = "Self")]
#[schemars(transform = described::describe)]
pub struct Fault {
    /// The fault's name.
    pub name: Name,
    /// A label, unique among the faults. Another fault's `when` or a script's step may wait for the first hit of the
    /// fault with this label.
    pub id: Option<String>,
    /// The beginning, counted from the start of the warm-up. Without `at` and `when` the fault begins before the
    /// subject starts.
    pub at: Option<Span>,
    /// Instead of `at`: the fault begins after the first hit of another fault, or with a write of the subject.
    pub when: Option<When>,
    /// How long the fault lasts. Default: a fault that cuts, compacts or restores is momentary if it has `at` or
    /// `when`, and neither `nth`, `every` nor `afterEvents`: it affects only streams that are open at that time. Every
    /// other fault lasts until the load ends.
    #[serde(rename = "for")]
    pub lasts: Option<Span>,
    /// Only requests and watches of this resource, or workloads of this kind: `pods`, `packages` or
    /// `packages.longhaul.dev`. Default: all of them.
    pub resource: Option<String>,
    /// The kinds of requests that the fault affects.
    pub on: Option<On>,
    /// Only requests whose query string, as it was sent, contains this text: `sendInitialEvents=true`.
    pub query: Option<String>,
    /// Only requests of clients whose `User-Agent` contains this text.
    pub user_agent: Option<String>,
    /// `registry-…` only: only requests for this repository, or for repositories with this prefix if it ends in `*`.
    /// Default: all.
    pub repository: Option<String>,
    /// Only this endpoint of the control plane: 0 is the first endpoint, and the next is 1. Default: all endpoints.
    pub endpoint: Option<u32>,
    /// Only the n-th matching request since the fault began, counted from 1, a range `{from: 2, to: 7}`, or a list `[2,
    /// 4, 6]`. Watches that are open when the fault begins are then not affected. For faults on new connections and on
    /// the network: the n-th connection. Default: all of them.
    pub nth: Option<Nth>,
    /// Instead of `nth`: only every second, third, … matching request since the fault began, written as `2nd`.
    pub every: Option<Every>,
    /// The fault affects a watch only after the watch has sent this many events, including initial events but not
    /// bookmarks. Default: 0.
    pub after_events: Option<u64>,
    /// Maximum number of effects of the fault.
    pub count: Option<u64>,
    /// The probability of each single effect, 0 to 1; the seed decides. Default: 1.
    pub probability: Option<f64>,
    /// The settings that only this kind of fault has.
    #[serde(skip, default = "Settings::none")]
    pub settings: Settings,
}

/// How long a fault lasts: a moment, a duration, or until the load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// The fault ends as soon as it has begun.
    Moment,
    For(Span),
    ToTheEnd,
}

impl Fault {
    /// A fault with default settings that begins at `at`.
    pub fn new(name: Name, at: Span) -> Self {
        Self { at: Some(at), ..Self::armed(name) }
    }

    /// A fault with default settings that begins before the subject starts.
    pub fn armed(name: Name) -> Self {
        Self {
            name,
            id: None,
            at: None,
            when: None,
            lasts: None,
            resource: None,
            on: None,
            query: None,
            user_agent: None,
            repository: None,
            endpoint: None,
            nth: None,
            every: None,
            after_events: None,
            count: None,
            probability: None,
            settings: Settings::of(name, Map::new()),
        }
    }

    /// The settings that only this kind of fault has; defaults if `K` belongs to another kind.
    pub fn keys<K: Keys>(&self) -> K {
        self.settings.get()
    }

    /// Sets a key, named as in scenarios; `check` refuses a key that the fault does not have.
    #[must_use]
    pub fn set<V: Serialize>(mut self, key: &str, value: V) -> Self {
        self.put(key, value);
        self
    }

    /// Sets a key of the fault; see [`Fault::set`].
    pub fn put<V: Serialize>(&mut self, key: &str, value: V) {
        let mut keys = self.settings.written();
        match serde_json::to_value(value) {
            Ok(Value::Null) | Err(_) => drop(keys.remove(key)),
            Ok(value) => drop(keys.insert(key.to_owned(), value)),
        }
        self.settings = Settings::of(self.name, keys);
    }

    /// Refuses settings that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        keys::check(self)
    }

    /// Whether the fault begins before the subject starts.
    pub fn is_armed_before(&self) -> bool {
        self.at.is_none() && self.when.is_none() && self.after_load().is_none()
    }

    /// The time from the end of the load to the beginning of the fault, if the fault begins after the load.
    pub fn after_load(&self) -> Option<Span> {
        // Only this fault has the key; reading it for others would cost time at each request.
        if self.name != Name::ChildrenDrift {
            return None;
        }
        self.settings.written().remove("afterLoad").and_then(|after| serde_json::from_value(after).ok())
    }

    /// The time of the last effect, if the fault has a time, a `count`, and a pause between its effects.
    pub fn last_effect(&self) -> Option<Span> {
        self.name.row().key("pause")?;
        let pause = self.settings.written().remove("pause");
        let pause = pause.map_or(Some(PAUSE), |pause| serde_json::from_value(pause).ok())?;
        let pauses = u32::try_from(self.count?.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(Span(self.at?.0.saturating_add(pause.0.saturating_mul(pauses))))
    }

    /// Whether the fault chooses requests by number (`nth`, `every`), so that it affects only requests after its
    /// beginning.
    pub fn counts_turns(&self) -> bool {
        self.nth.is_some() || self.every.is_some()
    }

    /// Whether the fault affects target number `number`, counted from 1 since the fault began.
    pub fn is_turn(&self, number: u64) -> bool {
        self.nth.as_ref().is_none_or(|nth| nth.contains(number))
            && self.every.is_none_or(|every| every.contains(number))
    }

    /// Whether the fault waits for targets that appear after it has begun.
    pub(super) fn waits(&self) -> bool {
        self.is_armed_before() || self.counts_turns() || self.after_events.is_some()
    }

    /// How long the fault lasts, from `for` and the fault's name.
    pub fn lasting(&self) -> Lasting {
        match self.lasts {
            Some(span) => Lasting::For(span),
            None if self.name.row().is_instant && !self.waits() => Lasting::Moment,
            None => Lasting::ToTheEnd,
        }
    }

    /// The kinds of requests that the fault affects.
    pub fn on(&self) -> On {
        self.on.unwrap_or(self.name.row().on)
    }

    /// Maximum number of effects; `None` means no limit.
    pub fn count_most(&self) -> Option<u64> {
        self.count.or_else(|| (self.name.row().once && self.probability.is_none()).then_some(1))
    }

    /// Whether the fault's keys choose a request or stream with these properties; `resource` is the full name.
    pub(super) fn matches(&self, resource: &str, user_agent: &str, query: &str, endpoint: u32) -> bool {
        let plural = resource.split_once('.').map_or(resource, |(plural, _)| plural);
        self.resource.as_deref().is_none_or(|wanted| wanted == resource || wanted == plural)
            && self.user_agent.as_deref().is_none_or(|part| user_agent.contains(part))
            && self.query.as_deref().is_none_or(|part| query.contains(part))
            && self.endpoint.is_none_or(|wanted| wanted == endpoint)
    }
}
