//! Tests of forged signatures, in each of which one link is broken and everything else is correct. The verifier refuses
//! each forged signature with the right class and cause, and accepts the same signature without the change.

mod composed;
pub mod table;

use service_verify::{
    AttestationRule, Class, Evidence, FieldRule, Outcome, Pattern, Requirement, Roots, Timestamps, Verdict, verify,
};

use crate::forge::{BUILD_TYPE, Forge, Form, Recipe, now, stamp, subject};

/// The requirement for a signature of format `form`.
pub fn requirement(form: Form, root: &str) -> Requirement {
    let is_attestation = matches!(form, Form::Attestation | Form::BundleAttestation);
    let field = |pointer: &str, value| FieldRule { pointer: pointer.to_owned(), value };
    let rule = AttestationRule {
        predicate_type: BUILD_TYPE.to_owned(),
        fields: vec![
            field("/builder/id", Pattern::exact("ours").unwrap()),
            field("/level", Pattern::regex("[34]").unwrap()),
        ],
    };
    Requirement {
        roots: Roots::Named(vec![root.to_owned()]),
        annotations: [("env".to_owned(), "prod".to_owned())].into(),
        image_signature: !is_attestation,
        attestations: if is_attestation { vec![rule] } else { Vec::new() },
        ..Requirement::default()
    }
}

/// The trust root that accepts a valid signature of this recipe.
pub fn root_of(recipe: &Recipe) -> &'static str {
    if recipe.is_keyless { "keyless" } else { "key" }
}

pub fn judge(forge: &Forge, evidence: &[Evidence], requirement: &Requirement) -> Verdict {
    verify(&subject(), evidence, requirement, &forge.trust(), now())
}

pub fn assert_refused(verdict: &Verdict, class: Class, cause: &str, what: &str) {
    let Outcome::Refused { class: found, cause: found_cause } = &verdict.outcome else {
        panic!("{what}: accepted, {:?}", verdict.signers);
    };
    assert_eq!(*found, class, "{what}: {found_cause}");
    assert!(found_cause.contains(cause), "{what}: {found_cause}");
    assert!(verdict.signers.is_empty(), "{what}: {:?}", verdict.signers);
}

/// Valid signatures of all formats are accepted: with a log entry, with a timestamp, and with both, which state the
/// same time.
#[test]
fn good_pieces_of_every_form_are_accepted() {
    let forge = Forge::new();
    for form in [Form::Signature, Form::Attestation, Form::Bundle, Form::BundleAttestation] {
        for is_keyless in [false, true] {
            for (is_logged, is_stamped) in [(true, false), (true, true), (false, true)] {
                let mut recipe = Recipe::new(form, is_keyless);
                recipe.log = recipe.log.filter(|_| is_logged);
                recipe.stamp = is_stamped.then(stamp);
                let mut requirement = requirement(form, root_of(&recipe));
                requirement.transparency_log = is_logged;
                requirement.timestamps = if is_stamped { Timestamps::Required } else { Timestamps::IfPresent };
                let verdict = judge(&forge, &[forge.make(&recipe)], &requirement);
                assert_eq!(verdict.outcome, Outcome::Verified, "{form:?} {is_keyless} {is_logged} {is_stamped}");
                let [signer] = verdict.signers.as_slice() else { panic!("{verdict:?}") };
                assert_eq!(signer.time.is_some(), is_logged || is_stamped);
                assert_eq!(signer.log_index.is_some(), is_logged);
            }
        }
    }
}
