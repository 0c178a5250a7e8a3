//! The verdict on an image: checks every link of each signature, then applies the requirement to the valid signatures.

mod fulfilled;
mod workable;

use serde_json::Value;

use crate::claim::{Claim, Statement, shown};
use crate::digest::Subject;
use crate::evidence::Evidence;
use crate::piece::{Piece, Refusal};
use crate::requirement::{AttestationRule, FieldRule, Requirement, Roots};
use crate::signer::{Accepted, Context, Step};
use crate::time::UnixTime;
use crate::trust::{Trust, TrustRoot};
use crate::verdict::{Class, EvidenceKind, Outcome, Rejected, Signer, Verdict};

pub use workable::RequirementError;

/// Maximum number of signatures and attestations of an image that are checked. With the maximum number of roots, the
/// checks of 100 objects take less than half a second.
pub const EVIDENCE_MAX: usize = 100;
/// Maximum number of causes in the message about one refused signature; further causes only repeat the same for other
/// roots.
const CAUSES_MAX: usize = 3;

/// Checks the signatures in `evidence` for `subject`. The function never fails: an unreadable or invalid signature is
/// listed as rejected. If a log or timestamp authority states the time of a signature, the signature is checked at that
/// time; times after `now` are refused.
pub fn verify(
    subject: &Subject,
    evidence: &[Evidence],
    requirement: &Requirement,
    trust: &Trust,
    now: UnixTime,
) -> Verdict {
    let mut trial = Trial::new(subject, requirement, trust, now);
    for piece in evidence {
        let judged = trial.judgement(piece);
        trial.take(judged);
    }
    trial.verdict()
}

/// A verification whose objects are added one by one. After an object was checked, its bytes need not be kept.
pub struct Trial<'a> {
    subject: &'a Subject,
    context: Context<'a>,
    roots: Vec<&'a TrustRoot>,
    /// Why no image can fulfil the requirement; `None` if some image can.
    unworkable: Option<String>,
    counted: Vec<Counted>,
    rejected: Vec<Rejected>,
    /// Number of objects that were added to the trial.
    pieces: usize,
}

/// The result for one object, without its bytes.
pub struct Judged {
    source: String,
    outcome: Result<Vec<Counted>, Refusal>,
}

impl<'a> Trial<'a> {
    pub fn new(subject: &'a Subject, requirement: &'a Requirement, trust: &'a Trust, now: UnixTime) -> Self {
        Self {
            subject,
            context: Context { requirement, trust, now },
            roots: selected(&requirement.roots, trust),
            unworkable: requirement.check(trust).err().map(|error| error.to_string()),
            counted: Vec::new(),
            rejected: Vec::new(),
            pieces: 0,
        }
    }

    /// Checks the signature in one object; objects may be checked in any order.
    pub fn judgement(&self, evidence: &Evidence) -> Judged {
        let source = evidence.source().to_owned();
        if self.unworkable.is_some() || self.pieces >= EVIDENCE_MAX {
            return Judged { source, outcome: Ok(Vec::new()) };
        }
        let opened = match evidence {
            Evidence::Signature(raw) => Piece::signature(raw),
            Evidence::Attestation(raw) => Piece::attestation(raw),
            Evidence::Bundle(raw) => Piece::bundle(raw, self.subject),
            Evidence::Unusable(rejected) => Err((rejected.class, rejected.cause.clone())),
        };
        let outcome = opened.and_then(|piece| self.piece(&source, &piece));
        Judged { source, outcome }
    }

    /// Adds the result for an object to the trial. The verdict lists objects in the order in which `take` was called.
    pub fn take(&mut self, judged: Judged) {
        self.pieces += 1;
        if self.unworkable.is_some() {
            return;
        }
        let Judged { source, outcome } = judged;
        match self.pieces {
            ..=EVIDENCE_MAX => match outcome {
                Ok(counted) => self.counted.extend(counted),
                Err((class, cause)) => self.rejected.push(Rejected { source, class, cause }),
            },
            // Reported once.
            pieces if pieces == EVIDENCE_MAX + 1 => {
                let cause = format!("there is more evidence than the {EVIDENCE_MAX} pieces that are looked at");
                self.rejected.push(Rejected { source, class: Class::Invalid, cause });
            }
            _ => {}
        }
    }

    /// The verdict on the objects that were added so far.
    pub fn verdict(&self) -> Verdict {
        if let Some(cause) = &self.unworkable {
            let outcome = Outcome::Refused { class: Class::Misconfigured, cause: cause.clone() };
            return Verdict { outcome, signers: Vec::new(), rejected: Vec::new() };
        }
        let mut counted: Vec<&Counted> = self.counted.iter().collect();
        counted.sort_by_key(|counted| self.context.trust.names().position(|name| name == counted.signer.root));
        let outcome = fulfilled::outcome(self.context.requirement, &counted, &self.rejected);
        let signers = counted.into_iter().map(|counted| counted.signer.clone()).collect();
        Verdict { outcome, signers, rejected: self.rejected.clone() }
    }
}

