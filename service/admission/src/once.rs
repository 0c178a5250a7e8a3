//! Signature checks of single images for `longhaul-service verify` and `inject --verify`, and reviews without a
//! listener for `pin` and `krm`.
//!
//! The functions take the same steps as a review (policy, digest, signatures), but use no caches. So the verdicts are
//! equal to those of a review.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry as MetricsRegistry;
use serde_json::json;
use tokio::time::Instant;

use crate::config::Config;
use crate::generations::Generations;
use crate::role;
use crate::validator::{Approval, Memory, Pieces, Question, Validators};
use crate::{Policy, Target, Treatment};
use service_core::role::Review;
use service_core::wire::Proxies;
use service_registry::verdicts::{Class, Failure};
use service_registry::{Hosts, Image, Keyring, Metrics, Registry};

#[derive(Debug)]
pub struct Report {
    /// The image text as the caller wrote it.
    pub image: String,
    /// The name of the policy rule that applies to the image.
    pub rule: String,
    /// The image's digest, if one was found.
    pub digest: Option<Arc<str>>,
    /// The signers of the image, or why it is not verified.
    pub outcome: Result<Arc<Approval>, Failure>,
}

/// A configuration that demands on every image a signature by the key in the file `key`, without a transparency log.
/// With `plain_http`, the image's registry is contacted without TLS.
pub fn with_key(image: &str, key: &Path, plain_http: bool) -> anyhow::Result<Config> {
    let key = std::path::absolute(key).with_context(|| key.display().to_string())?;
    let host = Image::parse(image).context("the image is no reference")?.host;
    let registries = if plain_http { vec![json!({"host": host, "plainHttp": true})] } else { Vec::new() };
    let text = json!({
        "resolve": {"registries": registries},
        "validators": [{"name": "default", "type": "cosign", "trustRoots": [{"name": "default", "keyFile": key}]}],
        "policy": {"rules": [{"pattern": "*", "with": {"verifyInTransparencyLog": false}}]},
    });
    // JSON is YAML.
    Ok(Config::parse(&text.to_string(), &PathBuf::from("--key"))?)
}

/// A reviewer that answers as a webhook with `config` would.
pub fn reviewer(config: &Config) -> anyhow::Result<Arc<dyn Review>> {
    Ok(role::reviewer(Generations::alone(config)?))
}

pub async fn verify(config: &Config, image: &str, deadline: Instant) -> anyhow::Result<Report> {
    let metrics = Metrics::register(&mut MetricsRegistry::default());
    let registry = Arc::new(Registry::new(Hosts::new(&config.resolve, Proxies::from_env()?, metrics)?));
    let pieces: Arc<dyn Pieces> = registry.clone();
    examine(config, image, &pieces, Some(&registry), deadline).await
}

/// Verifies `image`, which must have a digest, with signatures from `pieces` only.
pub async fn verify_among(
    config: &Config,
    image: &str,
    pieces: &Arc<dyn Pieces>,
    deadline: Instant,
) -> anyhow::Result<Report> {
    examine(config, image, pieces, None, deadline).await
}

/// Verifies an image with signatures from `pieces`; `registry` looks up the digest of a tag.
async fn examine(
    config: &Config,
    image: &str,
    pieces: &Arc<dyn Pieces>,
    registry: Option<&Registry>,
    deadline: Instant,
) -> anyhow::Result<Report> {
    let validators = Validators::load(config, pieces, &Memory::default())?;
    let policy = Policy::new(config);
    let report = |rule, digest, outcome| Report { image: image.to_owned(), rule, digest, outcome };
    let nobody = |what: &str| Err(Failure::new(Class::Unsigned, what));
    let (target, rule) = match policy.treatment(image) {
        Treatment::Verify { target, rule, .. } => (target, rule),
        Treatment::Refuse { failure, rule } => return Ok(report(policy.name(rule), None, Err(failure))),
        Treatment::Resolve { rule, .. } => {
            return Ok(report(policy.name(rule), None, nobody("the rule asks for no signature")));
        }
        Treatment::LeaveAlone => {
            let rule = policy.explain(image, None).rule;
            return Ok(report(rule, None, nobody("the policy leaves it alone: nobody is asked")));
        }
    };
    let name = policy.name(rule);
    let (host, repository, digest) = match target {
        Target::Digest { host, repository, digest } => (host, repository, digest),
        Target::Tag(reference) => {
            let registry = registry.context("the image has no digest")?;
            match registry.resolve(&reference, &Keyring::default(), deadline).await {
                Ok(digest) => (reference.host, reference.repository, Arc::from(digest)),
                Err(failure) => return Ok(report(name, None, Err(failure))),
            }
        }
    };
    let validator = policy.index(rule).and_then(|index| validators.of_rule(index)).cloned();
    let validator = validator.context("the rule asks for signatures and nobody here can verify any")?;
    let question = Question { host, repository, digest: Arc::clone(&digest), keyring: Keyring::default(), deadline };
    Ok(report(name, Some(digest), validator.validate(question).await))
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "image:    {}", self.image)?;
        writeln!(out, "rule:     {}", self.rule)?;
        if let Some(digest) = &self.digest {
            writeln!(out, "digest:   {digest}")?;
        }
        match &self.outcome {
            Ok(approval) => {
                for signer in &approval.signers {
                    writeln!(out, "signer:   {}", signer.name)?;
                    writeln!(out, "evidence: {}", signer.evidence)?;
                }
                writeln!(out, "verified")
            }
            Err(failure) => writeln!(out, "not verified: {failure}"),
        }
    }
}
