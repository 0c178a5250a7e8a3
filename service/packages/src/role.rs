//! The role: its section, its start and its end.

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_core::config::{Config, Kind, Kubernetes, kind};
use service_core::role::{Role, Running, Start, Started};
use service_watch::Metrics;
use service_watch::config::Watch;

use crate::config::Reconcile;
use crate::controller::Controller;

const SECTIONS: &[Kind] = &[kind::<Kubernetes>(), kind::<Watch>(), kind::<Reconcile>()];

/// Packages are watched and reconciled.
#[derive(Debug)]
pub struct Packages;

impl Role for Packages {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn about(&self) -> &'static str {
        "Only watch and reconciler"
    }

    fn sections(&self) -> &'static [Kind] {
        SECTIONS
    }

    fn belongs(&self, _: &Config) -> bool {
        true
    }

    fn lacks(&self, _: &Config) -> Option<&'static str> {
        None
    }

    fn start<'a>(&'a self, start: &'a mut Start<'_>) -> BoxFuture<'a, anyhow::Result<Started>> {
        async move {
            let metrics = start.shared(Metrics::register);
            let controller = Controller::start(start, &metrics).context("failed to start the watch")?;
            let probes = controller.probes().into();
            Ok(Started { served: None, probes, reload: None, running: Box::new(Stage(Some(controller))) })
        }
        .boxed()
    }
}

/// The controller until it is left.
struct Stage(Option<Controller>);

impl Running for Stage {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        async move {
            match &mut self.0 {
                Some(controller) => format!("the watch broke: {}", controller.broken().await),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }

    /// Writes under way end first; nobody waits for the watch.
    fn leave(&mut self) -> BoxFuture<'_, ()> {
        async move {
            if let Some(controller) = self.0.take() {
                controller.stop().await;
            }
        }
        .boxed()
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}
