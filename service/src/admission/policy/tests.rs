//! Tests of the policy: which rule counts, what it does, and how it is explained.

use std::path::Path;

use super::*;
use crate::config::Config;

fn policy(text: &str) -> Policy {
    let config = Config::parse(text, Path::new("service.yaml")).unwrap();
    Policy::new(&config.policy, &config.resolve)
}

fn rule_of(policy: &Policy, image: &str) -> Option<RuleName> {
    match policy.treatment(image) {
        Treatment::LeaveAlone => None,
        Treatment::Resolve { rule, .. } | Treatment::Refuse { rule, .. } => Some(rule),
    }
}

const RULES: &str = r#"
resolve: {skipPrefixes: ["ko://"]}
policy:
  onFailure: {auth: error}
  rules:
    - {pattern: "ghcr.io/team/*", onFailure: {unavailable: allow, auth: deny}}
    - {pattern: "ghcr.io/*", mode: skip}
    - {pattern: "docker.io/library/*", mode: detect, recheck: always}
"#;

#[test]
fn each_image_is_under_the_most_specific_rule() {
    let policy = policy(RULES);
    assert_eq!(rule_of(&policy, "ghcr.io/team/app:1"), Some(RuleName::Rule(0)));
    assert_eq!(rule_of(&policy, "GHCR.IO/team/app:1"), Some(RuleName::Rule(0)));
    assert_eq!(rule_of(&policy, "ghcr.io/other:1"), None, "skipped");
    assert_eq!(rule_of(&policy, "nginx"), Some(RuleName::Rule(2)));
    assert_eq!(rule_of(&policy, "quay.io/x"), Some(RuleName::BuiltIn));
    assert_eq!(rule_of(&policy, "ko://github.com/x"), None, "a prefix is about written texts");
    assert!(policy.detects(RuleName::Rule(2)) && !policy.detects(RuleName::Rule(0)));
    let pinned = format!("nginx@sha256:{}", "a".repeat(64));
    assert!(policy.rechecks("nginx:1") && policy.rechecks(&pinned) && !policy.rechecks("ghcr.io/team/app"));
}

#[test]
fn only_a_whole_digest_is_left_alone_and_no_rule_skips_what_is_no_reference() {
    let policy = policy(RULES);
    let pinned = format!("quay.io/x@sha256:{}", "a".repeat(64));
    assert_eq!(policy.treatment(&pinned), Treatment::LeaveAlone);
    for image in ["x@", "a/b@foo", "user:pw@ghcr.io/x", "ghcr.io/x@sha256:1", "ghcr.io:99999/x", "ghcr.io:/x"] {
        let Treatment::Refuse { failure, .. } = policy.treatment(image) else { panic!("{image} must be refused") };
        assert_eq!(failure.class, Class::Misconfigured, "{image}");
    }
    let long = "é".repeat(10_000);
    assert_eq!(rule_of(&policy, &long), Some(RuleName::BuiltIn));
}

#[test]
fn actions_come_from_the_rule_then_the_policy_then_the_table() {
    let policy = policy(RULES);
    let (team, other) = (RuleName::Rule(0), RuleName::BuiltIn);
    for (rule, class, stored, expected) in [
        (team, Class::Unavailable, false, Action::Allow),
        (team, Class::Unavailable, true, Action::Allow),
        (team, Class::Auth, true, Action::Deny),
        (other, Class::Auth, false, Action::Error),
        (other, Class::Unavailable, false, Action::Deny),
        (other, Class::Unavailable, true, Action::Error),
        (other, Class::NotFound, true, Action::Deny),
        (other, Class::Misconfigured, true, Action::Deny),
        (other, Class::Internal, false, Action::Error),
        (other, Class::Internal, true, Action::Error),
    ] {
        assert_eq!(policy.action(rule, class, stored), expected, "{rule} {class} {stored}");
    }
    assert_eq!(policy.action_of_defect(), Action::Error);
}

#[test]
fn the_explanation_says_what_a_review_does_and_why() {
    let policy = policy(RULES);
    assert_eq!(
        policy.explain("ghcr.io/team/app").to_string(),
        "image:    ghcr.io/team/app\n\
         parsed:   host ghcr.io, repository team/app, tag latest (none is written)\n\
         matched:  ghcr.io/team/app:latest\n\
         rule:     policy.rules[0] (`ghcr.io/team/*`): the most specific of 2 rules that match\n          \
         also matches: policy.rules[1] (`ghcr.io/*`)\n\
         outcome:  gets the digest that its registry has for it\n\
         recheck:  when an update changes it (changed)\n\
         failure:  not-found: deny (built in)\n\
         failure:  auth: deny (policy.rules[0].onFailure)\n\
         failure:  unavailable: allow (policy.rules[0].onFailure)\n\
         failure:  misconfigured: deny (built in)\n\
         failure:  internal: error (built in)\n"
    );
    let outcomes = [
        ("ko://x", "left alone"),
        ("ghcr.io/a:1", "left alone"),
        ("x@", "fails with class misconfigured: it is not an image reference"),
        ("nginx", "is looked up and stays as it is, with a warning"),
    ];
    for (image, outcome) in outcomes {
        assert_eq!(policy.explain(image).outcome(), outcome, "{image}");
    }
    assert!(policy.explain("quay.io/x").to_string().contains("unavailable: deny, error on update (built in)"));
    assert!(!policy.explain("a\u{1b}[2J\nb").to_string().contains('\u{1b}'), "nothing reaches the terminal raw");
}
