//! The interface between the program and its roles.
//!
//! A role brings the configuration sections that it reads. A started role returns its probes and the functions that
//! reload and end it. Roles do not know each other: a role uses another role only through an interface that this module
//! defines.

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
use crate::share::ReviewMemory;
use crate::watches::Metrics as Watches;

pub trait Role: Send + Sync {
    fn about(&self) -> &'static About;

    /// Refuses configurations with errors that can be found before a start, such as unreadable keys.
    fn check(&self, config: &Config) -> anyhow::Result<()> {
        let _ = config;
        Ok(())
    }

    /// Notes on a valid `config` for its author, one sentence each.
    fn notes(&self, config: &Config) -> Vec<String> {
        let _ = config;
        Vec::new()
    }

    /// Whether the role uses the [`Review`] of another role.
    fn borrows(&self, config: &Config) -> bool {
        let _ = config;
        false
    }

    /// Writes to `start` the objects that other roles may use; these objects work without the role's own listener. The
    /// program prepares a role that it does not start if a started role uses such objects.
    fn prepare(&self, start: &mut Start<'_>) -> anyhow::Result<Prepared>;
}

/// A role that is prepared: what works from now on, and the rest of its start.
pub struct Prepared {
    /// Reloads the settings of the prepared objects; `None` if none of these settings can be reloaded.
    pub reload: Option<Reload>,
    pub begin: Begin,
}

/// Binds sockets, loads files and starts the tasks of a role. Any failure is returned before the role serves a request.
pub type Begin =
    Box<dyn for<'a, 'b> FnOnce(&'a mut Start<'b>) -> BoxFuture<'a, anyhow::Result<Started>> + Send + 'static>;

impl Prepared {
    /// A role that has no objects for other roles.
    pub fn of(
        begin: impl for<'a, 'b> FnOnce(&'a mut Start<'b>) -> BoxFuture<'a, anyhow::Result<Started>> + Send + 'static,
    ) -> Self {
        Self { reload: None, begin: Box::new(begin) }
    }
}

/// The description of a role before its start.
#[derive(Debug)]
pub struct About {
    /// The role's name on the command line.
    pub name: &'static str,
    pub help: &'static str,
    pub sections: &'static [Kind],
    /// Functions that check for the sections that the role requires; the role's own section comes first.
    pub needs: &'static [fn(&Config) -> bool],
    /// The message if a required section is missing.
    pub lacks: &'static str,
    /// Whether a process with all roles starts this role even if its required sections are missing.
    pub always: bool,
}

impl About {
    /// Whether a process with all roles starts this role.
    pub fn belongs(&self, config: &Config) -> bool {
        self.always || self.needs.first().is_some_and(|has| has(config))
    }

    /// The message about a missing section; `None` if all required sections exist.
    pub fn lacks(&self, config: &Config) -> Option<&'static str> {
        self.needs.iter().any(|has| !has(config)).then_some(self.lacks)
    }
}

/// Reviews objects: the interface through which roles that change objects use the policy of another role.
pub trait Review: Send + Sync + 'static {
    /// Answers an `AdmissionReview` with JSON by `deadline`.
    fn review(&self, review: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, String>>;
}

/// Applies settings that may change while the process runs. Returns the names of applied changes outside the
/// configuration, such as changed contents of files. On an error, the function changes no setting.
pub type Reload = Box<dyn FnMut(&Config) -> anyhow::Result<Vec<&'static str>> + Send>;

pub struct Started {
    pub served: Option<(Listener, Handler)>,
    pub probes: Vec<Arc<dyn Probe>>,
    pub reload: Option<Reload>,
    pub running: Box<dyn Running>,
}

pub trait Running: Send {
    /// Waits for the unexpected end of a task; returns the reason.
    fn broken(&mut self) -> BoxFuture<'_, String>;

    /// Called when the process stops being ready: tasks for which no caller waits end, and calls are still answered.
    fn leave(&mut self) -> BoxFuture<'_, ()>;

    /// Ends all tasks of the role. The program calls `stop` after the last answer.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

pub struct Start<'a> {
    pub config: &'a Config,
    /// The URL that receives observations of accepted watch events. The first role that opens a watch uses this URL.
    pub witness_url: Option<&'a str>,
    pub metrics: &'a mut Registry,
    pub edge: &'a Metrics,
    pub certificates: &'a Certificates,
    /// A channel: if its value changes, all tasks that watch files check their files at once.
    pub look: &'a channel::Sender<u64>,
    /// Tasks that run until the process ends. If one of these tasks ends earlier, the process has failed.
    pub background: &'a mut JoinSet<()>,
    /// The reviewer of the role that owns the policy.
    pub review: Option<Arc<dyn Review>>,
    /// The judge of single images, from the role that owns the policy.
    pub judge: Option<Arc<dyn Judge>>,
    pub alerts: Option<Arc<dyn AlertSink>>,
    /// The cache of results of signature checks that several processes of the service share.
    pub known: Option<Arc<dyn Knowledge>>,
    /// The memory for calls from other processes, which all listeners for such calls share.
    pub calls: &'a Arc<ReviewMemory>,
    /// The metrics of all watches, registered by [`Self::watches`].
    pub watches: &'a mut Option<Watches>,
}

impl Start<'_> {
    /// The metrics of all watches. A process without watches does not serve them.
    pub fn watches(&mut self) -> Watches {
        self.watches.get_or_insert_with(|| Watches::register(self.metrics)).clone()
    }
}
