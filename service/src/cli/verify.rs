//! The command `verify`, which verifies the signatures of one image.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use service_admission::config::Config;
use service_admission::once::{verify, with_key};
use tokio::time::Instant;

use super::{EXIT_FAILURE, Failure, usage};
use crate::config;

/// Longest time for one image, equal to the longest time that an API server waits for a webhook.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `verify`: the image, and the rules for it.
#[derive(Debug, Args)]
// The group that clap would make of it has all arguments, the image among them.
#[group(skip)]
pub(super) struct Arguments {
    /// The image, spelled as in a Pod.
    image: String,
    /// The public key (PEM) that must have signed the image. No transparency log entry is required.
    #[arg(long, required_unless_present = "config", conflicts_with = "config")]
    key: Option<PathBuf>,
    /// The configuration file (YAML) with the policy.
    #[arg(long)]
    config: Option<PathBuf>,
    /// The registry speaks HTTP without TLS. Only with --key.
    #[arg(long, conflicts_with = "config")]
    plain_http: bool,
}

/// Prints the verdict on the image; fails if the image is not verified.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = match (&arguments.key, &arguments.config) {
        (Some(key), _) => with_key(&arguments.image, key, arguments.plain_http).map_err(usage)?,
        (None, Some(path)) => Config::of(&config::load(path).map_err(usage)?),
        (None, None) => return Err(usage(anyhow::anyhow!("write --key or --config"))),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let report = runtime.block_on(async { verify(&config, &arguments.image, Instant::now() + TIMEOUT).await })?;
    print!("{report}");
    match report.outcome {
        Ok(_) => Ok(()),
        Err(failure) => Err(Failure { code: EXIT_FAILURE, error: anyhow::anyhow!("not verified ({})", failure.class) }),
    }
}
