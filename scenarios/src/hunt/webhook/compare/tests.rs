//! Each kind of difference between answers, beside a right twin.

use serde_json::{Value, json};

use super::*;

fn about() -> About {
    About {
        number: 3,
        webhook: "/validate".to_owned(),
        question: "Cache CREATE, without spec".to_owned(),
        kind: "Cache".to_owned(),
        name: "a".to_owned(),
    }
}

fn allowed() -> Given {
    Given { allowed: true, ..Given::default() }
}

fn denied(message: &str) -> Given {
    Given { code: 403, message: message.to_owned(), ..Given::default() }
}

fn patched(changes: &Value) -> Given {
    Given { changes: changes.as_object().unwrap().clone().into_iter().collect(), ..allowed() }
}

fn warned(warning: &str) -> Given {
    Given { warnings: vec![warning.to_owned()], ..allowed() }
}

/// The name of the sign between a quiet answer and a later one; empty without a sign.
fn sign(quiet: Given, now: Given, condition: Condition) -> String {
    masked(&Mask::default(), quiet, now, condition)
}

fn masked(mask: &Mask, quiet: Given, now: Given, condition: Condition) -> String {
    let mut signs = Signs::default();
    signs.compare(&about(), &Answer::Given(quiet), &Answer::Given(now), condition, mask);
    name(signs)
}

fn name(signs: Signs) -> String {
    let fields = signs.shown().into_iter().map(|shown| shown.sign.field.unwrap());
    fields.map(|field| field.trim_start_matches("/validate ").to_owned()).collect::<Vec<_>>().join(", ")
}

#[test]
fn equal_answers_are_no_sign() {
    for condition in Condition::ALL {
        assert_eq!(sign(allowed(), allowed(), condition), "");
        assert_eq!(sign(denied("no, in 3ms"), denied("no, in 4ms"), condition), "");
        assert_eq!(sign(patched(&json!({"/a": 1})), patched(&json!({"/a": 1})), condition), "");
    }
}

#[test]
fn another_verdict_is_a_sign() {
    assert_eq!(sign(denied("no"), allowed(), Condition::Together), "verdict");
    assert_eq!(sign(allowed(), denied("no"), Condition::Order), "verdict");
    assert_eq!(sign(denied("no"), denied("another reason"), Condition::Together), "reason of the denial");
    assert_eq!(sign(allowed(), warned("careful"), Condition::Together), "warnings");
}

/// A webhook that refuses while its API server fails is right; one that allows, or patches differently, is not.
#[test]
fn a_failing_api_server_excuses_denials_only() {
    for condition in [Condition::Errors, Condition::Slow, Condition::Restart, Condition::Recovered] {
        assert_eq!(sign(allowed(), denied("the API server failed"), condition), "");
        assert_eq!(sign(denied("no"), denied("the API server failed"), condition), "");
        assert_eq!(sign(denied("no"), allowed(), condition), "verdict");
        assert_eq!(sign(patched(&json!({"/a": 1})), allowed(), condition), "patch");
    }
    let mut signs = Signs::default();
    let failed = Answer::Failed("HTTP 500".to_owned());
    let is_compared =
        signs.compare(&about(), &Answer::Given(denied("no")), &failed, Condition::Together, &Mask::default());
    assert!(!is_compared && name(signs).is_empty(), "an explicit failure is no answer");
}

#[test]
fn another_patch_is_a_sign_and_names_its_place() {
    let mut signs = Signs::default();
    let (quiet, now) = (patched(&json!({"/a": 1, "/b": 2})), patched(&json!({"/a": 1, "/b": 3})));
    signs.compare(&about(), &Answer::Given(quiet), &Answer::Given(now), Condition::Together, &Mask::default());
    let shown = signs.shown();
    assert_eq!(shown[0].conditions, [Condition::Together]);
    assert_eq!(
        shown[0].sign.sentence(),
        "/validate: Cache CREATE, without spec: side by side with other requests it is patched: /b = 3; asked alone on a quiet system it is patched: /b = 2."
    );
}

