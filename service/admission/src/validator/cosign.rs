//! Signatures in cosign's formats: found in the image's registry, checked by `service-verify`.
//!
//! This module owns one engine for each rule that demands signatures. The module `search` chooses the locations and
//! their order, `trust` compiles the trusted keys, and `words` writes messages. No registry is trusted: registries only
//! deliver bytes, which `service-verify` checks.

mod knowledge;
mod search;
mod trust;
mod trusted;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use service_verify::{Digest, Requirement, RequirementError, Subject, Trust, UnixTime};
use sha2::{Digest as _, Sha256};

use super::{Answer, Memory, Pieces, Question, Validator, ValidatorError, Validators};
use crate::config::{Config, Rule, ValidatorKind};
pub use knowledge::Knowledge;
use search::Search;
use service_core::share::Share;
use service_registry::verdicts::{Class, Failure};
use service_registry::{Image, Keyring};
pub use trusted::Trusted;

/// Number of bytes that are kept of a hash of trusted keys and demands: enough that collisions are infeasible.
const GENERATION_BYTES: usize = 16;

/// The engine of one rule: its demands and trusted keys.
struct Engine {
    trust: Arc<Trust>,
    requirement: Requirement,
    generation: String,
    pieces: Arc<dyn Pieces>,
    knowledge: Arc<Knowledge>,
    share: Arc<Share>,
}

/// The compiled trusted keys of every cosign validator, by validator index.
fn compiled(config: &Config) -> Result<BTreeMap<usize, Arc<Trust>>, ValidatorError> {
    let mut compiled = BTreeMap::new();
    for (index, validator) in config.validators.iter().enumerate() {
        if let ValidatorKind::Cosign(cosign) = &validator.kind {
            compiled.insert(index, Arc::new(trust::compile(&validator.name, index, cosign)?));
        }
    }
    Ok(compiled)
}

/// The demands and trusted keys of a rule; `None` if it verifies no signatures.
fn demand(
    rule: &Rule,
    compiled: &BTreeMap<usize, Arc<Trust>>,
) -> Result<Option<(Requirement, Arc<Trust>)>, ValidatorError> {
    let (Some(with), Some(trust)) = (&rule.with, rule.validator.and_then(|index| compiled.get(&index))) else {
        return Ok(None);
    };
    let requirement = trust::requirement(&rule.name, with)?;
    let unworkable =
        |error: RequirementError| ValidatorError { key: format!("{}.with", rule.name), what: error.to_string() };
    requirement.check(trust).map_err(unworkable)?;
    Ok(Some((requirement, Arc::clone(trust))))
}

pub fn check(config: &Config) -> Result<(), ValidatorError> {
    let compiled = compiled(config)?;
    config.policy.rules.iter().try_for_each(|rule| demand(rule, &compiled).map(drop))
}

/// Compiles the demands of every rule.
pub fn load(config: &Config, pieces: &Arc<dyn Pieces>, memory: &Memory) -> Result<Validators, ValidatorError> {
    let compiled = compiled(config)?;
    let engine = |rule: &Rule| -> Result<Option<Arc<dyn Validator>>, ValidatorError> {
        let Some((requirement, trust)) = demand(rule, &compiled)? else { return Ok(None) };
        Ok(Some(Engine::asking(trust, requirement, pieces, memory)))
    };
    let of_rules = config.policy.rules.iter().map(engine).collect::<Result<_, _>>()?;
    Ok(Validators { of_rules, trusted: Trusted::new(config, &compiled, pieces, memory) })
}

/// A text that changes with trusted keys or demands. The text contains the debug output of the requirement, which shows
/// all its fields.
fn generation(trust: &Trust, requirement: &Requirement) -> String {
    let mut hash = Sha256::new();
    hash.update(trust.fingerprint().as_bytes());
    hash.update(format!("{requirement:?}"));
    hex::encode(&hash.finalize()[..GENERATION_BYTES])
}

impl Engine {
    fn asking(
        trust: Arc<Trust>,
        requirement: Requirement,
        pieces: &Arc<dyn Pieces>,
        memory: &Memory,
    ) -> Arc<dyn Validator> {
        Arc::new(Self {
            generation: generation(&trust, &requirement),
            trust,
            requirement,
            pieces: Arc::clone(pieces),
            knowledge: Arc::clone(&memory.knowledge),
            share: Arc::clone(&memory.share),
        })
    }

    async fn answer(&self, question: Question) -> Answer {
        let digest: Digest = question.digest.parse().map_err(|error: service_verify::DigestError| {
            Failure::new(Class::Misconfigured, format!("{}: {error}", question.digest))
        })?;
        let image =
            Image { host: question.host.clone(), repository: question.repository.clone(), tag: None, digest: None };
        // Its full name includes the implied tag.
        let name = image.full_name();
        let repository = Some(name.rsplit_once(':').map_or(name.as_str(), |(name, _)| name).to_owned());
        let subject = Subject { digest, repository };
        Search::new(self, &question, &subject, now()).run().await
    }
}

impl Validator for Engine {
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer> {
        async move { self.answer(question).await }.boxed()
    }

    fn generation(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.generation)
    }

    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring {
        self.pieces.relevant(host, repository, keyring)
    }
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
