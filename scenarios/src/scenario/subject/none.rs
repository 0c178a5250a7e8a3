//! No subject: the mocks and the load alone, to see what they do by themselves.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, Notes, Scene, Start, Subject, Wrong, wrong};
use crate::witness::Witness;

/// `none` has no keys.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nobody {}

impl Kind for Nobody {
    fn name(&self) -> &'static str {
        "none"
    }

    fn check(&self, subject: &Subject) -> Result<(), Wrong> {
        if !matches!(subject.witness, Witness::None(_)) || subject.webhook.is_some() || subject.install.is_some() {
            return wrong(
                "none",
                "`none` proves nothing and serves nothing: leave out `witness`, `webhook` and `install`",
            );
        }
        Ok(())
    }

    fn watches(&self) -> bool {
        false
    }

    fn notes(&self) -> Notes {
        Notes { unsampled: Some("there is no subject (`none`)"), note: None }
    }

    fn start(&self, _: &Scene<'_>) -> Result<Start> {
        Ok(Start::Programs(Vec::new(), None))
    }
}