/// Parts that differ on a quiet system are masked and named.
#[test]
fn what_flips_on_a_quiet_system_is_masked() {
    let mut mask = Mask::default();
    let mut learn = |one: Given, other: Given| mask.learn(&about(), &Answer::Given(one), &Answer::Given(other));
    learn(patched(&json!({"/list/0/id": 1})), patched(&json!({"/list/0/id": 2})));
    learn(denied("a"), denied("b"));
    learn(warned("a"), warned("b"));
    let names = ["/validate: the patch of /list/*/id", "/validate: the reasons of denials", "/validate: the warnings"];
    assert_eq!(mask.masked(), names);
    let together = Condition::Together;
    assert_eq!(masked(&mask, patched(&json!({"/list/7/id": 1})), allowed(), together), "");
    assert_eq!(masked(&mask, patched(&json!({"/list/7/x": 1})), allowed(), together), "patch");
    assert_eq!(masked(&mask, denied("x"), denied("y"), together), "");
    assert_eq!(masked(&mask, warned("x"), allowed(), together), "");
    assert_eq!(masked(&mask, denied("x"), allowed(), together), "verdict");
    mask.learn(&about(), &Answer::Given(denied("x")), &Answer::Given(allowed()));
    assert_eq!(masked(&mask, denied("x"), allowed(), together), "");
}

#[test]
fn one_cause_is_one_line_with_the_gravest_example() {
    let mut signs = Signs::default();
    let (yes, no) = (Answer::Given(allowed()), Answer::Given(denied("no")));
    signs.compare(&about(), &yes, &no, Condition::Together, &Mask::default());
    signs.compare(&about(), &no, &yes, Condition::Order, &Mask::default());
    let shown = signs.shown();
    assert_eq!((shown.len(), shown[0].answers), (1, 2));
    assert_eq!(shown[0].conditions, [Condition::Order, Condition::Together]);
    assert!(shown[0].sign.happened.contains("allowed"), "{:?}", shown[0].sign);
}

#[test]
fn an_error_that_became_a_warning_is_a_sign() {
    let sign = |warning: &str| {
        let mut signs = Signs::default();
        check(&about(), &Answer::Given(warned(warning)), &mut signs);
        name(signs)
    };
    assert_eq!(sign(r#"Cache.x.io "a" is invalid: spec.port: Forbidden: no"#), "error as a warning");
    assert_eq!(sign(r#"caches.x.io "a" is forbidden: quota exceeded"#), "error as a warning");
    assert_eq!(sign(r#"Other.x.io "a" is invalid: spec"#), "", "it is about another kind");
    assert_eq!(sign(r#"Cache.x.io "b" is invalid: spec"#), "", "it is about another object");
    assert_eq!(sign("spec.port: prefer another port"), "");
    assert_eq!(sign("[policy] the image is invalid: no tag"), "");
}

#[test]
fn a_patch_that_cannot_be_applied_is_a_sign() {
    let mut signs = Signs::default();
    let broken = Given { unusable: Some("no such place".to_owned()), ..allowed() };
    check(&about(), &Answer::Given(broken), &mut signs);
    check(&about(), &Answer::Given(patched(&json!({"/a": 1}))), &mut signs);
    assert_eq!(name(signs), "patch refused");
}

#[test]
fn a_second_call_changes_nothing() {
    let again = |given: Given, mask: &Mask| {
        let mut signs = Signs::default();
        check_again(&about(), &Answer::Given(given), mask, &mut signs);
        name(signs)
    };
    let mut mask = Mask::default();
    assert_eq!(again(allowed(), &mask), "");
    assert_eq!(again(patched(&json!({"/a": 2})), &mask), "not idempotent");
    mask.learn(&about(), &Answer::Given(patched(&json!({"/a": 1}))), &Answer::Given(patched(&json!({"/a": 2}))));
    assert_eq!(again(patched(&json!({"/a": 2})), &mask), "");
}

/// A further call may complete what another webhook added, as long as both agree in the end.
#[test]
fn webhooks_that_never_agree_are_a_sign() {
    let order = |further: &Value, last: &Value| {
        let mut signs = Signs::default();
        let (further, last) = (Answer::Given(patched(further)), Answer::Given(patched(last)));
        check_order(&about(), &further, &last, &Mask::default(), &mut signs);
        name(signs)
    };
    assert_eq!(order(&json!({"/metadata/labels/a": "y"}), &json!({"/metadata/labels": {"a": "x"}})), "patch undone");
    assert_eq!(order(&json!({"/metadata/labels/ab": "y"}), &json!({"/metadata/labels/a": "x"})), "");
    assert_eq!(order(&json!({"/spec/containers/1/image": "a@sha256:0"}), &json!({})), "");
}

/// A time with a resolution of a second may be equal in both quiet rounds.
#[test]
fn times_and_uids_in_a_patch_are_no_difference() {
    let at = |time: &str| {
        patched(&json!({"/metadata/annotations": {"at": time, "id": "6c6f6e67-6861-4756-8c00-000000000001"}}))
    };
    assert_eq!(sign(at("2026-01-05T08:00:00Z"), at("2026-01-05T08:00:01Z"), Condition::Together), "");
    assert_eq!(sign(at("monday"), at("tuesday"), Condition::Together), "patch");
}
