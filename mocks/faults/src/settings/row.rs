//! The catalogue entry of a fault (`Row`): its name, description, keys and defaults. The file of each fault defines its
//! entry.
//!
//! `catalogue.rs` lists all entries. Settings, schema, docs/faults.md and the engine read the entries and have no lists
//! of faults of their own.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::own::{Keys, NoKeys, Read, Takes, read};
use super::{Error, Fault, On};

/// The catalogue entry of a fault: the properties in which faults differ.
pub struct Row {
    /// The name of the fault in scenario files.
    pub name: &'static str,
    /// The effect of the fault, in one sentence.
    pub doc: &'static str,
    /// The kind of target, which decides the program that injects the fault.
    pub family: Family,
    /// The keys of the fault that choose targets.
    pub chooses: &'static [&'static str],
    /// The keys of the fault that set details of its effect.
    pub takes: &'static [Takes],
    /// The parts of a run that the fault needs, besides its family's target.
    pub targets: &'static [Target],
    /// Parses the keys of `takes`.
    pub(crate) read: Read,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    /// The effect as a client sees it, for docs/faults.md.
    pub sees: &'static str,
    pub hit: &'static str,
    /// Whether the fault is momentary if it has a time and no `for`.
    pub is_instant: bool,
    /// The kinds of requests that the fault affects if `on` is absent.
    pub on: On,
    /// Whether the fault has one effect if neither `count` nor `probability` is set.
    pub once: bool,
    /// Refuses values that this fault cannot use although other faults can.
    pub refuses: fn(&Fault) -> Result<(), Error>,
    /// The arguments that the fault gets if a random draw names it without arguments.
    pub drawn: Drawn,
}

/// The arguments of a fault that is drawn by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The duration in seconds, unless the fault is momentary.
    pub for_s: u64,
    /// Maximum number of effects; `None` means only the fault's own limit.
    pub count: Option<u64>,
}

/// The kind of target of a fault, which determines the program that injects the fault, and the keys that choose
/// targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Requests, before they are answered.
    Requests,
    /// Watches, while they are open.
    Watches,
    /// The store or the users, independent of requests.
    Server,
    /// Connections of the mock API server.
    Connections,
    /// The network in front of any control plane; `mock_proxy` injects these faults.
    Network,
    Registry,
    /// The clock of a subject's process; the code that starts the process injects these faults.
    Clock,
    /// The processes of a subject; the code that starts the processes injects these faults.
    Process,
    /// The Pods of a deployed subject.
    Pods,
    /// The programs of a real control plane.
    Plane,
    /// Workloads, such as Deployments, that the mock API server makes ready.
    Workloads,
    /// A subject that the run starts, its files, and the programs that it calls.
    Subject,
}

/// A part of a run that only some scenarios have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The process of a webhook that the run starts.
    Process,
    /// The serving certificate of a webhook that the run starts.
    Certificate,
    /// The built-in service.
    Service,
    /// Signed images, with the keys that the service trusts.
    Signatures,
    /// The service's additional processes that verify signatures.
    Validators,
    /// The cache in which the service's processes share verdicts.
    SharedCache,
    /// The file that locks images to digests.
    Lock,
    /// Objects that the subject creates for other objects.
    Children,
}

impl Family {
    /// Whether the faults of the family can be injected with any control plane and need no mock API server.
    pub fn is_played_anywhere(self) -> bool {
        matches!(self, Self::Network | Self::Registry | Self::Clock | Self::Process | Self::Subject)
    }

    /// Whether only the mock API server can inject the faults of the family.
    pub fn is_of_the_mock(self) -> bool {
        matches!(self, Self::Requests | Self::Watches | Self::Server | Self::Connections | Self::Workloads)
    }

    /// Whether the family's faults take as long as Pods or programs need to end and start again.
    pub fn takes_its_time(self) -> bool {
        matches!(self, Self::Pods | Self::Plane | Self::Subject)
    }

    /// The keys that choose the targets of the family's faults.
    const fn chooses(self) -> &'static [&'static str] {
        match self {
            Self::Requests => &["resource", "userAgent", "on", "query", "nth", "every", "endpoint"],
            Self::Watches => &["resource", "userAgent", "query", "nth", "every", "endpoint", "afterEvents"],
            Self::Server | Self::Clock | Self::Process | Self::Pods | Self::Plane | Self::Subject => &[],
            Self::Connections => &["nth", "every", "endpoint"],
            Self::Workloads => &["resource"],
            Self::Network => &["nth", "every"],
            Self::Registry => &["repository", "userAgent", "nth", "every"],
        }
    }
}

impl Row {
    /// A catalogue entry with the values that most faults have.
    pub(crate) const fn new(family: Family, name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            family,
            chooses: family.chooses(),
            takes: &[],
            targets: &[],
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

    /// The catalogue entry of a fault of watches.
    pub(crate) const fn watches(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Watches, name, doc)
    }

    /// The catalogue entry of a fault of requests.
    pub(crate) const fn requests(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Requests, name, doc)
    }

    /// The catalogue entry of a fault of the server itself.
    pub(crate) const fn server(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Server, name, doc)
    }

    /// The catalogue entry of a fault of new connections, or of connections that carry a matching watch.
    pub(crate) const fn connections(name: &'static str, doc: &'static str) -> Self {
        Self::new(Family::Connections, name, doc)
    }

    /// Sets the keys that change details of the effect.
    pub(crate) const fn takes<K: Keys>(mut self) -> Self {
        self.takes = K::TAKES;
        self.read = read::<K>;
        self.schema = <K as JsonSchema>::json_schema;
        self
    }

    /// Sets the parts of a run that the fault needs.
    pub(crate) const fn acts_on(mut self, targets: &'static [Target]) -> Self {
        self.targets = targets;
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

    /// Sets the arguments for a random draw, if they differ from those of most faults.
    pub(crate) const fn drawn(mut self, for_s: u64, count: Option<u64>) -> Self {
        self.drawn = Drawn { for_s, count };
        self
    }

    /// Sets the keys that choose targets, if they differ from those of the family.
    pub(crate) const fn chooses(mut self, keys: &'static [&'static str]) -> Self {
        self.chooses = keys;
        self
    }

    /// Lets a fault of connections choose a connection by its watches.
    pub(crate) const fn finds_watches(self) -> Self {
        self.chooses(Family::Watches.chooses())
    }

    pub(crate) const fn refuses(mut self, refuses: fn(&Fault) -> Result<(), Error>) -> Self {
        self.refuses = refuses;
        self
    }

    /// The declaration of one of the fault's own keys.
    pub fn key(&self, key: &str) -> Option<&'static Takes> {
        self.takes.iter().find(|(name, ..)| *name == key)
    }
}
