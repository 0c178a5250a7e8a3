//! The alerting role: accepts alerts from other processes and sends them to the receivers of this process.

use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use service_contract::ALERTS;
use service_contract::alerts::{ALERTS_MAX, Brought, Taken};
use service_contract::answer;
use service_contract::endpoint::{Endpoint, Refusal, Route};
use service_core::alert::AlertSink;
use service_core::config::{Config, kind};
use service_core::edge::Labels;
use service_core::judge::CONTRACT;
use service_core::role::{About, Prepared, Role, Start, Started};
use tokio::time::Instant;

use crate::config::Alerting;

const LABELS: Labels = Labels {
    check: "alerting-certificate",
    server: "alerting",
    client_ca: "alerting-client-ca",
    revoked: "alerting-revoked",
};
const ROUTES: &[Route] = &[Route { method: Method::POST, path: ALERTS }];

const ABOUT: About = About {
    name: "alerting",
    help: "Only receivers of alerts, for webhooks that bring them",
    sections: &[kind::<Alerting>()],
    needs: &[has_listener],
    lacks: "`alerting.listener` (listen, certificate, key, clientCA) in the configuration",
    always: false,
};

fn has_listener(config: &Config) -> bool {
    config.find::<Alerting>().is_some_and(|settings| settings.listener.is_some())
}

#[derive(Debug)]
pub struct AlertingRole;

impl Role for AlertingRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn prepare(&self, _: &mut Start<'_>) -> anyhow::Result<Prepared> {
        Ok(Prepared::of(|start| begin(start).boxed()))
    }
}

async fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let settings = start.config.find::<Alerting>().and_then(|settings| settings.listener.as_ref());
    let settings = settings.context("`alerting.listener` is missing")?;
    let sink = start.alerts.clone().context("the section `alerting` is missing")?;
    settings.open(LABELS, Paths(sink), start).await
}

/// The HTTP endpoint, which passes received alerts to its sink.
struct Paths(Arc<dyn AlertSink>);

impl Endpoint for Paths {
    fn name(&self) -> &'static str {
        "alerting"
    }

    fn listener(&self) -> &'static str {
        "alerting-listener"
    }

    fn routes(&self) -> &'static [Route] {
        ROUTES
    }

    fn answer(&self, _: usize, body: Bytes, deadline: Instant) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        async move {
            let brought: Brought =
                answer::read(&body).map_err(|_| Refusal::bad("the alerts are not those of docs/contract.md"))?;
            if brought.contract != CONTRACT || brought.alerts.len() > ALERTS_MAX {
                return Err(Refusal::bad(format!(
                    "version {CONTRACT} of the contract, and at most {ALERTS_MAX} alerts"
                )));
            }
            // Receivers may be waited for, and the alerts are copies.
            drop(body);
            let taken = brought.alerts.len();
            let mut failed = None;
            for alert in brought.alerts {
                failed = failed.or(self.0.tell(alert, deadline).await.err());
            }
            // This is no failure of this process: a repetition would send the alerts to the other receivers twice.
            if let Some(why) = failed {
                return Err(Refusal::new(StatusCode::FAILED_DEPENDENCY, why));
            }
            let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be written");
            serde_json::to_vec(&Taken { contract: CONTRACT, taken }).map(Bytes::from).map_err(failed)
        }
        .boxed()
    }
}
