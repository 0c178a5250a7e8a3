//! The interface of validators, which decide whether an image may run, and the cache of their verdicts.
//!
//! This module owns the interface of validators, the cache of verdicts, and the choice of the validator for each rule.
//! The policy itself gives the verdict of a static validator. Signatures are verified in `cosign`, which exists only
//! with the feature `verify`.

mod approvals;
#[cfg(feature = "verify")]
mod cosign;
mod provider;
mod remote;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use crate::config::{self, Config};
pub use approvals::{Approvals, Metrics};
use service_contract::pool::Metrics as PoolMetrics;
use service_core::share::Share;
use service_registry::Keyring;
#[cfg(not(feature = "verify"))]
use service_registry::verdicts::Class;
use service_registry::verdicts::Failure;
pub use service_registry::{Pieces, Question};

/// Maximum number of signers in an answer: readers of an audit log need no more signers.
pub const SIGNERS_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approval {
    /// The signers, at most [`SIGNERS_MAX`].
    pub signers: Vec<Signer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The name of the trust root that accepts the signature, and the signer.
    pub name: String,
    /// The format of the signature, and where it was found.
    pub evidence: String,
}

pub type Answer = Result<Arc<Approval>, Failure>;

/// Decides under one rule whether images may run.
pub trait Validator: Send + Sync + 'static {
    /// The answer about an image. The validator may send requests to a registry until the deadline of `question`.
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer>;

    /// A text that changes with the rule or the trusted keys. A cached answer is valid only while this text is the
    /// same.
    fn generation(&self) -> Cow<'_, str>;

    /// Longest time for which an answer of this validator is valid; `None` if the policy sets the time.
    fn ttl_max(&self) -> Option<Duration> {
        None
    }

    /// The credentials in `keyring` on which the answer may depend.
    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring;
}

#[derive(Default)]
pub struct Validators {
    of_rules: Vec<Option<Arc<dyn Validator>>>,
    #[cfg(feature = "verify")]
    trusted: cosign::Trusted,
}

#[derive(Debug, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ValidatorError {
    /// The configuration key whose value is wrong.
    pub key: String,
    pub what: String,
}

/// State of validators that a new configuration does not replace: facts about registries, and the memory limit for
/// signatures.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    #[cfg(feature = "verify")]
    knowledge: Arc<cosign::Knowledge>,
    #[cfg(feature = "verify")]
    share: Arc<Share>,
    pools: remote::Pools,
}

impl Memory {
    #[must_use]
    pub fn counting(mut self, metrics: PoolMetrics) -> Self {
        self.pools = remote::Pools::new(metrics);
        self
    }

    /// Limits the memory for signatures to the part of `share` that is meant for signatures.
    pub fn of(share: &Arc<Share>) -> Self {
        #[cfg(feature = "verify")]
        return Self { share: Arc::clone(share), ..Self::default() };
        #[cfg(not(feature = "verify"))]
        {
            let _ = share;
            Self::default()
        }
    }
}

impl Validators {
    /// Loads the validators of a configuration. The validators read their keys at once; during reviews, they fetch
    /// signatures from `pieces`.
    pub fn load(config: &Config, pieces: &Arc<dyn Pieces>, memory: &Memory) -> Result<Self, ValidatorError> {
        #[cfg(feature = "verify")]
        let mut validators = cosign::load(config, pieces, memory)?;
        #[cfg(not(feature = "verify"))]
        let mut validators = {
            let cosign = |kind: &config::ValidatorKind| matches!(kind, config::ValidatorKind::Cosign(_));
            if let Some(index) = config.validators.iter().position(|validator| cosign(&validator.kind)) {
                let what = "`cosign` is not built in".to_owned();
                return Err(ValidatorError { key: format!("validators[{index}].type"), what });
            }
            Self { of_rules: vec![None; config.policy.rules.len()] }
        };
        for (rule, asked) in config.policy.rules.iter().zip(&mut validators.of_rules) {
            let Some(index) = rule.validator else { continue };
            let Some(validator) = config.validators.get(index) else { continue };
            let wrong = |what: String| ValidatorError {
                key: format!("validators[{index}] (`{}`).remote", validator.name),
                what,
            };
            let demands = rule.passed.as_deref().unwrap_or_default();
            match &validator.kind {
                config::ValidatorKind::Remote(settings) => {
                    let pool = memory.pools.open(&validator.name, &settings.way, true).map_err(wrong)?;
                    *asked = Some(remote::Engine::asking(settings, demands, pool, Arc::clone(pieces)));
                }
                config::ValidatorKind::ExternalData(settings) => {
                    let pool = memory.pools.open(&validator.name, &settings.way, false).map_err(wrong)?;
                    *asked = Some(provider::Engine::asking(&validator.name, settings, pool));
                }
                config::ValidatorKind::Static { .. } | config::ValidatorKind::Cosign(_) => {}
            }
        }
        Ok(validators)
    }

    pub fn scripted(of_rules: Vec<Option<Arc<dyn Validator>>>) -> Self {
        Self {
            of_rules,
            #[cfg(feature = "verify")]
            trusted: cosign::Trusted::default(),
        }
    }

    /// A validator with the trusted keys of the validator `name` and the demands `demands`.
    pub fn demanded(&self, name: &str, demands: &str) -> Result<Arc<dyn Validator>, Failure> {
        #[cfg(feature = "verify")]
        return self.trusted.engine(name, demands);
        #[cfg(not(feature = "verify"))]
        {
            let _ = demands;
            Err(Failure::new(
                Class::Misconfigured,
                format!("`{name}` cannot be asked: nobody here verifies signatures"),
            ))
        }
    }

    /// The names of validators that other processes may use, and a text that changes with their trusted keys.
    pub fn lent(&self) -> (Vec<String>, String) {
        #[cfg(feature = "verify")]
        return self.trusted.about();
        #[cfg(not(feature = "verify"))]
        (Vec::new(), "none".to_owned())
    }

    pub fn of_rule(&self, index: usize) -> Option<&Arc<dyn Validator>> {
        self.of_rules.get(index)?.as_ref()
    }
}

pub fn check(config: &Config) -> Result<(), ValidatorError> {
    #[cfg(feature = "verify")]
    cosign::check(config)?;
    let _ = config;
    Ok(())
}

/// A text that changes with the content of any file that `validators` read.
pub fn trust(validators: &[config::Validator]) -> String {
    let mut hash = Sha256::new();
    for file in config::files(validators) {
        // An unreadable file differs from any content; its user reports the reason.
        let content = std::fs::read(&file).map_or_else(|_| [0; 32], |bytes| Sha256::digest(bytes).into());
        hash.update(content);
    }
    hex::encode(hash.finalize())
}
