//! Tests of the translation: translated parts, named parts, and the validity of the result.

use super::*;
#[cfg(feature = "verify")]
use service_admission::config::{Config, NoMatch, Recheck, Resources};

#[cfg(feature = "verify")]
const VALUES: &str = r#"
kubernetes: {webhook: {failurePolicy: Fail}, redis: {}}
application:
  validators:
    - {name: allow, type: static, approve: true}
    - {name: hub, type: notaryv1, trustRoots: [{name: default, key: x}]}
    - name: default
      type: cosign
      auth: {secretName: s}
      host: {rekor: rekor.sigstore.dev}
      trustRoots:
        - {name: default, key: "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n"}
        - {name: kms, key: "awskms://x"}
        - {name: ci, keyless: {issuer: "https://i", subjectRegex: "a.*"}}
  policy:
    - {pattern: "*:*"}
    - {pattern: "docker.io/library/*:*", validator: hub, with: {delegations: [x]}}
    - {pattern: "*:*", with: {trustRoot: "*", threshold: 1, verificationLevel: strict}}
    - {pattern: "registry.k8s.io/*:*", validator: allow}
  features:
    automaticUnchangedApproval: false
    automaticChildApproval: true
    detectionMode: true
    namespacedValidation: {mode: ignore}
    cache: {expirySeconds: 20, cacheErrors: false}
  logLevel: warning
alerting:
  clusterIdentifier: x
  rejectRequest:
    receivers:
      - {template: opsgenie, receiverUrl: "https://api.opsgenie.example/v2/alerts", priority: 1, customHeaders: ["Authorization: GenieKey k"], failIfAlertSendingFails: true}
      - {template: mine, receiverUrl: "https://mine.example/", payloadFields: {tags: [a]}}
"#;

#[cfg(feature = "verify")]
#[test]
fn the_result_is_a_configuration_that_means_the_same_and_the_rest_is_named() {
    let imported = connaisseur(VALUES, Path::new("/etc/values.yaml")).unwrap();
    let config = crate::config::parse(&imported.config, Path::new("/etc/c.yaml"));
    let config = Config::of(&config.unwrap_or_else(|error| panic!("{error}\n{}", imported.config)));
    let names: Vec<_> = config.validators.iter().map(|validator| &*validator.name).collect();
    assert_eq!(names, ["allow", "hub", "default"]);
    let patterns: Vec<_> = config.policy.rules.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(patterns, ["docker.io/library/*:*", "*:*", "registry.k8s.io/*:*"]);
    assert_eq!((config.policy.no_match, config.policy.detection), (NoMatch::Deny, true));
    assert_eq!((config.policy.resources, config.policy.child_approval), (Resources::All, true));
    assert!(config.policy.rules.iter().all(|rule| rule.recheck == Recheck::Always));
    assert_eq!(config.policy.verdicts.ttl.as_secs(), 20);
    assert_eq!(config.policy.rules[1].with.as_ref().unwrap().threshold, 1);
    for (what, said) in [
        ("type `notaryv1`, which is not built in", "an engine that is missing"),
        ("trust root `kms` of the validator `default` was left out", "a key somewhere else"),
        ("needs the keys of sigstore's public instance", "what Connaisseur fetches"),
        ("[default].auth was left out", "credentials"),
        ("[default].host.rekor was left out", "a log that is asked"),
        ("The rule `*:*` was left out", "the earlier of two"),
        ("with.verificationLevel has no meaning for cosign", "what is another validator's"),
        ("namespaceSelector", "namespaces"),
        ("cacheErrors", "errors"),
        ("customHeaders are written", "secrets of alerts"),
        ("put `mine` beside", "a template of one's own"),
        ("failurePolicy: Fail", "the webhook"),
        ("`get` on replicasets", "a right"),
    ] {
        assert!(imported.left.iter().any(|left| left.contains(what)), "{said}: {:#?}", imported.left);
    }
    let alerts = &imported.config;
    for said in [
        "cluster: x",
        "template: opsgenie",
        "GenieKey k",
        "failIfAlertSendingFails: true",
        "templateFile: mine.json",
        "tags",
    ] {
        assert!(alerts.contains(said), "{said}: {alerts}");
    }
    assert!(!imported.left.iter().any(|left| left.contains("not accepted")), "{:#?}", imported.left);
}

#[test]
fn what_is_no_values_is_refused() {
    let error = connaisseur("a: 1", Path::new("v.yaml")).unwrap_err();
    assert!(error.to_string().contains("no values of Connaisseur"), "{error}");
}
