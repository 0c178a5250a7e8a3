//! The policy, registry client and configuration that the commands `pin` and `krm` get from this program.

use std::path::Path;
use std::sync::Arc;

use service_admission::config::Config;
use service_admission::once::reviewer;
use service_core::role::Review;
use service_files::command::{self, Arguments, Function};

use super::{EXIT_FAILURE, Failure, runtime, usage};
use crate::config;

/// Runs `pin`: replaces images with their digests, or writes the digests to a lock file.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    Ok(command::run(arguments, review, &runtime()?)?)
}

/// Runs `krm`: does the work of `pin` as a KRM function.
pub(super) fn function(arguments: &Function) -> Result<(), Failure> {
    Ok(command::function(arguments, review, &runtime()?)?)
}

fn review(file: Option<&Path>, lock: Option<&Path>) -> anyhow::Result<Arc<dyn Review>> {
    let file = match file {
        Some(path) => config::load(path)?,
        None => config::parse("{}", Path::new("--config"))?,
    };
    let mut config = Config::of(&file);
    if let Some(path) = lock {
        config.resolve.lock = Some(path.to_owned());
    }
    reviewer(&config)
}

impl From<command::Failure> for Failure {
    fn from(failure: command::Failure) -> Self {
        match failure {
            command::Failure::Usage(error) => usage(error),
            command::Failure::Failed(error) => Self { code: EXIT_FAILURE, error },
        }
    }
}
