//! Roles of a process: the seam between the program, which has a list of roles and names none, and each of them.
//!
//! A role brings the sections of the file that it reads; started, it hands over its probes, and what reloads and ends it. Roles do not
//! know each other: what one needs of another it borrows here, by a seam.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::alert::AlertSink;
use crate::config::{Config, Kind};
use crate::edge::{Certificates, Handler, Listener, Metrics, Probe};
use crate::judge::Judge;
use crate::known::Knowledge;

/// Something that a process can be.
pub trait Role: Sync {
    /// What is known of it before it is started.
    fn about(&self) -> &'static About;

    /// Refuses what can be seen to be wrong without starting anything, such as keys that cannot be read.
    fn check(&self, config: &Config) -> anyhow::Result<()> {
        let _ = config;
        Ok(())
    }

    /// What somebody who wrote `config` should know of it, though it can be used: a sentence each.
    fn notes(&self, config: &Config) -> Vec<String> {
        let _ = config;
        Vec::new()
    }

    /// Whether it borrows [`Review`] of another role.
    fn borrows(&self, config: &Config) -> bool {
        let _ = config;
        false
    }

    /// The part that it lends, which works without its listener; made before other roles are started. None when it lends nothing.
    fn lend<'a>(&'a self, start: &'a mut Start<'_>) -> anyhow::Result<Option<Lent>> {
        let _ = start;
        Ok(None)
    }

    /// Binds, loads and starts everything; fails before anything is served.
    fn start<'a>(&'a self, start: &'a mut Start<'_>) -> BoxFuture<'a, anyhow::Result<Started>>;
}

/// What is known of a role before it is started.
#[derive(Debug)]
pub struct About {
    /// As the command line calls it.
    pub name: &'static str,
    /// One line for the help.
    pub help: &'static str,
    /// The sections of the file that it reads.
    pub sections: &'static [Kind],
    /// Whether the configuration has the sections without which it cannot be started, its own first.
    pub needs: &'static [fn(&Config) -> bool],
    /// Said where one of them is missing.
    pub lacks: &'static str,
    /// Whether a process with all roles has it without them, too.
    pub always: bool,
}

impl About {
    /// Whether a process with all roles has it.
    pub fn belongs(&self, config: &Config) -> bool {
        self.always || self.needs.first().is_some_and(|has| has(config))
    }

    /// The part that the configuration lacks for it.
    pub fn lacks(&self, config: &Config) -> Option<&'static str> {
        self.needs.iter().any(|has| !has(config)).then_some(self.lacks)
    }
}

/// Whoever reviews objects: the seam between roles that change some and the one that knows the policy.
pub trait Review: Send + Sync + 'static {
    /// The answer to an `AdmissionReview`, as JSON, at the latest at `deadline`; an error when it has none.
    fn review(&self, review: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Takes what may change while the process runs; answers what is new beside the sections. An error changes nothing.
pub type Reload = Box<dyn FnMut(&Config) -> anyhow::Result<Vec<&'static str>> + Send>;

/// The part that a role lends to others.
pub struct Lent {
    /// The lender's own part, for its start.
    pub part: Arc<dyn Any + Send + Sync>,
    /// The lent review.
    pub review: Arc<dyn Review>,
    /// Who answers questions about single images.
    pub judge: Arc<dyn Judge>,
    /// Reloads it.
    pub reload: Reload,
}

/// A role that runs.
pub struct Started {
    /// Where it listens and what answers there; the process serves it.
    pub served: Option<(Listener, Handler)>,
    /// Its checks of health.
    pub probes: Vec<Arc<dyn Probe>>,
    /// Reloads it.
    pub reload: Option<Reload>,
    /// Its end.
    pub running: Box<dyn Running>,
}

/// The tasks of a role.
pub trait Running: Send {
    /// Waits until a part ends that never should; answers why.
    fn broken(&mut self) -> BoxFuture<'_, String>;

    /// Readiness is off: whatever nobody waits for ends now, calls are still answered.
    fn leave(&mut self) -> BoxFuture<'_, ()>;

    /// The last call is answered: everything ends.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Everything that a role is given when it starts.
pub struct Start<'a> {
    /// The file.
    pub config: &'a Config,
    /// Where accepted events are posted; the first role that watches takes it.
    pub witness_url: Option<&'a str>,
    /// Where numbers are registered.
    pub metrics: &'a mut Registry,
    /// Numbers of listeners.
    pub edge: &'a Metrics,
    /// Numbers of certificates.
    pub certificates: &'a Certificates,
    /// Changed to make whatever follows files look at them now.
    pub look: &'a channel::Sender<u64>,
    /// Tasks that end with the process; one that ends earlier breaks it.
    pub background: &'a mut JoinSet<()>,
    /// The review that another role lends.
    pub review: Option<Arc<dyn Review>>,
    /// The same for questions about single images.
    pub judge: Option<Arc<dyn Judge>>,
    /// The sink of alerts about reviews.
    pub alerts: Option<Arc<dyn AlertSink>>,
    /// What other processes of the service have found.
    pub known: Option<Arc<dyn Knowledge>>,
    /// This role's own part of what it lends.
    pub part: Option<Arc<dyn Any + Send + Sync>>,
    /// Shared values by their types.
    pub shared: &'a mut Shared,
}

/// Values that the roles of a process have in common, such as the counts of all watches.
#[derive(Default)]
pub struct Shared(HashMap<TypeId, Box<dyn Any + Send>>);

impl Start<'_> {
    /// The shared value of this type, made by the first that asks.
    pub fn shared<T: Clone + Send + 'static>(&mut self, make: impl FnOnce(&mut Registry) -> T) -> T {
        let known = self.shared.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(make(self.metrics)));
        known.downcast_ref::<T>().expect("it is kept by its type").clone()
    }
}
