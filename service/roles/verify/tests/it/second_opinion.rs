//! Compares the verifier with sigstore's own client: for the same bundles and roots, verifier and client agree, or a
//! list explains the difference.
//!
//! The tests use three sources of bundles: cosign's signatures (`fixtures/`), the forgeries of `forged/table.rs`, and
//! the bundle variants of sigstore's conformance suite, made by this project's code. Tests with random changes of
//! bundles are in `mutation/compared.rs`.

mod shapes;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use service_verify::{Bundle, Class, Evidence, Outcome, Requirement, Subject, Trust, TrustSpec, UnixTime, verify};

use crate::fixtures::{Fixtures, Form};
use crate::forge::{self, Forge};
use crate::forged::table::forgeries;
use crate::theirs::{Theirs, asked_alike};

/// Minimum number of compared bundles of the fixtures, so that the test cannot become empty.
const ASKED_MIN: usize = 81;
/// Minimum number of bundles of the fixtures that verifier and client must accept.
const ACCEPTED_MIN: usize = 33;
/// Minimum number of forged bundles that are compared.
const FORGED_MIN: usize = 374;

/// Signatures by cosign that only the verifier accepts: text of the client's message, and the reason.
const ONLY_OURS: &[(&str, &str)] = &[
    (
        NO_TIME,
        "a bundle with neither a log entry nor a timestamp: a key may sign without either, and they want a time of everybody",
    ),
    ("EC curve", "P-521: they know no such key"),
];
/// The client's message about a bundle without a time.
const NO_TIME: &str = "at least one tlog entry or timestamp";

/// Forgeries that only the client accepts, with the reason.
const ONLY_THEIRS: &[(&str, &str)] = &[
    ("another type of claim", "they do not look at a statement's `_type`"),
    ("certificate of two holders", "they take the first name of a certificate"),
    ("certificate of two issuers", "they look at the newer extension alone"),
    ("certificate with an extension twice", "nor do they look for a second one of a kind"),
    (
        "certificate from before its root",
        "each certificate of the file is an anchor to them, and an anchor's own life is not looked at",
    ),
    (
        "entry of an unknown kind",
        "they believe what the bundle says of the entry's kind, and do not hold it against the entry",
    ),
    ("entry of an unknown version", "the same"),
    (
        "timestamp whose attributes are about another kind of content",
        "they do not look at the attribute that says of what kind",
    ),
    ("timestamp with an attribute twice", "they take the first"),
    ("timestamp with two signers", "they take the first"),
    ("a bundle with key and certificate", "they take what they were asked for"),
    ("a bundle with two log entries", "both are checked; we read one, as all makers write it"),
    ("dated into the future", "they ask the machine's clock, for which it is past"),
    ("timestamp of the future", "the same"),
    ("an enormous certificate", "they have no limits of size"),
    ("an enormous entry", "the same"),
    ("an enormous note", "the same"),
    ("an enormous piece", "the same"),
];

/// The results of verifier and client for one bundle.
struct Said {
    ours: Outcome,
    theirs: Result<(), String>,
}

impl Said {
    /// Checks `piece` with verifier and client; `None` if `piece` is not a bundle.
    fn of(question: &Question<'_>, piece: &Evidence) -> Option<Self> {
        let Question { subject, requirement, trust, root, now } = question;
        let (bundle, requirement) = asked_alike(piece, subject, requirement)?;
        let theirs = Theirs::new(trust, root, &requirement);
        let theirs = theirs.and_then(|theirs| theirs.judge(&bundle.json, subject.digest));
        let ours = match Trust::compile(trust) {
            Ok(trust) => verify(subject, &[Evidence::Bundle(bundle)], &requirement, &trust, *now).outcome,
            Err(error) => Outcome::Refused { class: Class::Misconfigured, cause: error.to_string() },
        };
        Some(Self { ours, theirs })
    }

    fn we_accept(&self) -> bool {
        self.ours == Outcome::Verified
    }

    fn shown(&self, name: &str) -> String {
        format!("{name}: we say {:?}, they say {:?}", self.ours, self.theirs)
    }
}

/// The inputs of one comparison of verifier and client.
struct Question<'a> {
    subject: &'a Subject,
    requirement: &'a Requirement,
    trust: &'a TrustSpec,
    root: &'a str,
    now: UnixTime,
}

