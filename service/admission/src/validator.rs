//! The seam to validators, which say whether an image may run, and what they have said.
//!
//! Owns the question and its answer, the cache of verdicts, and which rule asks whom. What a static validator says needs no question:
//! the policy knows it. Signatures are looked for and judged in `cosign`, which exists with the feature `verify` only.

mod approvals;
#[cfg(feature = "verify")]
mod cosign;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use crate::config::{self, Config};
pub use approvals::{Approvals, Metrics};
use service_core::share::Share;
use service_registry::Keyring;
use service_registry::verdicts::Failure;
pub use service_registry::{Pieces, Question};

/// Most signers of an answer: more is not read in an audit log.
pub const SIGNERS_MAX: usize = 8;

/// Why an image may run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approval {
    /// Its signers, at most [`SIGNERS_MAX`].
    pub signers: Vec<Signer>,
}

/// Whoever signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The trust root that accepts the signature, and who made it.
    pub name: String,
    /// The form of the signature and where it was found.
    pub evidence: String,
}

/// The answer of a validator.
pub type Answer = Result<Arc<Approval>, Failure>;

/// Somebody who says whether images may run, under one rule.
pub trait Validator: Send + Sync + 'static {
    /// The answer about an image. It may ask a registry, at the latest until the deadline of the question.
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer>;

    /// A text that is another one as soon as rule or trust are: an answer is only good for the same text.
    fn generation(&self) -> &str;

    /// The part of `keyring` on which its answer may depend.
    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring;
}

/// Validators by rule of the policy.
#[derive(Default)]
pub struct Validators {
    of_rules: Vec<Option<Arc<dyn Validator>>>,
}

/// Why validators cannot work.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {what}")]
pub struct ValidatorError {
    /// The key of the configuration.
    pub key: String,
    /// The reason.
    pub what: String,
}

/// Knowledge that outlives a configuration: how registries were found to be, and the memory that evidence may hold.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    #[cfg(feature = "verify")]
    knowledge: Arc<cosign::Knowledge>,
    #[cfg(feature = "verify")]
    share: Arc<Share>,
}

impl Memory {
    /// Evidence may hold what `share` has for it.
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
    /// The validators of a configuration, which read their keys now and look for signatures among `pieces`.
    pub fn load(config: &Config, pieces: &Arc<dyn Pieces>, memory: &Memory) -> Result<Self, ValidatorError> {
        #[cfg(feature = "verify")]
        return cosign::load(config, pieces, memory);
        #[cfg(not(feature = "verify"))]
        {
            let _ = (pieces, memory);
            let cosign = |kind: &config::ValidatorKind| matches!(kind, config::ValidatorKind::Cosign(_));
            match config.validators.iter().position(|validator| cosign(&validator.kind)) {
                Some(index) => Err(ValidatorError {
                    key: format!("validators[{index}].type"),
                    what: "`cosign` is not built in".to_owned(),
                }),
                None => Ok(Self::default()),
            }
        }
    }

    /// The validators of a script, by rule.
    pub fn scripted(of_rules: Vec<Option<Arc<dyn Validator>>>) -> Self {
        Self { of_rules }
    }

    /// Whoever is asked under the rule with that index.
    pub fn of_rule(&self, index: usize) -> Option<&Arc<dyn Validator>> {
        self.of_rules.get(index)?.as_ref()
    }
}

/// Reads the keys of `config` and says whether they can be used.
pub fn check(config: &Config) -> Result<(), ValidatorError> {
    #[cfg(feature = "verify")]
    cosign::check(config)?;
    let _ = config;
    Ok(())
}

/// A text that is another one as soon as a file that `validators` read has another content.
pub fn trust(validators: &[config::Validator]) -> String {
    let mut hash = Sha256::new();
    for file in config::files(validators) {
        // One that cannot be read is another one than any content; why is said by whoever needs it.
        let content = std::fs::read(&file).map_or_else(|_| [0; 32], |bytes| Sha256::digest(bytes).into());
        hash.update(content);
    }
    hex::encode(hash.finalize())
}
