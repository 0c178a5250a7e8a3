//! Compares the verifier with sigstore's own client: if the verifier accepts a changed bundle, the client must accept
//! it too.
//!
//! This module chooses the bundles that verifier and client can read, compares the results, and lists the known
//! differences. Bundles that only the client accepts are counted and are no error; the tests in `second_opinion.rs`
//! name the reasons.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde_json::{Value, json};
use service_verify::{Bundle, Evidence, UnixTime, verify};

use super::{CHANGES_MAX, Golden, change, shown};
use crate::fixtures::{Fixtures, Form};
use crate::theirs::Theirs;

/// A reason why the verifier may accept a changed bundle that the client refuses.
struct Exception {
    name: &'static str,
    /// Whether the exception applies to this bundle, judged by its content and the client's message.
    applies: fn(&Readable, &Value, &str) -> bool,
}

const ONLY_OURS: &[Exception] = &[
    // A rule without a demand for a log ignores the log, as in cosign and in sigstore-go. They check every present
    // entry.
    Exception {
        name: "an entry of a log that nobody asked for",
        applies: |one, bundle, _| !one.golden.requirement.transparency_log && !entries(bundle).is_empty(),
    },
    // With a key and without a log, no time is needed. They demand one from every signer.
    Exception {
        name: "neither a log entry nor a timestamp",
        applies: |one, bundle, _| {
            !one.golden.requirement.transparency_log && entries(bundle).is_empty() && stamps(bundle).is_empty()
        },
    },
    // The first form needs a promise of each entry. They need one also without an entry.
    Exception {
        name: "no log entry in a bundle of the first form",
        applies: |_, bundle, cause| entries(bundle).is_empty() && cause.contains("inclusion promise"),
    },
    // One valid timestamp is enough, as in sigstore-go. They refuse a bundle for every invalid one, and document that
    // they are stricter.
    Exception {
        name: "a bad timestamp beside a good one",
        applies: |_, bundle, cause| stamps(bundle).len() > 1 && cause.contains("RFC 3161 timestamp"),
    },
    // protobuf's JSON has null where a field is left out.
    Exception { name: "null for what nobody has to say", applies: |_, _, cause| cause.contains("invalid type: null") },
];

fn entries(bundle: &Value) -> &[Value] {
    bundle["verificationMaterial"]["tlogEntries"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn stamps(bundle: &Value) -> &[Value] {
    let data = &bundle["verificationMaterial"]["timestampVerificationData"];
    data["rfc3161Timestamps"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A bundle that the verifier and the client accept.
pub struct Readable {
    golden: Golden,
    bundle: Bundle,
    theirs: Theirs,
}

/// The results of all tries of the fuzzer.
#[derive(Debug, Default)]
pub struct Tally {
    pub tries: u64,
    pub both: u64,
    pub neither: u64,
    pub only_theirs: u64,
    /// Number of changed bundles that only the verifier accepts, by known reason.
    pub excepted: BTreeMap<&'static str, u64>,
    /// Bundles that only the verifier accepts, without a known reason: seed, change and the client's message.
    pub only_ours: Vec<String>,
}

/// Cosign's bundles that the verifier and the client accept, each in all versions of the format. The signed content is
/// the same in all versions.
pub fn readable(fixtures: &Fixtures, golden: Vec<Golden>) -> Vec<Readable> {
    let mut found = Vec::new();
    for golden in golden {
        let Evidence::Bundle(bundle) = &golden.evidence else { continue };
        let case = fixtures.cases.iter().find(|case| case.name == golden.name).expect("a golden piece is of a case");
        for json in forms(&bundle.json) {
            let bundle = Bundle { json, ..bundle.clone() };
            let spec = case.trust_spec(Form::TrustedRoot);
            let theirs = Theirs::new(&spec, "root", &golden.requirement).expect("they read the fixtures' roots");
            let one = Readable { golden: golden.clone(), bundle, theirs };
            if one.judge(&one.bundle.json, fixtures.now()) == (true, Ok(())) {
                found.push(one);
            }
        }
    }
    found
}

/// The bundle `json` unchanged (version 0.3), and converted to earlier versions, which had a chain instead of one
/// certificate.
fn forms(json: &[u8]) -> Vec<Vec<u8>> {
    let older = |version: &str| {
        let mut bundle: Value = serde_json::from_slice(json).ok()?;
        bundle["mediaType"] = format!("application/vnd.dev.sigstore.bundle+json;version={version}").into();
        let material = bundle["verificationMaterial"].as_object_mut()?;
        if let Some(certificate) = material.remove("certificate") {
            material.insert("x509CertificateChain".to_owned(), json!({"certificates": [certificate]}));
        }
        serde_json::to_vec(&bundle).ok()
    };
    [Some(json.to_vec()), older("0.1"), older("0.2")].into_iter().flatten().collect()
}

/// Makes `tries` changes to the JSON in `readable`, which are the same for the same `seed`.
pub fn run(readable: &[Readable], now: UnixTime, seed: u64, tries: u64) -> Tally {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    while tally.tries < tries {
        let one = &readable[random.random_range(0..readable.len())];
        let other = &readable[random.random_range(0..readable.len())].bundle;
        let mut changed = Evidence::Bundle(one.bundle.clone());
        for _ in 0..random.random_range(1..=CHANGES_MAX) {
            change::change(&mut changed, &Evidence::Bundle(other.clone()), &mut random);
        }
        let Evidence::Bundle(Bundle { json, .. }) = &changed else { continue };
        // They see no manifest, so a change of the manifest alone is not judged.
        if *json == one.bundle.json {
            continue;
        }
        tally.tries += 1;
        match one.judge(json, now) {
            (true, Ok(())) => tally.both += 1,
            (false, Err(_)) => tally.neither += 1,
            (false, Ok(())) => tally.only_theirs += 1,
            (true, Err(cause)) => {
                if let Some(name) = one.exception(json, &cause) {
                    *tally.excepted.entry(name).or_default() += 1;
                } else {
                    let what = format!("seed {seed}, try {}: {}: {cause}", tally.tries, one.golden.name);
                    tally.only_ours.push(format!("{what}\n{}", shown(&changed)));
                }
            }
        }
    }
    tally
}

impl Readable {
    /// Whether the verifier accepts the changed bundle `json`, and the client's result for it.
    fn judge(&self, json: &[u8], now: UnixTime) -> (bool, Result<(), String>) {
        let changed = [Evidence::Bundle(Bundle { json: json.to_vec(), ..self.bundle.clone() })];
        let golden = &self.golden;
        let verdict = verify(&golden.subject, &changed, &golden.requirement, &golden.trust, now);
        let is_accepted = verdict.is_verified() || !verdict.signers.is_empty();
        (is_accepted, self.theirs.judge(json, golden.subject.digest))
    }

    /// The name of the exception that allows `json`, which the client refuses because of `cause`.
    fn exception(&self, json: &[u8], cause: &str) -> Option<&'static str> {
        let bundle: Value = serde_json::from_slice(json).ok()?;
        ONLY_OURS.iter().find(|known| (known.applies)(self, &bundle, cause)).map(|known| known.name)
    }
}
