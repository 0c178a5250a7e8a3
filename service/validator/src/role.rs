//! The role: its sections, its listener, and what it borrows.

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_core::config::{Config, Kind, kind};
use service_core::edge::Labels;
use service_core::role::{Role, Start, Started};

use crate::config::Validator;
use crate::desk::Paths;

const SECTIONS: &[Kind] = &[kind::<Validator>()];
const LABELS: Labels = Labels {
    check: "validator-certificate",
    server: "validator",
    client_ca: "validator-client-ca",
    revoked: "validator-revoked",
};

/// Other processes are told who signed an image.
#[derive(Debug)]
pub struct Validating;

impl Role for Validating {
    fn name(&self) -> &'static str {
        "validator"
    }

    fn about(&self) -> &'static str {
        "Only verdicts about images, for managers and for Gatekeeper"
    }

    fn sections(&self) -> &'static [Kind] {
        SECTIONS
    }

    fn belongs(&self, config: &Config) -> bool {
        config.find::<Validator>().is_some()
    }

    fn lacks(&self, config: &Config) -> Option<&'static str> {
        let lacks = "the section `validator` in the configuration (listen, certificate, key, clientCA)";
        config.find::<Validator>().is_none().then_some(lacks)
    }

    fn borrows(&self, config: &Config) -> bool {
        self.belongs(config)
    }

    fn start<'a>(&'a self, start: &'a mut Start<'_>) -> BoxFuture<'a, anyhow::Result<Started>> {
        async move {
            let Validator(settings) = start.config.find::<Validator>().context("the section `validator` is missing")?;
            let judge =
                start.judge.clone().context("nobody here knows who may sign: the role `manager` is not built in")?;
            settings.open(LABELS, Paths(judge), start).await
        }
        .boxed()
    }
}
