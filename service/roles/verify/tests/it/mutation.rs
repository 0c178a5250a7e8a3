//! A fuzzer that changes cosign's signatures, and an oracle that decides which changed signatures the verifier may
//! accept.
//!
//! A change is an *accepted forgery* if the verdict still counts a signer, although the change altered a fact that the
//! requirement binds. The bound facts are:
//! - the signed type and payload, the signature, and the certificate of a keyless signer;
//! - if a log is demanded, its entry (log, index, body, and the time if it was promised);
//! - if a timestamp is demanded, its subject and time;
//! - the image that a referrer names;
//! - all facts that the verdict states about the signer.
//!
//! The module [`facts`] reads the facts, shares no code with the verifier, and compares decoded values. White space,
//! the order of keys, a key hint and an unknown field are no facts. Proofs (signatures of logs and authorities, paths,
//! chains) are no facts either: a change of a proof is no forgery if the proved facts are unchanged. If a log's promise
//! is removed and was not needed, the verdict has no time any more, but nothing else in the verdict may change.

// The path is written out, because the example includes this file by its path.
#[path = "mutation/change.rs"]
mod change;
#[path = "mutation/compared.rs"]
pub mod compared;
#[path = "mutation/facts.rs"]
mod facts;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use service_verify::{Evidence, Requirement, Signer, Subject, Trust, UnixTime, verify};

use crate::fixtures::{Fixtures, Form};
use facts::Facts;

/// Maximum number of changes of one signature in one try.
const CHANGES_MAX: usize = 3;

/// A signature by cosign that both cosign and this crate accept.
#[derive(Clone)]
pub struct Golden {
    pub name: String,
    subject: Subject,
    evidence: Evidence,
    requirement: Requirement,
    trust: Trust,
    is_keyless: bool,
    /// Facts of all genuine signatures that fulfil the case: if a change replaces one of these signatures by another,
    /// it is no forgery.
    genuine: Vec<(Facts, Vec<Signer>)>,
}

#[derive(Debug, Default)]
pub struct Tally {
    pub tries: u64,
    pub refused: u64,
    /// Number of accepted changes that altered no fact.
    pub harmless: u64,
    /// Accepted changes that altered a fact, as seed and change.
    pub forged: Vec<String>,
}

/// Every case of the fixtures for which one signature is enough.
pub fn golden(fixtures: &Fixtures) -> Vec<Golden> {
    let mut found = Vec::new();
    for case in &fixtures.cases {
        let (subject, requirement, trust) = (case.subject(), case.requirement(), case.trust(Form::TrustedRoot));
        let is_keyless = case.is_keyless();
        let judged = case.evidence().into_iter().map(|piece| {
            let verdict = verify(&subject, std::slice::from_ref(&piece), &requirement, &trust, fixtures.now());
            (piece, verdict)
        });
        let accepted: Vec<_> = judged.filter(|(_, verdict)| verdict.is_verified()).collect();
        let genuine = accepted.iter().map(|(piece, verdict)| {
            let facts = Facts::read(piece, &requirement, is_keyless).expect("the facts of a good piece");
            (facts, verdict.signers.clone())
        });
        let genuine: Vec<_> = genuine.collect();
        found.extend(accepted.into_iter().map(|(evidence, _)| Golden {
            name: case.name.clone(),
            subject: subject.clone(),
            evidence,
            requirement: requirement.clone(),
            trust: trust.clone(),
            is_keyless,
            genuine: genuine.clone(),
        }));
    }
    found
}

/// Makes `tries` changes, which are the same for the same `seed`.
pub fn run(golden: &[Golden], now: UnixTime, seed: u64, tries: u64) -> Tally {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    while tally.tries < tries {
        let piece = &golden[random.random_range(0..golden.len())];
        let other = &golden[random.random_range(0..golden.len())].evidence;
        let mut changed = piece.evidence.clone();
        for _ in 0..random.random_range(1..=CHANGES_MAX) {
            change::change(&mut changed, other, &mut random);
        }
        tally.tries += 1;
        match piece.judge(&changed, now) {
            None => tally.refused += 1,
            Some(true) => tally.harmless += 1,
            Some(false) => {
                let what = format!("seed {seed}, try {}: {}: {}", tally.tries, piece.name, shown(&changed));
                tally.forged.push(what);
            }
        }
    }
    tally
}

impl Golden {
    /// Whether `changed` has the same facts as before the change; `None` if the verifier refuses `changed`.
    fn judge(&self, changed: &Evidence, now: UnixTime) -> Option<bool> {
        let evidence = std::slice::from_ref(changed);
        let verdict = verify(&self.subject, evidence, &self.requirement, &self.trust, now);
        if !verdict.is_verified() && verdict.signers.is_empty() {
            return None;
        }
        let Some(facts) = Facts::read(changed, &self.requirement, self.is_keyless) else { return Some(false) };
        let is_genuine = |(genuine, signers): &(Facts, Vec<Signer>)| {
            let is_undated = facts.is_undated_beside(genuine);
            let said = |signer: &Signer| Signer {
                source: String::new(),
                time: signer.time.filter(|_| !is_undated),
                ..signer.clone()
            };
            facts.are_as(genuine) && verdict.signers.iter().map(said).eq(signers.iter().map(said))
        };
        Some(self.genuine.iter().any(is_genuine))
    }
}

fn shown(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Bundle(bundle) => String::from_utf8_lossy(&bundle.json).into_owned(),
        Evidence::Signature(piece) => {
            let payload = String::from_utf8_lossy(&piece.payload);
            format!("{payload} {} {:?}", piece.signature, piece.companions)
        }
        Evidence::Attestation(piece) => {
            format!("{} {:?}", String::from_utf8_lossy(&piece.envelope), piece.companions)
        }
        Evidence::Unusable(_) => String::new(),
    }
}
