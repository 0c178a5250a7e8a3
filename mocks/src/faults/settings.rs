//! The configuration of a fault, as a scenario file writes it.
//!
//! Owns the keys, their types and which of them belong to which fault. It must not do anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

use super::{Behaviour, event_dropped, rewind, silent_watch, watch_410, watch_reset};

/// One scheduled fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    /// Which misbehaviour.
    pub name: Name,
    /// When it begins, counted from the start of the phase that the scenario says.
    pub at: Span,
    /// How long it lasts; without it the fault is one moment.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Only watches of this resource: `pods`, `packages` or `packages.longhaul.dev`. All of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The most effects it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Only clients whose `User-Agent` contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// The chance of each single effect, 0 to 1, decided by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// `watch-410` only: how the refusal is spelled. Default: both in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// `silent-watch` only: how watches fare that open while it lasts. Default: `healthy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_streams: Option<NewStreams>,
    /// `silent-watch` only: whether a silenced stream speaks again at the end. Default: false, a frozen path stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heals: Option<bool>,
    /// `event-dropped` only: drop only events of this kind. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// `rewind` only: how old the backup is. Default: 10 seconds; at most as old as the history that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// `rewind` only: what a watch gets that resumes from beyond the backup. Default: `silent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer: Option<Newer>,
    /// `rewind` only: what becomes of open watches. Default: `kept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<Watches>,
}

/// The catalogue of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// The connection of each open watch is reset (RST; `RST_STREAM` on HTTP/2).
    WatchReset,
    /// The history is compacted to now and open watches end: resuming answers 410.
    #[serde(rename = "watch-410")]
    Watch410,
    /// Open watches stay open and get no bytes.
    SilentWatch,
    /// Committed events are never sent on a stream.
    EventDropped,
    /// The store goes back to an older state and hands out its revisions again, as after a restore from a backup.
    Rewind,
}

/// How a 410 is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As the status of the response.
    Http,
    /// As 200 with an `ERROR` event.
    Stream,
    /// In turn.
    Both,
}

/// How watches fare that open while others are silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewStreams {
    /// They work.
    Healthy,
    /// They are silent too.
    Silent,
}

/// What a watch gets that resumes from a revision which the restored store has not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Newer {
    /// It is accepted and hears nothing until the counter has passed that revision.
    Silent,
    /// 410.
    Gone,
    /// 504 with the cause `ResourceVersionTooLarge`.
    TooLarge,
}

/// What becomes of the watches that are open during a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Watches {
    /// They stay open and hear nothing until the counter has passed what they know.
    Kept,
    /// They are reset, everybody's.
    Cut,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
}

/// Why a fault was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key that another fault understands.
    #[error("`{key}` has no meaning for `{fault}`: it belongs to `{owner}`")]
    NotItsKey {
        /// The key.
        key: &'static str,
        /// The fault it was given to.
        fault: &'static str,
        /// The fault that understands it.
        owner: &'static str,
    },
    /// A probability outside 0 to 1.
    #[error("`probability` is {given}: write a number between 0 and 1, for example `0.05`")]
    Probability {
        /// What was written.
        given: String,
    },
    /// `count: 0`.
    #[error("`count` is 0: a fault that may have no effect proves nothing; leave it out or write 1 or more")]
    NoCount,
    /// The same id was begun twice without an end.
    #[error("fault {id} is already running: end it first")]
    AlreadyRunning {
        /// The id.
        id: u32,
    },
}

impl Name {
    /// The name as scenarios spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WatchReset => "watch-reset",
            Self::Watch410 => "watch-410",
            Self::SilentWatch => "silent-watch",
            Self::EventDropped => "event-dropped",
            Self::Rewind => "rewind",
        }
    }

    /// The list of faults: one line each.
    pub(super) fn behaviour(self, fault: &Fault) -> Box<dyn Behaviour> {
        match self {
            Self::WatchReset => Box::new(watch_reset::WatchReset),
            Self::Watch410 => Box::new(watch_410::Watch410::new(fault)),
            Self::SilentWatch => Box::new(silent_watch::SilentWatch::default()),
            Self::EventDropped => Box::new(event_dropped::EventDropped),
            Self::Rewind => Box::new(rewind::Rewind::new(fault)),
        }
    }
}

impl Fault {
    /// A fault with its defaults, at `at`.
    pub fn new(name: Name, at: Span) -> Self {
        Self {
            name,
            at,
            lasts: None,
            resource: None,
            count: None,
            user_agent: None,
            probability: None,
            form: None,
            new_streams: None,
            heals: None,
            change: None,
            age: None,
            newer: None,
            watches: None,
        }
    }

    /// Refuses settings that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        let fault = self.name.as_str();
        for (key, given, owner) in [
            ("form", self.form.is_some(), Name::Watch410),
            ("newStreams", self.new_streams.is_some(), Name::SilentWatch),
            ("heals", self.heals.is_some(), Name::SilentWatch),
            ("change", self.change.is_some(), Name::EventDropped),
            ("age", self.age.is_some(), Name::Rewind),
            ("newer", self.newer.is_some(), Name::Rewind),
            ("watches", self.watches.is_some(), Name::Rewind),
        ] {
            if given && self.name != owner {
                return Err(Error::NotItsKey { key, fault, owner: owner.as_str() });
            }
        }
        if let Some(given) = self.probability.filter(|p| !(0.0..=1.0).contains(p)) {
            return Err(Error::Probability { given: given.to_string() });
        }
        if self.count == Some(0) {
            return Err(Error::NoCount);
        }
        Ok(())
    }

    /// Whether the fault is about such a stream.
    pub(super) fn matches(&self, resource: &str, user_agent: &str) -> bool {
        let plural = resource.split_once('.').map_or(resource, |(plural, _)| plural);
        self.resource.as_deref().is_none_or(|wanted| wanted == resource || wanted == plural)
            && self.user_agent.as_deref().is_none_or(|part| user_agent.contains(part))
    }
}
