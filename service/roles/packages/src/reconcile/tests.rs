//! Tests of the reconciler's decision about work and of its network policies, without a cluster.

use std::time::Duration;

use super::policies::{Policy, for_package};
use super::*;
use service_watch::{RawObject, Status};

fn package(generation: i64, extra: &str) -> Object {
    let text = format!(
        r#"{{"metadata":{{"namespace":"n","name":"app","uid":"u","resourceVersion":"7","generation":{generation}}},
            "spec":{{"network":{{"allow":[{extra}]}}}}}}"#
    );
    serde_json::from_str::<RawObject<'_>>(&text).unwrap().into_object()
}

fn with_status(phase: &str, observed: Option<i64>) -> Object {
    let mut object = package(2, "");
    object.body.status = Status { phase: phase.into(), observed_generation: observed, ..Status::default() };
    object
}

fn deleting(finalizers: &[&str]) -> Object {
    let mut object = package(2, "");
    object.body.deleting = true;
    object.body.finalizers = finalizers.iter().map(|&finalizer| finalizer.into()).collect();
    object
}

#[tokio::test(start_paused = true)]
async fn what_is_skipped_and_what_never_is() {
    let now = Instant::now();
    let memo = |done, retry_in: Option<Duration>| Memo {
        uid: "u".into(),
        generation: 2,
        done,
        retry_at: retry_in.map(|wait| now + wait),
        ..Memo::default()
    };
    let (seen, done, old) = (memo(None, None), memo(Some(2), None), memo(Some(1), None));
    let waits = memo(None, Some(Duration::from_secs(3)));
    let due = memo(None, Some(Duration::ZERO));
    for (case, object, memo, expected) in [
        ("first sight, also when all is well", with_status("Ready", Some(2)), None, Work::Apply),
        ("first sight of a pending one", with_status("Pending", None), None, Work::Apply),
        ("finished, and the store still shows the past", with_status("Pending", None), Some(&done), Work::Skip),
        ("a newer generation than the finished one", with_status("Ready", Some(1)), Some(&old), Work::Apply),
        ("settled by somebody else", with_status("Ready", Some(2)), Some(&seen), Work::Skip),
        ("our own Retrying write, before its time", with_status("Retrying", None), Some(&waits), Work::Skip),
        ("a retry that is due", with_status("Retrying", None), Some(&due), Work::Apply),
        ("a deletion without our finalizer", deleting(&[]), None, Work::Skip),
    ] {
        assert_eq!(decide(&object, memo, now), expected, "{case}");
    }
    let deleting = deleting(&[FINALIZER]);
    assert_eq!(decide(&deleting, Some(&done), now), Work::Remove, "a deletion is work, whatever was done before");
    assert_eq!(decide(&deleting, Some(&Memo { cleaned: true, ..done }), now), Work::Skip);
}