/// Checks that this machine's clock is not behind the test's time `now`: the client uses the machine's clock, so a slow
/// clock would cause different results.
fn assert_clock(now: UnixTime) {
    let clock = i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    assert!(clock >= now.0, "the machine's clock is {} s before what is judged was signed", now.0 - clock);
}

/// The verifier accepts one of cosign's bundles exactly if the client does. A bundle without a time is compared
/// unchanged and with an added timestamp, so that the exception for bundles without a time hides no other difference.
#[test]
fn both_agree_on_what_cosign_signed() {
    let (fixtures, forge) = (Fixtures::read(), Forge::new());
    assert_clock(fixtures.now());
    let (mut asked, mut accepted, mut met, mut wrong) = (0, 0, BTreeSet::new(), Vec::new());
    for case in &fixtures.cases {
        let (subject, requirement, trust) = (case.subject(), case.requirement(), case.trust_spec(Form::TrustedRoot));
        let mut pieces = case.evidence().into_iter().map(|piece| (piece, trust.clone())).collect::<Vec<_>>();
        while let Some((piece, trust)) = pieces.pop() {
            let now = fixtures.now();
            let question = Question { subject: &subject, requirement: &requirement, trust: &trust, root: "root", now };
            let Some(said) = Said::of(&question, &piece) else { continue };
            asked += 1;
            let exception = said.theirs.as_ref().err();
            let exception = exception.and_then(|said| ONLY_OURS.iter().find(|(part, _)| said.contains(part)));
            match (said.we_accept(), said.theirs.is_ok(), exception) {
                (true, false, Some((part, _))) => {
                    met.insert(*part);
                    if *part == NO_TIME {
                        pieces.push(stamped(&forge, &piece, &trust));
                    }
                }
                (ours, theirs, _) if ours != theirs => wrong.push(said.shown(&case.name)),
                (ours, ..) => accepted += usize::from(ours),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked >= ASKED_MIN && accepted >= ACCEPTED_MIN, "{asked} asked, {accepted} accepted by both");
    // An outdated exception is as wrong as a missing one.
    assert_eq!(met.len(), ONLY_OURS.len(), "{met:?}");
}

/// Adds a timestamp of `forge` to `piece`, and the authorities of `forge` to `trust`.
fn stamped(forge: &Forge, piece: &Evidence, trust: &TrustSpec) -> (Evidence, TrustSpec) {
    let Evidence::Bundle(bundle) = piece else { panic!("no bundle") };
    let mut json: Value = serde_json::from_slice(&bundle.json).unwrap();
    let stamp = forge.stamp_of(json["dsseEnvelope"]["signatures"][0]["sig"].as_str().unwrap());
    json["verificationMaterial"]["timestampVerificationData"] = json!({"rfc3161Timestamps": [stamp]});
    let trust = TrustSpec { authorities: forge.trust_spec_of_file(|_| {}).authorities, ..trust.clone() };
    (Evidence::Bundle(Bundle { json: json.to_string().into_bytes(), ..bundle.clone() }), trust)
}

/// The client refuses each forged bundle that the verifier refuses, unless a list says that the client does not check
/// the property. Forgeries of the manifest around a bundle, or of the fields that a policy rule checks, are not
/// compared.
#[test]
fn both_refuse_each_forged_bundle() {
    let forge = Forge::new();
    assert_clock(forge::now());
    let trust = forge.trust_spec_of_file(|_| {});
    let (mut asked, mut met, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for forged in forgeries() {
        let subject = forge::subject();
        let Evidence::Bundle(piece) = forge.make(&forged.recipe) else { continue };
        let (requirement, root, now) = (&forged.requirement, forged.root, forge::now());
        let question = Question { subject: &subject, requirement, trust: &trust, root, now };
        let Some(said) = Said::of(&question, &Evidence::Bundle(piece)) else { continue };
        asked += 1;
        let exception = ONLY_THEIRS.iter().find(|(name, _)| *name == forged.name);
        met.extend(exception.map(|(name, _)| *name));
        let is_as_expected = match exception {
            Some(_) => !said.we_accept() && said.theirs.is_ok(),
            None => said.we_accept() == said.theirs.is_ok(),
        };
        if !is_as_expected {
            wrong.push(said.shown(&forged.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked >= FORGED_MIN, "{asked} asked");
    assert_eq!(met.len(), ONLY_THEIRS.len(), "{met:?}");
}
