//! The configuration of a fault, as a scenario file writes it.
//!
//! Owns the keys with their units, and whether a list of faults makes sense. Which key belongs to which fault, and its
//! default, say the rows. It must not do anything.

mod error;
mod keys;
mod turns;
mod values;

use std::collections::BTreeMap;

use facts::Change;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span, Throughput};

use super::Name;
use super::row::{Family, Row};

pub use error::Error;
pub use keys::check_all;
#[cfg(test)]
pub(super) use keys::{OF_ALL, defaults_of_on, those};
pub use turns::{Every, Nth};
pub use values::{
    Code, Connections, Direction, ErrorBody, Form, How, Http2Code, Kind, NewConnections, NewStreams, Newer, On, Then,
    Watches, When,
};

/// One scheduled fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(transform = keys::describe)]
pub struct Fault {
    /// Which misbehaviour.
    pub name: Name,
    /// A label, unique among the faults: another fault's `when` or a script's step may wait for this fault's first hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When it begins, counted from the start of the warm-up. Without `at` and `when` it begins before the subject starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Span>,
    /// Instead of `at`: begins after the first hit of another fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// How long it lasts. Default: a fault that cuts, compacts or restores is one moment when it has `at` or `when`, and
    /// neither `nth`, `every` nor `afterEvents`: it acts on what is open then and on nothing that opens later; every other one lasts until
    /// the load ends.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Only requests and watches of this resource: `pods`, `packages` or `packages.longhaul.dev`. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Which requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    /// Only requests whose query string, as it was sent, contains this: `sendInitialEvents=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only clients whose `User-Agent` contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// `registry-…` only: only requests about this repository, or about those that begin so when it ends in `*`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Only this endpoint of the control plane: 0 is the first one, the further ones count from 1. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<u32>,
    /// Only the n-th matching request since the fault began, counted from 1, a range `{from: 2, to: 7}`, or a list `[2, 4, 6]`; watches that
    /// are open when it begins are not concerned then. For faults on new connections and on the network the n-th
    /// connection. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<Nth>,
    /// Instead of `nth`: only each second, third, … matching request since the fault began, as `2nd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Acts on a watch once it has sent so many events, the initial ones included, bookmarks not. Default: 0, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_events: Option<u64>,
    /// The most effects it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The chance of each single effect, 0 to 1, decided by the seed. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// How a refusal is spelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// How watches fare that open while it lasts. Default: `healthy` for a fault with a time and neither `nth`, `every` nor
    /// `afterEvents`, else `silent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_streams: Option<NewStreams>,
    /// Whether what stood still goes on when the fault ends; otherwise it stays so for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heals: Option<bool>,
    /// Only events of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What stands in events instead of what was committed: values by their JSON pointers in the object; `null` takes the field away, and
    /// `"${other}"` is what the newest event of another object had there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<BTreeMap<String, serde_json::Value>>,
    /// How old the state is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// What a watch gets that resumes from beyond the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<Newer>,
    /// What becomes of open watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<Watches>,
    /// The status, 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The header `Retry-After`, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
    /// The `reason` of the `Status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the answer carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<ErrorBody>,
    /// How much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// What is added to `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Only some watches, not every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// How much older than at the beginning of the fault the state is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Which connections see it: all, or those that opened after the fault began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Refuses every request that names a revision, not only those with one that was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// How many items a page has at the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// What stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Whether the first half of an event's line is sent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_line: Option<bool>,
    /// The status as a number, or the error of HTTP/2 as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What becomes of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// How many events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// How many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// How long nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// Whether the headers are concerned too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<bool>,
    /// Bytes in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Throughput>,
    /// How connections fare that open while it lasts. Default: `healthy` for a fault with a time and neither `nth`, `every` nor
    /// `afterEvents`, else `frozen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_connections: Option<NewConnections>,
    /// Whether nothing else is sent either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    /// Whether open streams go on until they end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
    /// How connections are turned away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
    /// How many streams a connection may have at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// What is wrong with the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Which way nothing passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// It ends as soon as it has begun.
    Moment,
    /// So long.
    For(Span),
    /// Until the load ends.
    ToTheEnd,
}

impl Fault {
    /// A fault with its defaults, at `at`.
    pub fn new(name: Name, at: Span) -> Self {
        Self { at: Some(at), ..Self::armed(name) }
    }

    /// A fault with its defaults that begins before the subject starts.
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
            form: None,
            new_streams: None,
            heals: None,
            change: None,
            set: None,
            age: None,
            newer: None,
            watches: None,
            status: None,
            retry_after: None,
            reason: None,
            body: None,
            delay: None,
            jitter: None,
            stale: None,
            behind: None,
            connections: None,
            always: None,
            items: None,
            keep: None,
            content_type: None,
            mid_line: None,
            code: None,
            then: None,
            events: None,
            bytes: None,
            pause: None,
            headers: None,
            rate: None,
            new_connections: None,
            silent: None,
            drain: None,
            how: None,
            streams: None,
            kind: None,
            direction: None,
        }
    }

    /// Refuses settings that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        keys::check(self)
    }

    /// Whether it begins before the subject starts.
    pub fn is_armed_before(&self) -> bool {
        self.at.is_none() && self.when.is_none()
    }

    /// Whether it chooses by number, and so is about what comes after its beginning.
    pub fn counts_turns(&self) -> bool {
        self.nth.is_some() || self.every.is_some()
    }

    /// Whether number `number` of what it could act on, counted from 1 since it began, is one that it is about.
    pub fn is_turn(&self, number: u64) -> bool {
        self.nth.as_ref().is_none_or(|nth| nth.contains(number))
            && self.every.is_none_or(|every| every.contains(number))
    }

    /// Whether it is there before what it is meant for.
    pub(super) fn waits(&self) -> bool {
        self.is_armed_before() || self.counts_turns() || self.after_events.is_some()
    }

    /// How long it lasts, as `for` and its name say.
    pub fn lasting(&self) -> Lasting {
        match self.lasts {
            Some(span) => Lasting::For(span),
            None if self.name.row().is_instant && !self.waits() => Lasting::Moment,
            None => Lasting::ToTheEnd,
        }
    }

    /// The requests it is about.
    pub fn on(&self) -> On {
        self.on.unwrap_or(self.name.row().on)
    }

    /// The most effects it may have; `None` is no limit.
    pub fn count_most(&self) -> Option<u64> {
        self.count.or_else(|| (self.name.row().once && self.probability.is_none()).then_some(1))
    }

    /// Whether the fault is about such a request or stream; `resource` is the full name.
    pub(super) fn matches(&self, resource: &str, user_agent: &str, query: &str, endpoint: u32) -> bool {
        let plural = resource.split_once('.').map_or(resource, |(plural, _)| plural);
        self.resource.as_deref().is_none_or(|wanted| wanted == resource || wanted == plural)
            && self.user_agent.as_deref().is_none_or(|part| user_agent.contains(part))
            && self.query.as_deref().is_none_or(|part| query.contains(part))
            && self.endpoint.is_none_or(|wanted| wanted == endpoint)
    }
}