#[test]
fn one_policy_for_each_entry_with_names_that_depend_on_content_alone() {
    let entries = [
        r#"{"direction":"Ingress","port":80,"remoteNamespace":"web","podLabels":{"app":"x"},"description":"from web"}"#,
        r#"{"direction":"Egress","remoteLabels":{"app":"db"}}"#,
        r#"{"direction":"Egress","remoteLabels":{"app":"db"}}"#,
    ];
    let build = |extra: &str| {
        let object = package(3, extra);
        for_package(&object, object.body.allow.as_ref().unwrap())
    };
    let policies = build(&entries.join(","));
    let spec = &policies[0].body["spec"];
    assert_eq!(spec["podSelector"]["matchLabels"]["app"], "x");
    assert_eq!(spec["policyTypes"], serde_json::json!(["Ingress"]));
    assert_eq!(spec["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "web");
    assert_eq!(spec["ingress"][0]["ports"], serde_json::json!([{"protocol": "TCP", "port": 80}]));
    assert_eq!(policies[1].body["spec"]["egress"][0]["to"][0]["podSelector"]["matchLabels"]["app"], "db");
    assert_eq!(policies[2].name, format!("{}-2", policies[1].name), "equal entries have a policy each");
    let alone = build(entries[1]);
    assert_eq!(alone[0].name, policies[1].name, "position does not matter");
    assert!(policies.iter().all(|policy| {
        policy.body["metadata"]["labels"]["longhaul.dev/generation"] == "3" && policy.namespace == "n"
    }));
}

/// Whether a name is a DNS subdomain (RFC 1123), as policies and packages require.
fn is_subdomain(name: &str) -> bool {
    let inner = |label: &str| label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let label = |label: &str| !label.is_empty() && inner(label) && !label.starts_with('-') && !label.ends_with('-');
    name.len() <= 253 && name.split('.').all(label)
}

proptest::proptest! {
    /// For any package name, the names of its policies are valid and differ from those of other packages' policies.
    #[test]
    fn names_of_policies_are_valid_and_nobody_elses(
        stem in "[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,3}",
        fill in 0usize..=252,
        tails in ("[a-z0-9]", "[a-z0-9]"),
    ) {
        // Dots and dashes at every distance from the front.
        let long: String = stem.chars().chain(".x-".chars().cycle()).take(stem.len().max(fill)).collect();
        let long = long.trim_end_matches(['.', '-']).replace("-.", "x.");
        let policies: Vec<_> = [&tails.0, &tails.1]
            .into_iter()
            .map(|tail| {
                let mut object = package(1, r#"{"direction":"Egress","port":80},{"direction":"Egress","port":80}"#);
                let name = format!("{long}{tail}");
                assert!(is_subdomain(&name), "the test makes valid packages: {name}");
                object.key.name = name.into();
                for_package(&object, object.body.allow.as_ref().unwrap())
            })
            .collect();
        for policy in policies.iter().flatten() {
            proptest::prop_assert!(is_subdomain(&policy.name), "{}", policy.name);
            proptest::prop_assert_eq!(&policy.body["metadata"]["name"], &policy.name);
        }
        proptest::prop_assert_ne!(&policies[0][0].name, &policies[0][1].name);
        if tails.0 != tails.1 {
            let other = |policy: &Policy| policies[1].iter().all(|known| known.name != policy.name);
            proptest::prop_assert!(policies[0].iter().all(other), "{}", policies[0][0].name);
        }
    }
}

#[test]
fn a_spec_of_the_wrong_shape_is_kept_as_its_error() {
    let object = package(1, r#"{"direction":"Sideways"}"#);
    assert!(object.body.allow.unwrap_err().contains("Sideways"));
}

/// If a package's spec exceeds the size limit, only an error is kept in memory, even if the API server accepts the
/// spec.
#[test]
fn a_spec_that_is_too_large_is_kept_as_its_error() {
    let allow = |extra: &str| package(1, extra).body.allow;
    let entries = |count: usize| vec![r#"{"direction":"Egress"}"#; count].join(",");
    assert_eq!(allow(&entries(64)).unwrap().len(), 64);
    let many = allow(&entries(65)).unwrap_err();
    assert_eq!(&*many, "spec.network.allow: has 65 entries and at most 64 are applied: use two Packages");
    let labels = |count: usize| {
        let labels: Vec<_> = (0..count).map(|number| format!(r#""l{number}":"v""#)).collect();
        format!(r#"{{"direction":"Egress","remoteLabels":{{{}}}}}"#, labels.join(","))
    };
    assert!(allow(&labels(32)).is_ok());
    assert_eq!(&*allow(&labels(33)).unwrap_err(), "spec.network.allow: entry 0 has more than 32 labels");
    let described = |bytes: usize| format!(r#"{{"direction":"Egress","description":"{}"}}"#, "d".repeat(bytes));
    assert!(allow(&described(60 << 10)).is_ok());
    let large = allow(&described(64 << 10)).unwrap_err();
    assert!(large.contains("`spec.network` has ") && large.contains(" bytes and at most 65536 are read"), "{large}");
    let shown = allow(&format!(r#"{{"direction":"{}"}}"#, "x".repeat(10_000))).unwrap_err();
    assert!(shown.len() < 400, "{} bytes", shown.len());
    let filler = format!(
        r#"{{"metadata":{{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"}},"spec":{{"payload":"{}"}}}}"#,
        "p".repeat(1 << 20)
    );
    let object: Object = serde_json::from_str::<RawObject<'_>>(&filler).unwrap().into_object();
    assert_eq!(object.body.allow.unwrap().len(), 0, "what is not read has no bound");
}
