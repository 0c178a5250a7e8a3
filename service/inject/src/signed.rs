//! The option `--verify`: images whose signatures the policy refuses are not sent. Signatures are taken from the
//! payload, so that clients of the injected program find the same signatures.

use std::sync::Arc;

use anyhow::{Result, bail};
use futures_util::future::BoxFuture;

use super::images::{Images, InPayload, Taken};
use service_core::config::Config;
use service_registry::Pieces;

/// The signers of an image, or the reason for its refusal.
pub type Verdict = Result<Vec<String>, String>;

/// A function that decides whether an image (with its digest) may run under a configuration, with signatures from the
/// given source.
pub type Judge = fn(Arc<Config>, String, Arc<dyn Pieces>) -> BoxFuture<'static, Result<Verdict>>;

/// Checks every image of the payload; prints the signers, and fails if an image may not run.
pub async fn verify(
    images: &Arc<Images>,
    taken: &[Taken],
    platform: Option<&str>,
    config: &Arc<Config>,
    judge: Judge,
) -> Result<()> {
    let mut refused = Vec::new();
    for one in taken {
        let digest = images.catalog.repositories[&one.name.repository].tags[&one.name.tag];
        let known_as = format!("{}@sha256:{digest}", one.known_as);
        let pieces: Arc<dyn Pieces> = Arc::new(InPayload::new(Arc::clone(images), one.name.repository.clone()));
        match judge(Arc::clone(config), known_as, pieces).await? {
            Ok(signers) => println!("verified: {} sha256:{digest} signed by {}", one.name, signers.join(", ")),
            Err(why) => refused.push(format!("{}: {why}", one.known_as)),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let hint = if platform.is_some() { " (--platform leaves out an index and what signs it)" } else { "" };
    bail!("not verified, so no image is sent{hint}:\n{}", refused.join("\n"))
}
