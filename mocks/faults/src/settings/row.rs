//! The row of a fault: its name, description, keys and defaults. It stands in the fault's own file.
//!
//! Owns the shape of a row. The list of all rows is `catalogue.rs`; settings, schema, docs/faults.md and the engine
//! read the row and have no list of their own.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::own::{Keys, NoKeys, Read, Takes, read};
use super::{Error, Fault, On};

/// The facts about a fault that differ between faults.
pub struct Row {
    /// As scenarios spell it.
    pub name: &'static str,
    /// The effect, in one sentence.
    pub doc: &'static str,
    /// The sort of target.
    pub family: Family,
    /// The keys that choose the target.
    pub chooses: &'static [&'static str],
    /// The keys that shape the effect.
    pub takes: &'static [Takes],
    /// Reads the keys of `takes`.
    pub(crate) read: Read,
    /// The schema of these keys.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    /// The client's view, for the page on faults.
    pub sees: &'static str,
    /// The definition of a hit.
    pub hit: &'static str,
    /// Whether the fault is momentary if it has a time and no `for`.
    pub is_instant: bool,
    /// The requests that the fault concerns if `on` is absent.
    pub on: On,
    /// Whether the fault has one effect if neither `count` nor `probability` is set.
    pub once: bool,
    /// Refuses values that this fault cannot use although others could.
    pub refuses: fn(&Fault) -> Result<(), Error>,
    /// The arguments of a fault that a draw only names.
    pub drawn: Drawn,
}

/// The arguments of a fault that is drawn by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The duration in seconds, unless the fault is momentary.
    pub for_s: u64,
    /// The most effects; `None` means no limit but the fault's own.
    pub count: Option<u64>,
}

/// The target of a fault, which determines its player and the keys that choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Single requests, before they are answered.
    Requests,
    /// Watches, while they are open.
    Watches,
    /// The store or the users, independently of requests.
    Server,
    /// Connections of the mock API server.
    Connections,
    /// The network in front of any control plane: played by `mock_proxy`.
    Network,
    /// The mock registry.
    Registry,
    /// The clock of a process of the subject, played by the starter of the process.
    Clock,
    /// The Pods of a deployed subject.
    Pods,
    /// The programs of a real control plane.
    Plane,
    /// Workloads that the mock API server makes ready.
    Workloads,
}

impl Family {
    /// Whether the faults of the family can be played with any control plane, not by the mock API server.
    pub fn is_played_anywhere(self) -> bool {
        matches!(self, Self::Network | Self::Registry | Self::Clock)
    }

    /// Whether only the mock API server can play the faults of the family.
    pub fn is_of_the_mock(self) -> bool {
        matches!(self, Self::Requests | Self::Watches | Self::Server | Self::Connections | Self::Workloads)
    }

    /// Whether the faults take their own time: Pods and programs end and come back.
    pub fn takes_its_time(self) -> bool {
        matches!(self, Self::Pods | Self::Plane)
    }

    /// The keys that choose the targets of the family's faults.
    const fn chooses(self) -> &'static [&'static str] {
        match self {
            Self::Requests => &["resource", "userAgent", "on", "query", "nth", "every", "endpoint"],
            Self::Watches => &["resource", "userAgent", "query", "nth", "every", "endpoint", "afterEvents"],
            Self::Server | Self::Clock | Self::Pods | Self::Plane => &[],
            Self::Connections => &["nth", "every", "endpoint"],
            Self::Workloads => &["resource"],
            Self::Network => &["nth", "every"],
            Self::Registry => &["repository", "userAgent", "nth", "every"],
        }
    }
}

impl Row {
    /// A row of a family, with the defaults of most rows.
    pub(crate) const fn new(family: Family, name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            family,
            chooses: family.chooses(),
            takes: &[],
            read: read::<NoKeys>,
            schema: <NoKeys as JsonSchema>::json_schema,
            sees: "",
            hit: "",
            is_instant: false,
            on: On::Watch,
            once: false,
            refuses: |_| Ok(()),
            drawn: Drawn { for_s: 8, count: None },
        }
    }

    /// A row of a fault of watches.
    pub(crate) const fn watches(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Watches, name, doc)
    }

    /// A row of a fault of requests.
    pub(crate) const fn requests(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Requests, name, doc)
    }

    /// A row of a fault of the server itself.
    pub(crate) const fn server(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Server, name, doc)
    }

    /// A row of a fault of connections: of new ones, or of those that carry a matching watch.
    pub(crate) const fn connections(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Connections, name, doc)
    }

    /// Sets the keys that shape the effect.
    pub(crate) const fn takes<K: Keys>(mut self) -> Self {
        self.takes = K::TAKES;
        self.read = read::<K>;
        self.schema = <K as JsonSchema>::json_schema;
        self
    }

    pub(crate) const fn sees(mut self, what: &'static str) -> Self {
        self.sees = what;
        self
    }

    pub(crate) const fn hit(mut self, what: &'static str) -> Self {
        self.hit = what;
        self
    }

    pub(crate) const fn instant(mut self) -> Self {
        self.is_instant = true;
        self
    }

    pub(crate) const fn on(mut self, on: On) -> Self {
        self.on = on;
        self
    }

    pub(crate) const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Sets the arguments for a draw, if they are not the usual ones.
    pub(crate) const fn drawn(mut self, for_s: u64, count: Option<u64>) -> Self {
        self.drawn = Drawn { for_s, count };
        self
    }

    /// Sets the keys that choose, if they are not the family's.
    pub(crate) const fn chooses(mut self, keys: &'static [&'static str]) -> Self {
        self.chooses = keys;
        self
    }

    /// Lets a fault of connections be chosen by the watches on them.
    pub(crate) const fn finds_watches(self) -> Self {
        self.chooses(Family::Watches.chooses())
    }

    pub(crate) const fn refuses(mut self, refuses: fn(&Fault) -> Result<(), Error>) -> Self {
        self.refuses = refuses;
        self
    }

    /// The declaration of a key of this row.
    pub fn key(&self, key: &str) -> Option<&'static Takes> {
        self.takes.iter().find(|(name, ..)| *name == key)
    }
}
