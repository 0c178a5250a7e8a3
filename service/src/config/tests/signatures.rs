//! Tests of the configuration of signature checks: the meaning of Connaisseur's keys, and refused values.

use std::path::Path;

use service_admission::config::{Constraint, Mode, Root, Roots, Rule, Text, ValidatorKind};

use super::{Config, refused};

const PEM: &str = "\"-----BEGIN PUBLIC KEY-----\\nAA==\\n-----END PUBLIC KEY-----\"";

fn text(roots: &str, more: &str, rules: &str) -> String {
    format!(
        "{{validators: [{{name: default, type: cosign, trustRoots: [{roots}]{more}}}], policy: {{rules: [{rules}]}}}}"
    )
}

fn rule(rule: &str) -> Rule {
    let roots = format!("{{name: default, key: {PEM}}}, {{name: b, keyFile: b.pub}}, {{name: c, keyFile: c.pub}}");
    let text = text(&roots, ", host: {rekorPubkeyFile: r.pub}", &format!("{{pattern: a, {rule}}}"));
    let config = Config::parse(&text, Path::new("/etc/x.yaml")).unwrap_or_else(|error| panic!("{error}"));
    config.policy.rules.into_iter().next().unwrap()
}

/// Connaisseur's keys in `with` of a cosign rule select the accepted roots, the threshold and the treatment of the
/// image.
#[test]
fn with_means_what_it_means_to_connaisseur() {
    let named = |name: &str| Roots::Named(vec![name.to_owned()]);
    for (written, roots, threshold, required, mode) in [
        ("validator: default", named("default"), 1, &[][..], Mode::VerifyAndPin),
        ("with: {}", named("default"), 1, &[], Mode::VerifyAndPin),
        ("with: {trustRoot: b}", named("b"), 1, &[], Mode::VerifyAndPin),
        ("with: {trustRoot: '*'}", Roots::All, 3, &[], Mode::VerifyAndPin),
        ("with: {trustRoot: '*', threshold: 0}", Roots::All, 3, &[], Mode::VerifyAndPin),
        ("with: {trustRoot: '*', threshold: 2}", Roots::All, 2, &[], Mode::VerifyAndPin),
        ("with: {trustRoot: '*', required: [b, c]}", Roots::All, 2, &["b", "c"], Mode::VerifyAndPin),
        ("with: {trustRoot: '*', required: [b], threshold: 3}", Roots::All, 3, &["b"], Mode::VerifyAndPin),
        ("with: {mode: mutate}", named("default"), 1, &[], Mode::VerifyAndPin),
        ("with: {mode: insecureValidateOnly}", named("default"), 1, &[], Mode::Verify),
        ("mode: verify", named("default"), 1, &[], Mode::Verify),
        ("mode: detect, validator: default", named("default"), 1, &[], Mode::Detect),
    ] {
        let rule = rule(written);
        let with = rule.with.unwrap();
        assert_eq!((with.roots, with.threshold, rule.mode), (roots, threshold, mode), "{written}");
        assert_eq!(with.required, required, "{written}");
        assert!(with.transparency_log && with.certificate_timestamp && with.image_signature, "{written}");
    }
    let with = rule(
        "with: {verifyInTransparencyLog: false, verifySCT: false, annotations: {env: prod}, sameRepository: true}",
    );
    let with = with.with.unwrap();
    assert!(!with.transparency_log && !with.certificate_timestamp && with.same_repository);
    assert_eq!(with.annotations["env"], "prod");
    assert!(rule("mode: resolve").with.is_none() && rule("mode: resolve, recheck: always").validator.is_none());
}

/// If a validator is named `default`, every other rule must say whether it uses that validator, because a missing key
/// is ambiguous.
#[test]
fn a_rule_beside_the_default_validator_says_whether_it_asks() {
    let root = format!("{{name: default, key: {PEM}}}");
    for rule in ["pattern: '*'", "pattern: '*', recheck: always", "pattern: '*', onFailure: {unsigned: deny}"] {
        let said = refused(&text(&root, "", &format!("{{{rule}}}")));
        let wanted = "policy.rules[0]: does not say whether the validator `default` is asked: write `validator: default` to ask it, or \
                      `mode: resolve` to pin its images and ask nobody";
        assert!(said.contains(wanted), "{said}");
    }
    for rule in [
        "mode: resolve",
        "mode: skip",
        "validator: default, with: {verifyInTransparencyLog: false}",
        "with: {verifyInTransparencyLog: false}",
    ] {
        Config::parse(&text(&root, "", &format!("{{pattern: '*', {rule}}}")), Path::new("x.yaml")).unwrap();
    }
}

