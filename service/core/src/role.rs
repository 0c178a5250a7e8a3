//! Roles of a process: the interface between the program, which has a list of roles and names none, and each role.
//!
//! A role brings the sections of the file that it reads. When started, it hands over its probes, and its functions to
//! reload and end it. Roles do not know each other: a role borrows from another one through an interface of this
//! module.

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

pub trait Role: Sync {
    /// Its description before it is started.
    fn about(&self) -> &'static About;

    /// Refuses errors that show without starting anything, such as keys that cannot be read.
    fn check(&self, config: &Config) -> anyhow::Result<()> {
        let _ = config;
        Ok(())
    }

    /// Notes for the author of `config` about a usable configuration, one sentence each.
    fn notes(&self, config: &Config) -> Vec<String> {
        let _ = config;
        Vec::new()
    }

    /// Whether it borrows the [`Review`] of another role.
    fn borrows(&self, config: &Config) -> bool {
        let _ = config;
        false
    }

    /// Puts what other roles borrow into `start`: it works without the role's listener. Called before any role that
    /// borrows is started. `None` if there is nothing to reload.
    fn prepare(&self, start: &mut Start<'_>) -> anyhow::Result<Option<Reload>> {
        let _ = start;
        Ok(None)
    }

    /// Binds, loads and starts everything; fails before anything is served.
    fn start<'a>(&'a self, start: &'a mut Start<'_>) -> BoxFuture<'a, anyhow::Result<Started>>;
}

/// Description of a role before it is started.
#[derive(Debug)]
pub struct About {
    /// Its name on the command line.
    pub name: &'static str,
    pub help: &'static str,
    pub sections: &'static [Kind],
    /// Checks for the sections without which the role cannot start, its own first.
    pub needs: &'static [fn(&Config) -> bool],
    /// The message when one of them is missing.
    pub lacks: &'static str,
    /// Whether a process with all roles includes it even without them.
    pub always: bool,
}

impl About {
    /// Whether a process with all roles includes it.
    pub fn belongs(&self, config: &Config) -> bool {
        self.always || self.needs.first().is_some_and(|has| has(config))
    }

    /// The message about the missing part of the configuration, if one is missing.
    pub fn lacks(&self, config: &Config) -> Option<&'static str> {
        self.needs.iter().any(|has| !has(config)).then_some(self.lacks)
    }
}

/// Reviews objects: the interface between roles that change objects and the role that knows the policy.
pub trait Review: Send + Sync + 'static {
    /// The answer to an `AdmissionReview`, as JSON, by `deadline`; an error if there is none.
    fn review(&self, review: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Applies the settings that may change while the process runs; returns the changes besides the sections. An error
/// changes nothing.
pub type Reload = Box<dyn FnMut(&Config) -> anyhow::Result<Vec<&'static str>> + Send>;

pub struct Started {
    /// Its listener and handler; the process serves them.
    pub served: Option<(Listener, Handler)>,
    pub probes: Vec<Arc<dyn Probe>>,
    pub reload: Option<Reload>,
    pub running: Box<dyn Running>,
}

pub trait Running: Send {
    /// Waits until a part ends that should never end; returns the reason.
    fn broken(&mut self) -> BoxFuture<'_, String>;

    /// Readiness is off: tasks without a waiting caller end now; calls are still answered.
    fn leave(&mut self) -> BoxFuture<'_, ()>;

    /// The last call is answered: everything ends.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The inputs of a role's start.
pub struct Start<'a> {
    pub config: &'a Config,
    /// URL for observations of accepted events; the first role with a watch takes it.
    pub witness_url: Option<&'a str>,
    pub metrics: &'a mut Registry,
    pub edge: &'a Metrics,
    pub certificates: &'a Certificates,
    /// Changed to make all tasks that follow files check them at once.
    pub look: &'a channel::Sender<u64>,
    /// Tasks that end with the process; an earlier end is a failure of the process.
    pub background: &'a mut JoinSet<()>,
    /// The review of the role that knows the policy.
    pub review: Option<Arc<dyn Review>>,
    /// The judge of single images, of the same role.
    pub judge: Option<Arc<dyn Judge>>,
    /// The sink of alerts about reviews.
    pub alerts: Option<Arc<dyn AlertSink>>,
    /// Values shared with other processes of the service.
    pub known: Option<Arc<dyn Knowledge>>,
    /// Shared values by their types.
    pub shared: &'a mut Shared,
}

/// Values that the roles of a process have in common, such as the metrics of all watches.
#[derive(Default)]
pub struct Shared(HashMap<TypeId, Box<dyn Any + Send>>);

impl Start<'_> {
    /// The shared value of this type, made on first use.
    pub fn shared<T: Clone + Send + 'static>(&mut self, make: impl FnOnce(&mut Registry) -> T) -> T {
        let known = self.shared.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(make(self.metrics)));
        known.downcast_ref::<T>().expect("it is kept by its type").clone()
    }

    /// Keeps a value for [`Self::kept`] of the same type.
    pub fn keep<T: Clone + Send + 'static>(&mut self, value: T) {
        self.shared.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The shared value of this type, if there is one.
    pub fn kept<T: Clone + Send + 'static>(&self) -> Option<T> {
        self.shared.0.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }
}
