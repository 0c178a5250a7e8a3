use proptest::prelude::*;
use units::Rate;

use super::*;
use crate::admission::Mix;
use crate::admission::corpus::tests::images;

fn config(per_second: f64, mix: Mix) -> Config {
    let mut config: Config = serde_json::from_str(r#"{"rate": "1/s"}"#).unwrap();
    config.rate = Rate::per_second(per_second);
    config.mix = mix;
    config
}

fn mix() -> Mix {
    Mix { create_cron_job: 1, update_status: 1, ..Mix::usual() }
}

fn plan(seed: u64) -> Plan {
    Plan::build(&config(200.0, mix()), seed, Duration::from_secs(10), &images()).unwrap()
}

#[test]
fn same_seed_same_plan_and_another_seed_another() {
    assert_eq!(plan(7).fingerprint(), plan(7).fingerprint());
    assert_ne!(plan(7).fingerprint(), plan(8).fingerprint());
    let other = Plan::build(&config(201.0, mix()), 7, Duration::from_secs(10), &images()).unwrap();
    assert_ne!(plan(7).fingerprint(), other.fingerprint(), "arrivals are covered");
}

/// The corpus of a known seed is fixed, so that a change of a seed's meaning is noticed: baselines and repeat commands
/// depend on it.
#[test]
fn a_known_seed_has_a_known_corpus() {
    let mut hash = Sha256::new();
    for template in crate::admission::corpus::tests::corpus_of_everything(7).templates() {
        hash.update(template.bytes());
    }
    assert_eq!(hex::encode(hash.finalize())[..16], *"b13678fd4ad5f502");
}

#[test]
fn exactly_as_many_requests_as_planned_each_with_a_uid_of_its_own() {
    let plan = plan(1);
    let all: Vec<(Duration, Request)> = plan.clone().requests().collect();
    assert_eq!(all.len() as u64, plan.total());
    assert_eq!(plan.total(), 2000);
    let uids: std::collections::BTreeSet<_> = all.iter().map(|(_, request)| request.uid).collect();
    assert_eq!(uids.len(), all.len());
    let templates: std::collections::BTreeSet<_> = all.iter().map(|(_, request)| request.template).collect();
    assert!(templates.len() * 2 > plan.corpus.templates().len(), "variants are drawn at random: {}", templates.len());
}

/// The requests of several generators together are exactly the plan: no request is lost, repeated or changed.
#[test]
fn shares_add_up_to_the_plan() {
    let (plan, fingerprint) = (plan(1), plan(1).fingerprint());
    let mut whole: Vec<(Duration, Request)> = plan.clone().requests().collect();
    whole.sort_by_key(|(at, request)| (*at, request.uid));
    for of in [1u32, 2, 3, 7] {
        let mut parts: Vec<(Duration, Request)> = Vec::new();
        for number in 0..of {
            let share = plan.clone().share(number, of);
            let requests: Vec<_> = share.clone().requests().collect();
            assert_eq!(requests.len() as u64, share.total());
            assert_eq!(share.fingerprint(), fingerprint);
            parts.extend(requests);
        }
        parts.sort_by_key(|(at, request)| (*at, request.uid));
        assert_eq!(parts, whole, "of {of}");
    }
}

/// A plan of 100 hours is an iterator, and takes no more memory or time to make than a plan of a second.
#[test]
fn a_long_plan_is_lazy() {
    let long = Plan::build(&config(1000.0, Mix::usual()), 1, Duration::from_hours(100), &images()).unwrap();
    assert_eq!(long.total(), 360_000_000);
    assert_eq!(long.preview(10).len(), 10);
}

#[test]
fn description_says_what_matters() {
    let text = plan(7).describe();
    for expected in ["2000 requests in 10.0 s (200/s, Poisson)", "as kube-apiserver", "createCronJob", "fingerprint"] {
        assert!(text.contains(expected), "`{expected}` is not in\n{text}");
    }
}

/// A plan for an unknown webhook needs no images: its references belong to no real registry, and any answer is right.
#[test]
fn a_plan_for_any_webhook_needs_no_images() {
    let mix = Mix { create_deployment: 1, create_config_map: 1, delete_pod: 1, ..Mix::default() };
    let build = |seed| Plan::for_any_webhook(&config(200.0, mix), seed, Duration::from_secs(10)).unwrap();
    assert_eq!(build(7).fingerprint(), build(7).fingerprint());
    assert_ne!(build(7).fingerprint(), build(8).fingerprint());
    assert!(build(7).describe().contains("any valid answer is right"), "{}", build(7).describe());
    for template in build(7).corpus.templates() {
        assert_eq!(template.expected, Expected::Any, "{}", template.label);
        let review: serde_json::Value = serde_json::from_slice(template.bytes()).unwrap();
        let images = serde_json::to_string(&review["request"]).unwrap();
        for image in images.split(r#""image":""#).skip(1) {
            assert!(image.starts_with("registry.example.com/"), "{}: {image:.80}", template.label);
        }
    }
}

#[test]
fn a_rate_that_makes_no_request_is_refused() {
    let error =
        Plan::build(&config(0.01, Mix::usual()), 1, Duration::from_secs(10), &images()).unwrap_err().to_string();
    assert!(error.starts_with("admission.rate: "), "{error}");
    assert!(error.contains("makes no request in 10.0 s: raise the rate or lengthen the run"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Each action begins as often as its weight requires.
    #[test]
    fn actions_follow_the_weights(pods in 1u32..5, labels in 1u32..5, seed: u64) {
        let mix = Mix { create_pod: pods, label_pod: labels, ..Mix::default() };
        let plan = Plan::build(&config(1000.0, mix), seed, Duration::from_secs(5), &images()).unwrap();
        let label = |request: &Request| plan.corpus.template(request.template).label.contains("UPDATE");
        let labelled = plan.clone().requests().filter(|(_, request)| label(request)).count() as f64 / 5000.0;
        let share = f64::from(labels) / f64::from(pods + labels);
        prop_assert!((labelled - share).abs() < 0.045, "{labelled} instead of {share}"); // six standard errors
    }
}

fn replaying(file: &std::path::Path) -> Config {
    Config { replay: Some(file.to_owned()), ..config(0.0, Mix::usual()) }
}

/// In a scenario the images are known: a replayed request without contents has a known right answer, and a recorded
/// review has none. A replay file that is longer than the load is refused.
#[test]
fn a_replay_in_a_scenario_keeps_the_oracle() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","name":"mine"}}"#;
    io::Write::write_all(&mut file, format!("{{\"atUs\":1}}\n{{\"atUs\":2000,\"body\":{body}}}\n").as_bytes()).unwrap();
    let config = replaying(file.path());
    let plan = Plan::build(&config, 1, Duration::from_secs(5), &images()).unwrap();
    assert_eq!((plan.total(), plan.length()), (2, Duration::from_micros(2001)));
    let any = |request: Request| plan.corpus.template(request.template).expected == Expected::Any;
    let known: Vec<bool> = plan.clone().requests().map(|(_, request)| any(request)).collect();
    assert_eq!(known, [false, true]);
    assert_ne!(plan.fingerprint(), Plan::build(&config, 2, Duration::from_secs(5), &images()).unwrap().fingerprint());
    let error = Plan::build(&config, 1, Duration::from_millis(2), &images()).unwrap_err().to_string();
    assert!(error.starts_with("admission.replay: "), "{error}");
    assert!(error.contains(" takes 3ms, the load only 2ms: make the load longer, or cut the file off"), "{error}");
}

/// A recorded plan can be sent again: the same reviews at the same microseconds.
#[test]
fn a_recorded_plan_replays() {
    let plan = Plan::for_any_webhook(&config(200.0, Mix::usual()), 7, Duration::from_secs(5)).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    plan.record(&mut file).unwrap();
    let again = Plan::for_any_webhook(&replaying(file.path()), 1, Duration::from_secs(5)).unwrap();
    assert_eq!(again.total(), 1000);
    assert_eq!(again.fingerprint(), plan.fingerprint());
    let middle = plan.clone().requests().take_while(|(at, _)| at.as_micros() < 2_500_000).count();
    for (at_ms, expected) in [(0, 0), (2500, middle), (5000, 1000)] {
        let off = again.schedule().expected(Duration::from_millis(at_ms)) - expected as f64;
        assert!(off.abs() < 0.5, "{off} more than {expected} at {at_ms} ms");
    }
    assert!(again.length() <= plan.length() + Duration::from_micros(1));
    let bodies = |plan: &Plan| -> Vec<(u128, Vec<u8>)> {
        let template = |request: Request| plan.corpus.template(request.template).bytes().to_vec();
        plan.clone().requests().map(|(at, request)| (at.as_micros(), template(request))).collect()
    };
    assert_eq!(bodies(&plan), bodies(&again));
    let text = again.describe();
    assert!(text.contains("1000 requests in 5.0 s (as in "), "{text}");
    assert!(text.contains("any valid answer is right"), "{text}");
}

/// Requests without a review in the file are drawn from the mix, besides the reviews of the file.
#[test]
fn open_requests_are_drawn_from_the_mix() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let body = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","name":"mine"}}"#;
    io::Write::write_all(&mut file, format!("{{\"atUs\":1}}\n{{\"atUs\":2,\"body\":{body}}}\n").as_bytes()).unwrap();
    let plan = Plan::for_any_webhook(&replaying(file.path()), 1, Duration::from_secs(5)).unwrap();
    let sent = plan.preview(3);
    assert_eq!(sent.len(), 2);
    let text = |at: usize| String::from_utf8_lossy(&sent[at].1).into_owned();
    assert!(text(0).contains("registry.example.com"), "{}", text(0));
    assert!(text(1).contains(r#""name":"mine""#) && !text(1).contains(r#""uid":"x""#), "{}", text(1));
}
