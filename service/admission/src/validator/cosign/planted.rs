//! Planted bugs of verification: each believes too much, in one way.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use service_registry::{Keyring, Question};
use service_verify::{Evidence, Outcome, Requirement, Trust, UnixTime, Verdict, verify};

use super::search::Search;
use crate::validator::{Answer, Validator};
use service_core::planted::Bug;

/// So many images are taken for verified: to remember more would be a leak, which is another bug.
const DOUBTED_MAX: usize = 4096;

/// `engine` with what the bug makes of its answers.
pub(super) fn around(engine: Arc<dyn Validator>, bug: Option<Bug>) -> Arc<dyn Validator> {
    match bug {
        Some(Bug::CachesCannotTell) => Arc::new(Credulous { engine, doubted: Mutex::default() }),
        _ => engine,
    }
}

/// A validator that takes for verified what it could not tell of before.
struct Credulous {
    engine: Arc<dyn Validator>,
    doubted: Mutex<BTreeSet<String>>,
}

impl Validator for Credulous {
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer> {
        async move {
            let image = format!("{}/{}@{}", question.host, question.repository, question.digest);
            if self.doubted.lock().contains(&image) {
                return Ok(Arc::default());
            }
            let answer = Arc::clone(&self.engine).validate(question).await;
            let mut doubted = self.doubted.lock();
            if answer.as_ref().is_err_and(|failure| failure.class.cache_ttl().is_none()) && doubted.len() < DOUBTED_MAX
            {
                doubted.insert(image);
            }
            answer
        }
        .boxed()
    }

    fn generation(&self) -> &str {
        self.engine.generation()
    }

    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring {
        self.engine.relevant(host, repository, keyring)
    }
}

/// The verdict of a build with `bug`; `None` for what it leaves alone.
pub(super) fn verdict(
    bug: Bug,
    search: &Search<'_>,
    requirement: &Requirement,
    trust: &Trust,
    now: UnixTime,
) -> Option<Verdict> {
    let evidence = &*search.evidence.lock();
    match bug {
        Bug::AcceptsAnySignature => {
            let verdict = verify(search.subject, evidence, requirement, trust, now);
            Some(if evidence.is_empty() { verdict } else { Verdict { outcome: Outcome::Verified, ..verdict } })
        }
        Bug::IgnoresDigestBinding => {
            // Each piece is judged for whatever it says that it is of.
            let about = |piece: &Evidence| {
                let digest = claimed(piece)?;
                let mut piece = piece.clone();
                if let Evidence::Bundle(bundle) = &mut piece {
                    bundle.subject = Some(digest);
                }
                let subject = service_verify::Subject { digest, ..search.subject.clone() };
                Some(verify(&subject, &[piece], requirement, trust, now)).filter(Verdict::is_verified)
            };
            evidence.iter().find_map(about)
        }
        Bug::ThresholdCountsTwice => {
            let one = Requirement { threshold: 1, required: Vec::new(), ..requirement.clone() };
            let count =
                |piece: &&Evidence| verify(search.subject, std::slice::from_ref(piece), &one, trust, now).is_verified();
            let verdict = verify(search.subject, evidence, requirement, trust, now);
            let enough = evidence.iter().filter(count).count() >= requirement.threshold;
            Some(if enough { Verdict { outcome: Outcome::Verified, ..verdict } } else { verdict })
        }
        _ => None,
    }
}

/// The digest that a piece says it is of.
fn claimed(piece: &Evidence) -> Option<service_verify::Digest> {
    match piece {
        Evidence::Signature(signature) => {
            let payload: Value = serde_json::from_slice(&signature.payload).ok()?;
            payload.pointer("/critical/image/docker-manifest-digest")?.as_str()?.parse().ok()
        }
        Evidence::Bundle(bundle) => {
            use base64::Engine as _;
            let bundle: Value = serde_json::from_slice(&bundle.json).ok()?;
            let payload = bundle.pointer("/dsseEnvelope/payload")?.as_str()?;
            let payload = base64::engine::general_purpose::STANDARD.decode(payload).ok()?;
            let statement: Value = serde_json::from_slice(&payload).ok()?;
            service_verify::Digest::from_hex(statement.pointer("/subject/0/digest/sha256")?.as_str()?).ok()
        }
        Evidence::Attestation(_) | Evidence::Unusable(_) => None,
    }
}
