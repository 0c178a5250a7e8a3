//! Tests of the policy: which rule applies to an image, the rule's effect, and its explanation.

use std::path::Path;

use super::*;
use crate::config::Config;

fn policy(text: &str) -> Policy {
    let config = Config::parse(text, Path::new("service.yaml")).unwrap();
    Policy::new(&config)
}

fn rule_of(policy: &Policy, image: &str) -> Option<RuleName> {
    match policy.treatment(image) {
        Treatment::LeaveAlone => None,
        Treatment::Resolve { rule, .. } | Treatment::Verify { rule, .. } | Treatment::Refuse { rule, .. } => Some(rule),
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
    for (rule, class, expected) in [
        (team, Class::Unavailable, Action::Allow),
        (team, Class::Auth, Action::Deny),
        (other, Class::Auth, Action::Error),
        (other, Class::Unavailable, Action::Deny),
        (other, Class::NotFound, Action::Deny),
        (other, Class::Misconfigured, Action::Deny),
        (other, Class::Internal, Action::Error),
    ] {
        assert_eq!(policy.action(rule, class), expected, "{rule} {class}");
    }
    assert_eq!(policy.action_of_defect(), Action::Error);
}

#[test]
fn the_explanation_says_what_a_review_does_and_why() {
    let policy = policy(RULES);
    assert_eq!(
        policy.explain("ghcr.io/team/app", None).to_string(),
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
         failure:  internal: error (built in)\n\
         failure:  too-much-evidence: deny (built in)\n\
         failure:  busy: deny (built in)\n"
    );
    let outcomes = [
        ("ko://x", "left alone"),
        ("ghcr.io/a:1", "left alone"),
        ("x@", "fails with class misconfigured: it is not an image reference"),
        ("nginx", "is looked up and stays as it is, with a warning"),
    ];
    for (image, outcome) in outcomes {
        assert_eq!(policy.explain(image, None).outcome(), outcome, "{image}");
    }
    assert!(policy.explain("quay.io/x", None).to_string().contains("unavailable: deny (built in)"));
    assert!(!policy.explain("a\u{1b}[2J\nb", None).to_string().contains('\u{1b}'), "nothing reaches the terminal raw");
}

const VALIDATED: &str = r#"
validators:
  - {name: deny, type: static, approve: false}
  - {name: allow, type: static, approve: true}
policy:
  noMatch: deny
  namespaces: {ignore: ["kube-*"]}
  rules:
    - {pattern: "ghcr.io/bad/*", validator: deny}
    - {pattern: "ghcr.io/good/*", validator: allow}
    - {pattern: "ghcr.io/seen/*", validator: deny, mode: detect}
    - {pattern: "ghcr.io/*"}
"#;

/// A static validator decides about an image at once, without a lookup. The key `noMatch` decides about images without
/// a rule.
#[test]
fn static_rules_and_no_match_are_decided_by_the_policy_alone() {
    let policy = policy(VALIDATED);
    let refused = |image: &str| match policy.treatment(image) {
        Treatment::Refuse { failure, rule } => (failure.class, failure.cause, rule),
        other => panic!("{image}: {other:?}"),
    };
    let (class, cause, rule) = refused("ghcr.io/bad/x:1");
    assert_eq!((class, rule), (Class::Denied, RuleName::Rule(0)));
    assert_eq!(cause, "the static validator `deny` lets in no image of policy.rules[0] (`ghcr.io/bad/*`)");
    let pinned = format!("ghcr.io/bad/x@sha256:{}", "a".repeat(64));
    assert_eq!(refused(&pinned).0, Class::Denied, "a digest is no excuse");
    assert_eq!(policy.treatment("ghcr.io/good/x:1"), Treatment::LeaveAlone);
    assert_eq!(refused("ghcr.io/good/x@").0, Class::Misconfigured, "what is no reference nobody approves");
    assert_eq!((refused("quay.io/x").0, refused("quay.io/x").2), (Class::Denied, RuleName::NoMatch));
    assert_eq!(policy.action(RuleName::NoMatch, Class::Denied), Action::Deny);
    assert_eq!(policy.action(RuleName::Rule(0), Class::Denied), Action::Deny);
    assert!(policy.detects(RuleName::Rule(2)));
    assert!(matches!(policy.treatment("ghcr.io/x:1"), Treatment::Resolve { rule: RuleName::Rule(3), .. }));
    assert_eq!(policy.exempts(Some("kube-system")), Some("policy.namespaces.ignore"));
    assert_eq!((policy.exempts(Some("team")), policy.exempts(None)), (None, None));
}

#[test]
fn the_explanation_tells_validators_and_namespaces() {
    let policy = policy(VALIDATED);
    for (image, namespace, outcome) in [
        ("ghcr.io/bad/x", None, "fails with class denied"),
        ("ghcr.io/bad/x", Some("kube-system"), "let in: nothing in this namespace is looked at"),
        ("ghcr.io/good/x", Some("team"), "left alone: its validator approves"),
        ("ghcr.io/seen/x", None, "stays as it is, with a warning"),
        ("quay.io/x", None, "fails with class denied"),
        ("ghcr.io/x", None, "gets the digest that its registry has for it"),
    ] {
        assert_eq!(policy.explain(image, namespace).outcome(), outcome, "{image}");
    }
    let said = policy.explain("ghcr.io/bad/x", Some("kube-system")).to_string();
    assert!(
        said.contains("asks:     `deny` (static)\n") && said.contains("exempt:   by policy.namespaces.ignore\n"),
        "{said}"
    );
    assert!(said.contains("          also matches: policy.rules[3] (`ghcr.io/*`)\n"), "{said}");
    assert!(
        policy.explain("quay.io/x", None).to_string().contains("rule:     policy.noMatch (`*`): no rule matches\n")
    );
}

/// An attacker that makes a registry fail cannot make unsigned images run. If a registry was asked and did not answer,
/// the rule's action applies.
#[cfg(feature = "verify")]
#[test]
fn an_open_breaker_lets_nothing_in_where_signatures_are_wanted() {
    let text = "{validators: [{name: default, type: cosign, trustRoots: [{name: default, keyFile: k}]}], policy: {onFailure: {unavailable: allow}, \
                rules: [{pattern: a.io/*, with: {verifyInTransparencyLog: false}}, {pattern: b.io/*, mode: resolve}]}}";
    let policy = policy(text);
    let asked = Failure::new(Class::Unavailable, "503");
    let unasked = Failure { unasked: true, ..asked.clone() };
    for (rule, failure, expected) in [
        (RuleName::Rule(0), &unasked, Action::Deny),
        (RuleName::Rule(0), &asked, Action::Allow),
        (RuleName::Rule(1), &unasked, Action::Allow),
        (RuleName::Rule(1), &asked, Action::Allow),
    ] {
        assert_eq!(policy.action_on(rule, failure), expected, "{rule} {failure:?}");
    }
}

#[cfg(feature = "verify")]
#[test]
fn an_image_under_a_rule_of_signatures_is_verified_whether_it_has_a_digest_or_not() {
    let text = "{validators: [{name: default, type: cosign, trustRoots: [{name: default, keyFile: k}]}], policy: {rules: \
                [{pattern: a.io, with: {verifyInTransparencyLog: false}}, {pattern: b.io/*, mode: verify, with: {verifyInTransparencyLog: false}}]}}";
    let policy = policy(text);
    let Treatment::Verify { target: Target::Tag(reference), name, pin: true, .. } = policy.treatment("a.io/x") else {
        panic!("a tag is verified and pinned")
    };
    assert_eq!((&*reference.tag, &*name), ("latest", "a.io/x:latest"));
    assert!(matches!(policy.treatment("b.io/x"), Treatment::Verify { pin: false, .. }));
    let pinned = format!("a.io/x:1@sha256:{}", "a".repeat(64));
    assert!(matches!(policy.treatment(&pinned), Treatment::Verify { target: Target::Digest { .. }, pin: false, .. }));
    let other = format!("a.io/x@sha512:{}", "a".repeat(128));
    let Treatment::Refuse { failure, .. } = policy.treatment(&other) else { panic!("no signature binds it") };
    assert_eq!(failure.class, Class::Misconfigured);
    let said = policy.explain("b.io/x", None).to_string();
    assert!(
        said.contains("asks:     `default` (cosign): 1 signer(s), trust root `default`, without transparency log\n"),
        "{said}"
    );
    assert!(
        said.contains("outcome:  is verified and stays as it is\n")
            && said.contains("failure:  unsigned: deny (built in)\n")
    );
}

/// An image that uses another name of a registry's host is under the same rule. An earlier version of the service
/// admitted each image of this test without a check, or applied another rule.
#[test]
fn no_alias_of_a_host_leads_around_a_rule() {
    let policy = policy(
        r#"
validators:
  - {name: allow, type: static, approve: true}
  - {name: deny, type: static, approve: false}
policy:
  rules:
    - {pattern: "trusted.corp/*", validator: allow}
    - {pattern: "skipped.corp/*", mode: skip}
    - {pattern: "registry.corp/*", validator: deny}
    - {pattern: "index.docker.io/team/*", validator: deny}
"#,
    );
    for image in ["trusted.corp/x", "TRUSTED.corp:443/x", "skipped.corp/x"] {
        assert_eq!(policy.treatment(image), Treatment::LeaveAlone, "{image}");
    }
    for image in ["evil.example/trusted.corp/x", "evil.example/skipped.corp/x", "trusted.corp.evil.example/x"] {
        assert_eq!(rule_of(&policy, image), Some(RuleName::BuiltIn), "{image}");
    }
    for image in ["registry.corp:443/app", "Registry.Corp/app"] {
        assert_eq!(rule_of(&policy, image), Some(RuleName::Rule(2)), "{image}");
    }
    for image in ["registry-1.docker.io/team/app", "Docker.io/team/app", "docker.io/team/app", "team/app"] {
        assert_eq!(rule_of(&policy, image), Some(RuleName::Rule(3)), "{image}");
    }
}

/// An image that was not examined because of a limit of this program is refused, even if its rule admits every failure.
/// If images beyond a limit ran, an attacker that can reach the limit would choose the images that run.
#[test]
fn limits_of_ours_always_deny() {
    let all = "{not-found: allow, auth: allow, unavailable: allow, misconfigured: allow, internal: allow, unsigned: allow, \
               invalid: allow, mismatch: allow}";
    let policy = policy(&format!("policy: {{onFailure: {all}, rules: [{{pattern: a, onFailure: {all}}}]}}"));
    for class in Class::ALL {
        let let_in = !class.is_own_limit() && class != Class::Denied;
        for rule in [RuleName::Rule(0), RuleName::BuiltIn] {
            assert_eq!(policy.action(rule, class) == Action::Allow, let_in, "{class}");
        }
    }
    for class in ["too-much-evidence", "busy"] {
        let text = format!("policy: {{onFailure: {{{class}: allow}}}}");
        let refused = Config::parse(&text, Path::new("c.yaml")).unwrap_err().to_string();
        assert!(refused.contains(&format!("unknown key `{class}`")), "{refused}");
    }
}

/// An owner that may have been admitted without a check does not approve images of its children.
#[test]
fn owners_approve_only_where_nothing_is_let_in() {
    let inherited = |of_policy: &str, of_rule: &str| {
        let policy = policy(&format!(
            "validators: [{{name: v, type: remote, remote: {{instances: [{{url: \"https://v\"}}], caFile: ca, certificate: c, key: k}}}}]\n\
             policy: {{automaticChildApproval: true, {of_policy} rules: [{{pattern: \"*\", validator: v, {of_rule}}}]}}"
        ));
        policy.is_inherited(RuleName::Rule(0))
    };
    assert!(inherited("", "") && inherited("onFailure: {unavailable: error}, ", "onFailure: {unavailable: deny}"));
    for (of_policy, of_rule) in [
        ("", "onFailure: {unavailable: allow}"),
        ("onFailure: {unavailable: allow}, ", ""),
        ("", "onFailure: {unsigned: allow}"),
        ("", "mode: detect"),
        ("detection: true, ", ""),
    ] {
        assert!(!inherited(of_policy, of_rule), "{of_policy} {of_rule}");
    }
    assert!(inherited("onFailure: {unavailable: allow}, ", "onFailure: {unavailable: deny}"), "the rule counts");
}