/// A signature validator that no rule uses verifies nothing; loading the file gives a note about it.
#[test]
fn validators_that_no_rule_asks_are_named() {
    let parse = service_admission::config::Config::parse;
    let unasked = |text: &str| parse(text, Path::new("x.yaml")).unwrap().unasked();
    let root = format!("{{name: default, key: {PEM}}}");
    let said = unasked(&text(&root, "", "{pattern: '*', mode: resolve}"));
    assert_eq!(
        said,
        ["no rule asks the validator `default`, so it verifies no image: write `validator: default` in a rule"]
    );
    assert_eq!(
        unasked(&text(&root, "", "{pattern: '*', with: {verifyInTransparencyLog: false}}")),
        <[String; 0]>::default()
    );
    assert_eq!(unasked("validators: [{name: no, type: static, approve: false}]"), <[String; 0]>::default());
}

#[test]
fn trust_roots_are_keys_or_identities() {
    let roots = format!(
        "{{name: a, key: {PEM}}}, {{name: b, keyFile: b.pub}}, {{name: c, keyless: {{issuer: i, subjectPrefix: s}}}}, \
         {{name: d, keyless: {{issuerRegex: 'i.*', subject: s}}}}"
    );
    let config = Config::parse(&text(&roots, ", trustedRootFile: root.json", ""), Path::new("/etc/x.yaml")).unwrap();
    let ValidatorKind::Cosign(cosign) = &config.validators[0].kind else { panic!("it is cosign") };
    let kinds: Vec<_> = cosign.roots.iter().map(|root| &root.root).collect();
    let [
        Root::Key(Text::Inline(_)),
        Root::Key(Text::File(file)),
        Root::Keyless { issuer, subject },
        Root::Keyless { issuer: regex, .. },
    ] = &kinds[..]
    else {
        panic!("{kinds:?}")
    };
    assert_eq!(file, Path::new("/etc/b.pub"));
    assert_eq!((issuer, subject), (&Constraint::Exact("i".into()), &Constraint::Prefix("s".into())));
    assert_eq!(regex, &Constraint::Regex("i.*".into()));
    let files: Vec<_> = cosign.files().collect();
    assert_eq!(files, [Path::new("/etc/b.pub"), Path::new("/etc/root.json")]);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_key() {
    let key = format!("{{name: default, key: {PEM}}}");
    for (roots, more, rules, what) in [
        ("", "", "", "validators[0].trustRoots: 0 is out of range: 1 to 64"),
        ("{name: a}", "", "", "validators[0].trustRoots[0].key: is missing: write one of key, keyFile, keyless"),
        ("{name: '*', keyFile: k}", "", "", "trustRoots[0].name: is empty or `*`"),
        ("{name: a, key: 'awskms:///alias/x'}", "", "", "keys at awskms:// are not built in"),
        ("{name: a, key: nonsense}", "", "", "trustRoots[0].key: is no PEM text"),
        ("{name: a, cert: x}", "", "", "trustRoots[0].cert: is for notation, which is not built in"),
        ("{name: a, keyFile: k, keyless: {issuer: i, subject: s}}", "", "", "make it two roots"),
        ("{name: a, keyless: {issuer: i, subject: s}}", "", "", "no authority that could vouch for it"),
        ("{name: a, keyless: {issuer: i, issuerRegex: i, subject: s}}", "", "", "needs one of issuer, issuerRegex"),
        ("{name: a, keyFile: k}, {name: a, keyFile: k}", "", "", "trustRoots[1].name: `a` is there twice"),
        (&key, "", "{pattern: a, with: {}}", "policy.rules[0].with.verifyInTransparencyLog: needs the key of the log"),
        (&key, "", "{pattern: a, validator: x}", "there is no validator `x`; there are `default`"),
        (&key, "", "{pattern: a, with: {trustRoot: x}}", "the validator has no trust root `x`; it has `default`"),
        (&key, "", "{pattern: a, with: {threshold: 2}}", "with.threshold: 2 is out of range: 1 to 1"),
        (&key, "", "{pattern: a, with: {required: [x]}}", "`x` is not among the trust roots of this rule"),
        (
            &key,
            "",
            "{pattern: a, with: {delegations: [x]}}",
            "with.delegations: is not built in, it belongs to notaryv1",
        ),
        (&key, "", "{pattern: a, with: {verificationLevel: strict}}", "is not built in, it belongs to notation"),
        (&key, "", "{pattern: a, with: {imageSignature: false}}", "false without attestations would demand nothing"),
        (
            &key,
            "",
            "{pattern: a, with: {attestations: [{predicateType: p, fields: {x: y}}]}}",
            "`x` is no JSON pointer",
        ),
        (&key, "", "{pattern: a, mode: resolve, with: {verifyInTransparencyLog: false}}", "resolve asks no validator"),
        (
            &key,
            "",
            "{pattern: a, mode: verify, with: {mode: mutate, verifyInTransparencyLog: false}}",
            "is there beside mode",
        ),
        (&key, "", "{pattern: a, with: {verifyInTlog: false}}", "unknown key `verifyInTlog`"),
    ] {
        let said = refused(&text(roots, more, rules));
        assert!(said.contains(what), "{roots} {rules}: {said}");
    }
}