/// The roots to which `roots` refers, in the order of the configuration.
fn selected<'a>(roots: &Roots, trust: &'a Trust) -> Vec<&'a TrustRoot> {
    let is_named = |root: &&TrustRoot| match roots {
        Roots::All => true,
        Roots::Named(names) => names.contains(&root.name),
    };
    trust.roots().iter().filter(is_named).collect()
}

/// A signature that counts, and the attestation rules that it fulfils.
struct Counted {
    signer: Signer,
    /// Indices into [`Requirement::attestations`] of the fulfilled rules; empty for a signature of the image.
    rules: Vec<usize>,
}

impl Trial<'_> {
    /// The signers in `piece` that count; empty if the requirement does not use signatures of this kind.
    fn piece(&self, source: &str, piece: &Piece<'_>) -> Result<Vec<Counted>, Refusal> {
        let Some(asked) = self.asked_for(piece) else { return Ok(Vec::new()) };
        let accepted = self.accepted(piece)?;
        piece.claim.check(self.subject, self.context.requirement)?;
        let (rules, predicate_type) = match (&piece.claim, piece.kind) {
            (Claim::Statement(statement), EvidenceKind::Attestation | EvidenceKind::BundleAttestation) => {
                (fulfilled_by(piece, &asked)?, Some(statement.predicate_type.clone()))
            }
            _ => (Vec::new(), None),
        };
        let counted = |(root, accepted): (&TrustRoot, Accepted)| Counted {
            signer: Signer {
                root: root.name.clone(),
                identity: accepted.identity,
                kind: piece.kind,
                predicate_type: predicate_type.clone(),
                source: source.to_owned(),
                log_index: accepted.log_index,
                time: accepted.time,
            },
            rules: rules.clone(),
        };
        Ok(accepted.into_iter().map(counted).collect())
    }

    /// The attestation rules that `piece` may fulfil, with their indices; `None` if the requirement does not use
    /// `piece`.
    fn asked_for(&self, piece: &Piece<'_>) -> Option<Vec<(usize, &AttestationRule)>> {
        let requirement = self.context.requirement;
        match piece.kind {
            EvidenceKind::Signature | EvidenceKind::Bundle => requirement.image_signature.then(Vec::new),
            EvidenceKind::Attestation | EvidenceKind::BundleAttestation => {
                let stated = piece.claim.predicate_type();
                let all = requirement.attestations.iter().enumerate();
                let rules: Vec<_> = all.filter(|(_, rule)| Some(rule.predicate_type.as_str()) == stated).collect();
                (!rules.is_empty()).then_some(rules)
            }
        }
    }

    fn accepted(&self, piece: &Piece<'_>) -> Result<Vec<(&TrustRoot, Accepted)>, Refusal> {
        let mut accepted = Vec::new();
        let mut failures = Vec::new();
        for root in &self.roots {
            match self.context.accept(root, piece) {
                Ok(found) => accepted.push((*root, found)),
                Err(failure) => failures.push((failure.step, root, failure.cause)),
            }
        }
        if !accepted.is_empty() {
            return Ok(accepted);
        }
        let furthest = failures.iter().map(|(step, ..)| *step).max().unwrap_or(Step::Signer);
        let shown = failures.iter().filter(|(step, ..)| *step == furthest).take(CAUSES_MAX);
        let shown: Vec<_> = shown.map(|(_, root, cause)| format!("for `{}`: {cause}", root.name)).collect();
        Err((Class::Invalid, shown.join("; ")))
    }
}

/// The attestation rules that the statement in `piece` fulfils, at least one. All `rules` demand the statement's
/// predicate type.
fn fulfilled_by(piece: &Piece<'_>, rules: &[(usize, &AttestationRule)]) -> Result<Vec<usize>, Refusal> {
    let predicate =
        Statement::predicate(piece.envelope_payload().unwrap_or_default()).map_err(|cause| (Class::Invalid, cause))?;
    let mut fulfilled = Vec::new();
    let mut failure = "no rule is about it".to_owned();
    for (place, rule) in rules {
        match rule.fields.iter().find_map(|field| broken(field, &predicate)) {
            None => fulfilled.push(*place),
            Some(cause) => failure = cause,
        }
    }
    if fulfilled.is_empty() { Err((Class::Invalid, failure)) } else { Ok(fulfilled) }
}

/// Why `predicate` breaks the rule `field`; `None` if it fulfils the rule.
fn broken(field: &FieldRule, predicate: &Value) -> Option<String> {
    let pointer = &field.pointer;
    let found = match predicate.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        Some(_) => return Some(format!("its predicate's field {pointer} is neither text nor number")),
        None => return Some(format!("its predicate has no field {pointer}")),
    };
    if field.value.accepts(&found) {
        return None;
    }
    Some(format!("its predicate's field {pointer} is `{}`, not {:?}", shown(&found), field.value))
}
