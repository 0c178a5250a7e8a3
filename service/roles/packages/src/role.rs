//! The packages role: its configuration section, its start and its end.

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_core::config::{Kubernetes, kind};
use service_core::role::{About, Prepared, Role, Running, Start, Started};
use service_watch::config::Watch;

use crate::config::Packages;
use crate::controller::Controller;

const ABOUT: About = About {
    name: "packages",
    help: "Only watch and reconciler",
    sections: &[kind::<Kubernetes>(), kind::<Watch>(), kind::<Packages>()],
    needs: &[],
    lacks: "",
    always: true,
};

#[derive(Debug)]
pub struct PackagesRole;

impl Role for PackagesRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&self, _: &mut Start<'_>) -> anyhow::Result<Prepared> {
        Ok(Prepared::of(|start| std::future::ready(begin(start)).boxed()))
    }
}

fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let metrics = start.watches();
    let controller = Controller::start(start, &metrics).context("failed to start the watch")?;
    let probes = controller.probes().into();
    Ok(Started { served: None, probes, reload: None, running: Box::new(Tasks(Some(controller))) })
}

/// The controller; `None` after the end of the role.
struct Tasks(Option<Controller>);

impl Running for Tasks {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        async move {
            match &mut self.0 {
                Some(controller) => format!("the watch broke: {}", controller.broken().await),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }

    /// Ends the watch, for which no caller waits, but lets open writes finish.
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
