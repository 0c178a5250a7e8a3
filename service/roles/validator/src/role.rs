//! The validator role: its configuration sections, its listener, and the judge that the admission role provides.

use anyhow::Context as _;
use futures_util::FutureExt as _;
use service_core::config::{Config, kind};
use service_core::edge::Labels;
use service_core::role::{About, Prepared, Role, Start, Started};

use crate::config::Validator;
use crate::paths::Paths;

const LABELS: Labels = Labels {
    check: "validator-certificate",
    server: "validator",
    client_ca: "validator-client-ca",
    revoked: "validator-revoked",
};

const ABOUT: About = About {
    name: "validator",
    help: "Only verdicts about images, for managers and for Gatekeeper",
    sections: &[kind::<Validator>()],
    needs: &[Config::has::<Validator>],
    lacks: "the section `validator` in the configuration (listen, certificate, key, clientCA)",
    always: false,
};

#[derive(Debug)]
pub struct ValidatorRole;

impl Role for ValidatorRole {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn borrows(&self, config: &Config) -> bool {
        ABOUT.belongs(config)
    }

    fn prepare(&self, _: &mut Start<'_>) -> anyhow::Result<Prepared> {
        Ok(Prepared::of(|start| begin(start).boxed()))
    }
}

async fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let Validator(settings) = start.config.find::<Validator>().context("the section `validator` is missing")?;
    let judge = start.judge.clone().context("nobody here knows who may sign: the role `admission` is not built in")?;
    settings.open(LABELS, Paths(judge), start).await
}
