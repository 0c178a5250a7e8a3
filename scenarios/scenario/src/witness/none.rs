//! Witness `none`, for a subject that watches nothing. The subject makes no observations, and no budget needs them.

use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{About, Kind, Open, Reporter, Scene};

/// This witness has no keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Nothing {}

impl Kind for Nothing {
    const NAME: &'static str = "none";
    const REMEDY: &'static str = "It has no witness, so its observations are not known.";

    fn sees(&self, _: &About) -> Sees {
        Sees::NOTHING
    }

    async fn open(&self, _: &Reporter, _: &Scene) -> anyhow::Result<Open> {
        Ok(Open::default())
    }
}
