//! `sharedCache`: a Redis in which the processes of the built-in service share verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Redis that the harness runs. The faults `shared-cache-away` and `shared-cache-forges` let it misbehave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedCache {}
