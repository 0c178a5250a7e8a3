//! The parts of this program that the commands `pin` and `krm` use.

use std::path::Path;
use std::sync::Arc;

use service_admission::config::Config;
use service_admission::once::reviewer;
use service_core::role::Review;
use service_files::command::{self, Arguments, Function};

use super::{EXIT_FAILURE, Failure, runtime, usage};
use crate::config;

/// Pins files, or locks their images.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    Ok(command::run(arguments, review, &runtime()?)?)
}

/// Runs a KRM function.
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
