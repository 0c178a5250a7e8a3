//! Access of faults to the parts of a run that only the run's main task changes.
//!
//! The main task implements [`Access`], so that faults know neither the main task nor the world of a run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use loadgen::admission::Truth;

use crate::run::front::Front;
use crate::run::ready::Ready;
use crate::run::validators::Validators;
use crate::scenario::Scenario;
use crate::subject::{Launch, Log, Processes};

/// The parts of a run that only its main task changes.
pub(in crate::run) trait Access {
    fn scenario(&self) -> &Scenario;

    fn processes(&mut self) -> &mut Processes;

    fn log(&self) -> &Log;

    fn validators(&self) -> &Validators;

    /// The right answers to reviews, with which the load compares the webhook's answers.
    fn truth(&self) -> Option<&Arc<Truth>>;

    /// The subject's next process, its readiness condition, and its review endpoint.
    fn launch(&self) -> Result<(Launch, Ready, Option<SocketAddr>)>;

    /// Sets the addresses of the process that runs now. Returns the address of the process before it.
    fn take_over(&mut self, serves: Option<SocketAddr>, health: Option<SocketAddr>) -> Option<SocketAddr>;

    /// The address in front of the subject's processes, if a fault replaces the process.
    fn front(&self) -> Option<Arc<Front>>;

    fn rotate_certificate(&self, valid: Duration) -> Result<()>;

    /// Replaces one of the trusted keys.
    fn change_keys(&self) -> Result<()>;

    /// The references of the images that exist.
    fn references(&self) -> Vec<String>;

    fn move_tag(&self, reference: &str) -> Result<()>;
}

/// Work of a fault for the main task of the run.
pub(super) type Order = Box<dyn FnOnce(&mut dyn Access) + Send>;
