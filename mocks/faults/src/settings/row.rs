//! What there is to say of a fault: one row, which stands in the fault's own file.
//!
//! Owns the shape of a row. The list of all rows is `catalogue.rs`; settings, schema, docs/faults.md and the engine ask a row
//! and have no list of their own.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::own::{Keys, NoKeys, Read, Takes, read};
use super::{Error, Fault, On};

/// A fault, as far as it differs from others.
pub struct Row {
    /// As scenarios spell it.
    pub name: &'static str,
    /// What happens, in one sentence.
    pub doc: &'static str,
    /// What it acts on.
    pub family: Family,
    /// The keys that say what is hit.
    pub chooses: &'static [&'static str],
    /// The keys that say how.
    pub takes: &'static [Takes],
    /// Reads them.
    pub(crate) read: Read,
    /// Their schema.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    /// What the client sees, for those who look a fault up.
    pub sees: &'static str,
    /// What is counted.
    pub hit: &'static str,
    /// It is one moment when it has a time and no `for`.
    pub is_instant: bool,
    /// Which requests it is about when `on` does not say.
    pub on: On,
    /// It has one effect when neither `count` nor `probability` says otherwise.
    pub once: bool,
    /// Refuses values that this fault cannot use and others could.
    pub refuses: fn(&Fault) -> Result<(), Error>,
    /// What it gets when a draw names it and says no more.
    pub drawn: Drawn,
}

/// The arguments of a fault that is drawn by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// How long it lasts, in seconds, where it is not one moment.
    pub for_s: u64,
    /// The most effects it has; none is no limit but the fault's own.
    pub count: Option<u64>,
}

/// What a fault acts on, and so who plays it and which keys choose its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Single requests, before they are answered.
    Requests,
    /// Watches, while they are open.
    Watches,
    /// The store or the users, without regard to who asks.
    Server,
    /// Connections of the mock API server.
    Connections,
    /// The network in front of any control plane: played by `mock_proxy`.
    Network,
    /// The mock registry.
    Registry,
    /// The clock of a process of the subject: played by whoever starts it.
    Clock,
    /// The Pods of a subject that is deployed.
    Pods,
    /// The programs of a real control plane.
    Plane,
    /// Workloads that the mock API server lets become ready.
    Workloads,
}

impl Family {
    /// Whether its faults are played with any control plane, not by the mock API server.
    pub fn is_played_anywhere(self) -> bool {
        matches!(self, Self::Network | Self::Registry | Self::Clock)
    }

    /// Whether its faults are played by the mock API server, and with no other control plane.
    pub fn is_of_the_mock(self) -> bool {
        matches!(self, Self::Requests | Self::Watches | Self::Server | Self::Connections | Self::Workloads)
    }

    /// Whether its faults take as long as they take: Pods and programs that end and come back.
    pub fn takes_its_time(self) -> bool {
        matches!(self, Self::Pods | Self::Plane)
    }

    /// The keys that choose what its faults hit.
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
    /// A row of a family, with everything else as most have it.
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

    /// A fault of watches.
    pub(crate) const fn watches(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Watches, name, doc)
    }

    /// A fault of requests.
    pub(crate) const fn requests(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Requests, name, doc)
    }

    /// A fault of the server itself.
    pub(crate) const fn server(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Server, name, doc)
    }

    /// A fault of connections: of new ones, or of those that carry a matching watch.
    pub(crate) const fn connections(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Connections, name, doc)
    }

    /// It takes these keys.
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

    /// A draw gives it other arguments than most.
    pub(crate) const fn drawn(mut self, for_s: u64, count: Option<u64>) -> Self {
        self.drawn = Drawn { for_s, count };
        self
    }

    /// It chooses by other keys than its family.
    pub(crate) const fn chooses(mut self, keys: &'static [&'static str]) -> Self {
        self.chooses = keys;
        self
    }

    /// It looks for watches, though it acts on what carries them.
    pub(crate) const fn finds_watches(self) -> Self {
        self.chooses(Family::Watches.chooses())
    }

    pub(crate) const fn refuses(mut self, refuses: fn(&Fault) -> Result<(), Error>) -> Self {
        self.refuses = refuses;
        self
    }

    /// How the fault takes a key that says how.
    pub fn key(&self, key: &str) -> Option<&'static Takes> {
        self.takes.iter().find(|(name, ..)| *name == key)
    }
}
