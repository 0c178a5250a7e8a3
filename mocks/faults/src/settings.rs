//! The configuration of a fault, as a scenario file writes it.
//!
//! Owns the keys with their units and defaults, and whether a list of faults makes sense. Which key belongs to which
//! fault is the table in `settings/keys.rs`. It must not do anything.

mod error;
mod keys;
mod name;
mod values;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span, Throughput};

pub use error::Error;
pub use keys::check_all;
pub use name::{Family, Name};
pub use values::{
    Change, Code, Connections, Direction, ErrorBody, Form, How, Http2Code, Kind, NewConnections, NewStreams, Newer,
    Nth, On, Then, Watches, When,
};

/// One scheduled fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// neither `nth` nor `afterEvents`; every other one lasts until the load ends.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Only requests and watches of this resource: `pods`, `packages` or `packages.longhaul.dev`. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Which requests. Default: `list` for `delay-answer`, `forced-pages` and `unordered`, `any` for `stale-view`,
    /// `too-large` and `wrong-content-type`, else `watch`.
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
    /// Only the n-th matching request since the fault began, counted from 1, or a range `{from: 2, to: 7}`; watches that
    /// are open when it begins are not concerned then. For faults on new connections and on the network the n-th
    /// connection. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<Nth>,
    /// Acts on a watch once it has sent so many events, the initial ones included, bookmarks not. Default: 0, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_events: Option<u64>,
    /// The most effects it may have. Default: 1 for `event-dropped`, `out-of-order`, `truncated-line` and `bookmark-ahead`
    /// without `probability`, else no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The chance of each single effect, 0 to 1, decided by the seed. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// `watch-410`: how the refusal is spelled, `http`, `stream` or `both`; default: `both`, in turn. `too-large`: `modern`
    /// or `old`; default: `modern`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// `silent-watch` only: how watches fare that open while it lasts. Default: `healthy` for a fault with a time and
    /// neither `nth` nor `afterEvents`, else `silent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_streams: Option<NewStreams>,
    /// `silent-watch`, `freeze`, `net-freeze`, and `no-pong` with `silent`: whether what stood still goes on at the end.
    /// Default: false, a frozen path stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heals: Option<bool>,
    /// `event-dropped` only: drop only events of this kind. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// `rewind` and `stale-view`: how old the state is. Default: 10 seconds for `rewind`, 0 for `stale-view`; at most as old
    /// as the history that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// `rewind` only: what a watch gets that resumes from beyond the backup. Default: `silent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<Newer>,
    /// `rewind` only: what becomes of open watches. Default: `kept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<Watches>,
    /// `http-error` and `registry-error`: the status, 400 to 599. Default: 500 and 503.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `http-error` and `registry-error`: the header `Retry-After`, in whole seconds, rounded up. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
    /// `http-error` and `error-event`: the `reason` of the `Status`. Default: the one that belongs to the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `http-error` only: what the answer carries. Default: `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<ErrorBody>,
    /// How much later. Default: 400 ms for `delay-answer`, 1 s for `hold-headers`, `event-delayed` and `initial-end-held`,
    /// 100 ms for `net-latency`, 1 s for `registry-slow` without `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// `net-latency` only: the most that is added to `delay`, decided by the seed. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// `empty-200` only: only watches from a revision that is compacted away, which a healthy server answers with 410.
    /// Default: false, every watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// `stale-view` only: how many revisions old the state is. Default: 0, the state when the fault begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// `stale-view` only: which connections see it. Default: `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// `too-large` only: refuses every request with a `resourceVersion` other than 0. Default: false, only those with one
    /// that the server, or the old state it shows, has not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// `forced-pages` only: how many items a page has at the most. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// `compact` only: how many of the newest revisions stay. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// `wrong-content-type` only: the media type. Default: `text/html`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `watch-eof` only: whether the first half of an event's line is sent before. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_line: Option<bool>,
    /// `error-event`: the status as a number, default 410. `watch-reset` and `goaway`: the error of HTTP/2 as a word, default
    /// `internal-error` and `no-error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// `error-event` only: what becomes of the stream. Default: `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// `event-repeated`: how many events, default 1. `merge-lines`: how many make one piece, default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// `split`: the size of a piece, default 1B. `hold-buffer`: the size of the buffer, default 4KiB. `net-cut`: how many
    /// bytes pass to the subject before the cut, default 1KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// `split` only: the pause after each piece. Default: 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// `hold-buffer` only: whether the headers wait in the buffer too. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<bool>,
    /// `slow-drip`, `net-bandwidth` and `registry-slow`: bytes in a second. Default: 100B/s, 10KiB/s and as fast as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Throughput>,
    /// `freeze`, `net-freeze` and `net-loss`: how connections fare that open while it lasts. Default: `healthy` for a fault
    /// with a time and neither `nth` nor `afterEvents`, else `frozen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_connections: Option<NewConnections>,
    /// `no-pong` only: whether no other byte is sent either. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    /// `goaway` only: whether open streams go on until they end. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
    /// `refuse-connections`, `net-refuse`, `net-cut` and `registry-down`: how; `hang` not for `net-cut`. Default: `reset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
    /// `max-streams` only: how many streams a connection may have at a time. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// `certificate` only: what is wrong with it. Default: `expired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// `net-freeze` and `net-loss`: which way nothing passes. Default: `both`.
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
            after_events: None,
            count: None,
            probability: None,
            form: None,
            new_streams: None,
            heals: None,
            change: None,
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

    /// How long it lasts, as `for` and its name say.
    pub fn lasting(&self) -> Lasting {
        let waits = self.is_armed_before() || self.nth.is_some() || self.after_events.is_some();
        match self.lasts {
            Some(span) => Lasting::For(span),
            None if self.name.is_instant() && !waits => Lasting::Moment,
            None => Lasting::ToTheEnd,
        }
    }

    /// The requests it is about.
    pub fn on(&self) -> On {
        self.on.unwrap_or(match self.name {
            Name::DelayAnswer | Name::ForcedPages | Name::Unordered => On::List,
            Name::StaleView | Name::TooLarge | Name::WrongContentType => On::Any,
            _ => On::Watch,
        })
    }

    /// The most effects it may have; `None` is no limit.
    pub fn count_most(&self) -> Option<u64> {
        let once =
            matches!(self.name, Name::EventDropped | Name::OutOfOrder | Name::TruncatedLine | Name::BookmarkAhead);
        self.count.or_else(|| (once && self.probability.is_none()).then_some(1))
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
