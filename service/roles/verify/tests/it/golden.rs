//! Tests with signatures that cosign made, and with cosign's answers about them.

use service_verify::{Class, Outcome, verify};

use crate::fixtures::{Case, Fixtures, Form};

/// cosign's exit code for an image without a signature.
const NO_SIGNATURES: i32 = 10;
/// Minimum number of cases in the table of fixtures, so that the test cannot become empty.
const CASES_MIN: usize = 60;

fn outcome(case: &Case, fixtures: &Fixtures, form: Form) -> Outcome {
    verify(&case.subject(), &case.evidence(), &case.requirement(), &case.trust(form), fixtures.now()).outcome
}

/// The verifier's verdicts equal cosign's answers, except for differences that the table explains.
#[test]
fn cosign_and_we_agree_on_every_case() {
    let fixtures = Fixtures::read();
    assert!(fixtures.cases.len() >= CASES_MIN);
    let mut wrong = Vec::new();
    for case in &fixtures.cases {
        for form in [Form::TrustedRoot, Form::Listed] {
            if form == Form::Listed && case.name.contains("Rekor 2") {
                continue;
            }
            let outcome = outcome(case, &fixtures, form);
            let agree = case.is_accepted_by_cosign() == (outcome == Outcome::Verified);
            // An outdated exception is as wrong as a missing one.
            if agree == case.exception.is_some() {
                wrong.push(format!("{} ({form:?}): cosign {} {}; we {outcome:?}", case.name, case.exit, case.said));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), fixtures.cases.len(), wrong.join("\n"));
}

/// The verifier distinguishes a missing signature, a signature of another image and an invalid signature, as cosign
/// does.
#[test]
fn classes_follow_what_cosign_says() {
    let fixtures = Fixtures::read();
    for case in fixtures.cases.iter().filter(|case| case.exception.is_none()) {
        let Outcome::Refused { class, cause } = outcome(case, &fixtures, Form::TrustedRoot) else { continue };
        let case_said = format!("{}: {cause}; cosign: {}", case.name, case.said);
        match class {
            Class::Unsigned => assert!(case.exit == NO_SIGNATURES || case.said.contains("attestations"), "{case_said}"),
            Class::Mismatch => assert!(case.said.contains("digest"), "{case_said}"),
            Class::Invalid => assert_ne!(case.exit, NO_SIGNATURES, "{case_said}"),
            Class::Misconfigured => panic!("{case_said}"),
        }
        assert_eq!(case.image.starts_with("swapped"), class == Class::Mismatch, "{case_said}");
    }
}

/// Equal trust has equal fingerprints, and different trust has different fingerprints.
#[test]
fn every_trust_has_its_own_fingerprint() {
    let fixtures = Fixtures::read();
    let mut seen = std::collections::BTreeMap::new();
    for case in &fixtures.cases {
        for form in [Form::TrustedRoot, Form::Listed] {
            let spec = case.trust_spec(form);
            let fingerprint = case.trust(form).fingerprint();
            assert_eq!(fingerprint, case.trust(form).fingerprint());
            let known = seen.insert(fingerprint, format!("{spec:?}"));
            assert!(known.is_none_or(|known| known == format!("{spec:?}")), "{}", case.name);
        }
    }
    assert!(seen.len() > 10);
}
