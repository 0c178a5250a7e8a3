//! Tests of the decision: which action wins, which images are named, and which notes are added.

use super::*;

fn digest() -> String {
    format!("sha256:{}", "d".repeat(64))
}

fn found() -> Outcome {
    let result = Ok(Found::pinned(digest().into()));
    Outcome { result, rule: RuleName::BuiltIn, course: Course::Enforce(Action::Deny), signed: false }
}

fn fails(class: Class, course: Course) -> Outcome {
    Outcome { result: Err(Failure::new(class, "the\ncause")), rule: RuleName::Rule(2), course, signed: false }
}

fn decision(hook: Hook, images: Vec<(&str, Outcome)>) -> Decision {
    let sites: Vec<_> = images
        .iter()
        .enumerate()
        .map(|(index, (image, _))| Site {
            pointer: format!("/spec/containers/{index}/image"),
            image: (*image).to_owned(),
            mutable: !image.starts_with("immutable"),
        })
        .collect();
    decide(hook, &sites, &images.into_iter().collect())
}

#[test]
fn the_strongest_action_wins_and_all_failing_images_are_named() {
    use Course::Enforce;
    let let_in = || ("allowed", fails(Class::Unavailable, Enforce(Action::Allow)));
    let error = || ("error", fails(Class::Internal, Enforce(Action::Error)));
    let denied = || ("denied", fails(Class::NotFound, Enforce(Action::Deny)));
    let Decision::Deny { message, notes } =
        decision(Hook::Mutating, vec![let_in(), error(), denied(), ("good", found())])
    else {
        panic!("a denial wins")
    };
    assert_eq!(
        message,
        "3 images have no digest: allowed: unavailable: the\\u{a}cause; denied: not-found: the\\u{a}cause; \
         error: internal: the\\u{a}cause"
    );
    assert!(
        notes.annotations["denied"]
            .text()
            .contains(r#"{"image":"denied","class":"not-found","rule":"policy.rules[2]"}"#)
    );
    let Decision::Error { message } = decision(Hook::Mutating, vec![let_in(), error(), ("good", found())]) else {
        panic!("an error is stronger than letting in")
    };
    assert!(message.starts_with("2 images have no digest: allowed: "), "{message}");
    let Decision::Allow { patch, notes } = decision(Hook::Mutating, vec![let_in(), ("good", found())]) else {
        panic!("nothing stands against it")
    };
    assert_eq!(
        patch.unwrap(),
        format!(r#"[{{"op":"replace","path":"/spec/containers/1/image","value":"good@{}"}}]"#, digest())
    );
    assert_eq!(notes.warnings, ["allowed has no digest (unavailable); let in by policy.rules[2]"]);
    assert_eq!(
        notes.annotations["let-in"].text(),
        r#"[{"image":"allowed","class":"unavailable","rule":"policy.rules[2]"}]"#
    );
    assert_eq!(
        notes.annotations["pinned"].text(),
        format!(r#"[{{"image":"good","digest":"{}","rule":"built-in"}}]"#, digest())
    );
}

#[test]
fn what_is_detected_changes_and_refuses_nothing() {
    let mut seen = found();
    seen.course = Course::Detect;
    let images = vec![("a", seen), ("b", fails(Class::NotFound, Course::Detect))];
    for hook in [Hook::Mutating, Hook::Validating] {
        let Decision::Allow { patch: None, notes } = decision(hook, images.clone()) else { panic!("only reported") };
        assert_eq!(
            notes.warnings,
            ["a is not pinned; detected by built-in", "b has no digest (not-found); detected by policy.rules[2]"]
        );
        assert!(notes.annotations["detected"].text().contains(r#""class":"not-found""#));
    }
}

#[test]
fn an_immutable_field_is_not_patched() {
    let nothing = Decision::Allow { patch: None, notes: Notes::default() };
    assert_eq!(decision(Hook::Mutating, vec![("immutable", found())]), nothing);
}

#[test]
fn the_validating_hook_denies_what_the_mutating_one_pins() {
    let images = vec![("a:1", found()), ("b", fails(Class::Unavailable, Course::Enforce(Action::Allow)))];
    let Decision::Deny { message, .. } = decision(Hook::Validating, images) else { panic!("a:1 is not pinned") };
    assert_eq!(
        message,
        format!(
            "1 image has no digest: b: unavailable: the\\u{{a}}cause. 1 image is not pinned: a:1: write a:1@{}",
            digest()
        )
    );
    let let_in = decision(Hook::Validating, vec![("b", fails(Class::Unavailable, Course::Enforce(Action::Allow)))]);
    assert!(matches!(let_in, Decision::Allow { patch: None, .. }));
}

#[test]
fn warnings_and_annotations_are_bounded() {
    let names: Vec<_> = (0..100).map(|index| format!("{index:03}{}", "ü\u{1b}".repeat(300))).collect();
    let images = names.iter().map(|name| (name.as_str(), fails(Class::Unavailable, Course::Enforce(Action::Allow))));
    let Decision::Allow { notes, .. } = decision(Hook::Mutating, images.collect()) else { panic!("let in") };
    assert_eq!(notes.warnings.len(), WARNINGS_MAX);
    for warning in &notes.warnings {
        assert!(warning.chars().count() <= WARNING_CHARS_MAX && !warning.contains('\u{1b}'), "{warning}");
        assert!(warning.ends_with("let in by policy.rules[2]"), "{warning}");
    }
    let annotation = notes.annotations["let-in"].text();
    assert!(annotation.ends_with(" and 68 more") && annotation.len() < 20_000, "{annotation}");
}
