//! The access of faults to the parts of a run that the main task owns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use loadgen::admission::Truth;

use crate::run::front::Front;
use crate::run::ready::Ready;
use crate::run::start::{Endpoints, Launcher};
use crate::run::trouble::Access;
use crate::run::validators::Validators;
use crate::run::world::World;
use crate::scenario::Scenario;
use crate::subject::{Launch, Log, Processes};

pub(super) struct Owned<'x, 'a> {
    pub(super) world: &'x World,
    pub(super) launcher: &'x Launcher<'a>,
    pub(super) endpoints: &'x mut Endpoints,
    pub(super) processes: &'x mut Processes,
    pub(super) log: &'x Log,
    pub(super) validators: &'x Validators,
    pub(super) truth: Option<&'x Arc<Truth>>,
}

impl Access for Owned<'_, '_> {
    fn scenario(&self) -> &Scenario {
        self.launcher.scenario()
    }

    fn processes(&mut self) -> &mut Processes {
        self.processes
    }

    fn log(&self) -> &Log {
        self.log
    }

    fn validators(&self) -> &Validators {
        self.validators
    }

    fn truth(&self) -> Option<&Arc<Truth>> {
        self.truth
    }

    fn launch(&self) -> Result<(Launch, Ready, Option<SocketAddr>)> {
        let (start, ready, address) = self.launcher.launch(self.world)?;
        let launch = start.launches().first().cloned().context("the command of the subject is not known")?;
        Ok((launch, ready, address))
    }

    fn take_over(&mut self, serves: Option<SocketAddr>, health: Option<SocketAddr>) -> Option<SocketAddr> {
        self.endpoints.take_over(serves, health)
    }

    fn front(&self) -> Option<Arc<Front>> {
        self.endpoints.front.clone()
    }

    fn rotate_certificate(&self, valid: Duration) -> Result<()> {
        self.world.rotate_certificate(Some(valid)).context("failed to replace the subject's certificate")
    }

    fn change_keys(&self) -> Result<()> {
        let trusted = self.world.trusted.as_ref().context("the run makes no keys")?;
        trusted.change(&self.world.images, self.truth.map(AsRef::as_ref))
    }

    fn references(&self) -> Vec<String> {
        let exist = self.world.images.iter().filter(|image| image.digest.is_some());
        exist.map(|image| image.reference.clone()).collect()
    }

    fn move_tag(&self, reference: &str) -> Result<()> {
        let moved = self.world.registry.move_tag(reference);
        moved.map(drop).with_context(|| format!("failed to move the tag {reference}"))
    }
}
