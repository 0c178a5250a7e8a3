//! Tests over sockets of signature checks during admission, with a registry that has the signatures.

use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::{Client, Protocol};

use crate::admission::{ask, patched, pod, review};
use crate::support::api::Api;
use crate::support::signed::{Key, Signed};
use crate::support::{PATIENCE, Service, kubeconfig};

/// A configuration that trusts `keys`; `policy` is the section's content, and `more` has further sections.
pub fn config(registry: &Signed, keys: &[(&str, &Key)], policy: &str, more: &str) -> String {
    let roots: Vec<_> = keys.iter().map(|(name, key)| json!({"name": name, "key": key.pem()})).collect();
    format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key, maxInFlight: 600, maxInFlightPerPeer: 600}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{timeout: 2s, registries: [{{host: \"{}\", plainHttp: true}}]}}\n\
         validators: [{{name: default, type: cosign, trustRoots: {}}}, {{name: deny, type: static, approve: false}}, \
         {{name: allow, type: static, approve: true}}]\npolicy: {{{policy}}}\n{more}",
        registry.host(),
        Value::from(roots)
    )
}

/// A policy that demands a signature by the root `default` for every image, without a log entry.
const ALL: &str = "rules: [{pattern: \"*\", with: {verifyInTransparencyLog: false}}]";

pub async fn start(config: &str) -> (Service, Client) {
    let service = Service::start("admission", config, Options::default()).await;
    let client = service.webhook(Protocol::Http1);
    (service, client)
}

async fn about(client: &Client, image: &str) -> Value {
    ask(client, &review("v1", &pod(&[image]))).await
}

fn message(answer: &Value) -> &str {
    answer["status"]["message"].as_str().unwrap_or_default()
}

/// The failure class in the denial of a Pod with one image.
fn class(answer: &Value) -> &str {
    assert_eq!((&answer["allowed"], &answer["status"]["code"]), (&json!(false), &json!(403)), "{answer}");
    message(answer).strip_prefix("1 image may not run: ").and_then(|rest| rest.split(": ").nth(1)).unwrap_or("?")
}

/// Images with a signature in either format run, from registries with and without the referrers API; other images are
/// refused with their class. A first check costs at most four registry requests, a cached check none, and an unsigned
/// image no more than a signed image.
#[tokio::test]
async fn signed_images_run_and_others_are_refused_for_at_most_four_requests() {
    for api in [true, false] {
        let (registry, key) = (Signed::start().await, Key::new());
        registry.world.lock().api = api;
        registry.fill(&key, &Key::new());
        let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
        // The first image shows what the registry supports.
        about(&client, &registry.image("unsigned")).await;
        for (repository, expected) in [
            ("tagged", None),
            ("unsigned-2", Some("not-found")),
            ("foreign", Some("invalid")),
            ("moved", Some("mismatch")),
            ("bundled", None),
            ("foreign-bundle", Some("invalid")),
            ("moved-bundle", Some("mismatch")),
            ("unsigned", Some("unsigned")),
        ] {
            registry.requests();
            let (image, what) = (registry.image(repository), format!("{repository}, referrers API: {api}"));
            let answer = about(&client, &image).await;
            match expected {
                None => assert_eq!(answer["allowed"], true, "{what}: {answer}"),
                Some(expected) => assert_eq!(class(&answer), expected, "{what}: {answer}"),
            }
            let cold = registry.requests();
            // An invalid bundle is no answer: the tag is requested as well. And the first bundle of a registry without
            // the API is looked for at tags first.
            let tags_too = repository.ends_with("-bundle") || !api && repository == "bundled";
            let most = if tags_too { 5 } else { 4 };
            assert!(cold.len() <= most, "{what}: {cold:#?}");
            assert_eq!(about(&client, &image).await, answer, "{what}");
            assert_eq!(registry.requests(), <[String; 0]>::default(), "{what}: warm");
        }
        service.app.stop().await;
    }
}

#[tokio::test]
async fn modes_decide_about_the_digest_and_detect_only_warns() {
    let (registry, key) = (Signed::start().await, Key::new());
    let digest = registry.push("good");
    registry.sign_in_bundle("good", &digest, &digest, &key);
    registry.push("bad");
    let rules =
        |mode: &str| format!("rules: [{{pattern: \"*\", mode: {mode}, with: {{verifyInTransparencyLog: false}}}}]");
    let (good, bad) = (registry.image("good"), registry.image("bad"));
    let pinned = format!("{good}@{digest}");
    for (mode, patches) in [("verify", false), ("verify-and-pin", true), ("detect", false)] {
        let (service, client) = start(&config(&registry, &[("default", &key)], &rules(mode), "")).await;
        let object = pod(&[&good]);
        let answer = ask(&client, &review("v1", &object)).await;
        assert_eq!((&answer["allowed"], answer.get("patch").is_some()), (&json!(true), patches), "{mode}: {answer}");
        if patches {
            assert_eq!(patched(&answer, &object)["spec"]["containers"][0]["image"], pinned);
        }
        let key_of = match mode {
            "verify" => "verified",
            "detect" => "detected",
            _ => "pinned",
        };
        let note: Value = serde_json::from_str(answer["auditAnnotations"][key_of].as_str().unwrap()).unwrap();
        assert_eq!((&note[0]["digest"], &note[0]["rule"]), (&json!(digest), &json!("policy.rules[0]")), "{note}");
        let (signer, evidence) = (&note[0]["signers"][0], &note[0]["evidence"][0]);
        assert!(signer.as_str().unwrap().starts_with("default: key sha256:"), "{note}");
        assert!(evidence.as_str().unwrap().starts_with("bundle "), "{note}");
        let written = about(&client, &pinned).await;
        assert_eq!((&written["allowed"], written.get("patch")), (&json!(true), None), "a digest is verified as it is");
        let answer = about(&client, &bad).await;
        if mode == "detect" {
            let warning = format!("{bad} may not run (unsigned); detected by policy.rules[0]");
            assert_eq!((&answer["allowed"], &answer["warnings"][0]), (&json!(true), &json!(warning)));
        } else {
            assert_eq!(class(&answer), "unsigned");
        }
        let page = service.health("/metrics").await.1;
        assert!(page.contains("longhaul_validation_verdicts_total{result=\"verified\"} "), "{page}");
        assert!(page.contains("longhaul_validation_verdicts_total{result=\"unsigned\"} "), "{page}");
        assert!(!page.contains(&digest) && !page.contains("release"), "labels are bounded");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn a_denial_names_every_image_with_what_was_looked_for_and_where() {
    let (registry, key, stranger) = (Signed::start().await, Key::new(), Key::new());
    let unsigned = registry.push("unsigned");
    let foreign = registry.push("foreign");
    registry.sign_at_tag("foreign", &foreign, &foreign, &[&stranger]);
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    let images = [registry.image("foreign"), registry.image("unsigned"), registry.image("absent"), "x@".to_owned()];
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    let answer = ask(&client, &review("v1", &pod(&images))).await;
    let text = message(&answer);
    assert!(text.starts_with("4 images may not run: "), "{text}");
    for (image, class) in images.iter().zip(["invalid", "unsigned", "not-found", "misconfigured"]) {
        assert!(text.contains(&format!("{image}: {class}: ")), "{text}");
    }
    let looked =
        format!("looked at referrers (0 bundles), signatures at tag {}.sig (none)", unsigned.replace(':', "-"));
    let wanted = "unsigned: no signature by `default` in any format; looked at ";
    assert!(text.contains(&looked) && text.contains(wanted), "{text}");
    assert!(text.len() <= 4096, "{text}");
    service.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_reviews_cost_four_requests_and_nobody_else_waits() {
    let (registry, key) = (Signed::start().await, Key::new());
    for repository in ["busy", "other"] {
        let digest = registry.push(repository);
        registry.sign_at_tag(repository, &digest, &digest, &[&key]);
    }
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    assert_eq!(about(&client, &registry.image("other")).await["allowed"], true);
    registry.requests();
    // Every answer about the busy one takes 300 ms.
    registry.world.lock().sick.push(("/v2/busy/".into(), 1));
    let busy = registry.image("busy");
    let burst = futures_util::future::join_all((0..500).map(|_| about(&client, &busy)));
    let unrelated = async {
        let started = Instant::now();
        for _ in 0..20 {
            assert_eq!(about(&client, &registry.image("other")).await["allowed"], true);
        }
        started.elapsed()
    };
    let (answers, elapsed) = tokio::join!(burst, unrelated);
    assert!(answers.iter().all(|answer| answer["allowed"] == true), "{:?}", answers[0]);
    let requests = registry.requests();
    assert!(requests.len() <= 4, "{requests:#?}");
    assert!(elapsed < PATIENCE / 2, "{elapsed:?}");
    service.app.stop().await;
}

/// An uncertain result has its own class, and a repeated review gets the certain result as soon as the registry gives
/// it.
#[tokio::test]
async fn errors_have_their_class_and_are_never_taken_for_an_unsigned_image() {
    let (registry, key) = (Signed::start().await, Key::new());
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    for (index, (part, code, expected)) in [
        (".sig", 500, "unavailable"),
        (".sig", 429, "unavailable"),
        (".sig", 403, "auth"),
        ("/referrers/", 503, "unavailable"),
        ("/referrers/", 401, "auth"),
        ("/blobs/", 502, "unavailable"),
        (".sig", 0, "unavailable"),
    ]
    .into_iter()
    .enumerate()
    {
        let repository = format!("r{index}");
        let digest = registry.push(&repository);
        if part == "/blobs/" {
            registry.sign_at_tag(&repository, &digest, &digest, &[&key]);
        }
        registry.world.lock().sick = vec![(part.into(), code)];
        let answer = about(&client, &registry.image(&repository)).await;
        assert_eq!(class(&answer), expected, "{part} {code}: {answer}");
        registry.world.lock().sick.clear();
        registry.sign_at_tag(&repository, &digest, &digest, &[&key]);
        let answer = about(&client, &registry.image(&repository)).await;
        assert_eq!(answer["allowed"], true, "{part} {code}: it was not remembered: {answer}");
    }
    service.app.stop().await;
}

#[tokio::test]
async fn what_somebody_put_there_is_definite() {
    let (registry, key) = (Signed::start().await, Key::new());
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    for (repository, bytes) in [("enormous", vec![b' '; 5 << 20]), ("noise", b"{\"schemaVersion\":2".to_vec())] {
        let digest = registry.push(repository);
        registry.spoil_tag(repository, &digest, &bytes);
        let answer = about(&client, &registry.image(repository)).await;
        assert_eq!(class(&answer), "invalid", "{repository}: {answer}");
    }
    let digest = registry.push("truncated");
    registry.sign_at_tag("truncated", &digest, &digest, &[&key]);
    registry.truncate_blobs();
    let answer = about(&client, &registry.image("truncated")).await;
    assert_eq!(class(&answer), "invalid", "{answer}");
    service.app.stop().await;
}

/// A valid signature is enough, even if other signatures are invalid or unreadable.
#[tokio::test]
async fn a_place_that_cannot_be_read_does_not_outweigh_a_good_signature() {
    let (registry, key) = (Signed::start().await, Key::new());
    let digest = registry.push("a");
    registry.sign_at_tag("a", &digest, &digest, &[&key]);
    registry.world.lock().sick = vec![("/referrers/".into(), 500)];
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    assert_eq!(about(&client, &registry.image("a")).await["allowed"], true);
    service.app.stop().await;
}

#[tokio::test]
async fn thresholds_count_distinct_signers_in_all_forms() {
    let (registry, alice, bob, carol) = (Signed::start().await, Key::new(), Key::new(), Key::new());
    let roots = [("alice", &alice), ("bob", &bob), ("carol", &carol)];
    let digest = registry.push("twice");
    registry.sign_at_tag("twice", &digest, &digest, &[&alice, &alice]);
    let digest = registry.push("both");
    registry.sign_at_tag("both", &digest, &digest, &[&alice]);
    registry.sign_in_bundle("both", &digest, &digest, &bob);
    let digest = registry.push("carol");
    registry.sign_at_tag("carol", &digest, &digest, &[&alice, &carol]);
    let with = |more: &str| {
        format!("rules: [{{pattern: \"*\", with: {{trustRoot: \"*\", verifyInTransparencyLog: false, {more}}}}}]")
    };
    for (more, expected) in [
        ("threshold: 2", [false, true, true]),
        ("threshold: 1", [true, true, true]),
        ("required: [alice, carol]", [false, false, true]),
        ("threshold: 2, required: [bob]", [false, true, false]),
        ("threshold: 3", [false, false, false]),
    ] {
        let (service, client) = start(&config(&registry, &roots, &with(more), "")).await;
        for (repository, allowed) in ["twice", "both", "carol"].into_iter().zip(expected) {
            let answer = about(&client, &registry.image(repository)).await;
            assert_eq!(answer["allowed"], allowed, "{more}, {repository}: {answer}");
        }
        service.app.stop().await;
    }
}

/// After a key is removed or its file changes, images that it signed are soon refused, although their verdicts were
/// cached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_no_longer_trusted_is_refused_at_once() {
    let (registry, old, new) = (Signed::start().await, Key::new(), Key::new());
    let digest = registry.push("a");
    registry.sign_at_tag("a", &digest, &digest, &[&old]);
    let text = config(&registry, &[("default", &old)], ALL, "");
    let mut service = Service::start("admission", &text, Options::default()).await;
    let path = service.folder.path().join("service.yaml");
    std::fs::write(&path, &text).unwrap();
    service.app.follow_config(path.clone());
    let client = service.webhook(Protocol::Http1);
    let image = registry.image("a");
    let becomes = async |allowed: bool| {
        let started = Instant::now();
        while about(&client, &image).await["allowed"] != allowed {
            assert!(started.elapsed() < PATIENCE, "waited in vain for allowed: {allowed}");
        }
        started.elapsed()
    };
    becomes(true).await;
    // No signal is sent: the change of the file is noticed.
    std::fs::write(&path, config(&registry, &[("default", &new)], ALL, "")).unwrap();
    let elapsed = becomes(false).await;
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    let key_file = service.folder.path().join("release.pub");
    std::fs::write(&key_file, old.pem()).unwrap();
    let roots = "trustRoots: [{name: default, keyFile: release.pub}]";
    let start = text.find("trustRoots: ").unwrap();
    let end = start + text[start..].find("}, {name: deny").unwrap();
    std::fs::write(&path, format!("{}{roots}{}", &text[..start], &text[end..])).unwrap();
    becomes(true).await;
    std::fs::write(&key_file, new.pem()).unwrap();
    becomes(false).await;
    // A file without a key changes nothing.
    std::fs::write(&key_file, "no key").unwrap();
    let said = async { while !service.health("/readyz?verbose").await.1.contains("[!]config") {} };
    tokio::time::timeout(PATIENCE, said).await.expect("it is said");
    becomes(false).await;
    service.app.stop().await;
}

#[tokio::test]
async fn static_validators_namespaces_and_what_no_rule_matches() {
    let (registry, key) = (Signed::start().await, Key::new());
    registry.push("a");
    let rules = "noMatch: deny, namespaces: {ignore: [\"kube-*\"]}, rules: [{pattern: \"*/b:*\", validator: deny}, \
                 {pattern: \"*/c:*\", validator: allow}, {pattern: \"*/d:*\", validator: deny, mode: detect}]";
    let (service, client) = start(&config(&registry, &[("default", &key)], rules, "")).await;
    let answer = about(&client, &registry.image("b")).await;
    assert_eq!(class(&answer), "denied");
    assert!(
        message(&answer).contains("static validator `deny` lets in no image of policy.rules[0] (`*/b:*`)"),
        "{answer}"
    );
    let answer = about(&client, &registry.image("c")).await;
    assert_eq!(answer, json!({"uid": "the-uid", "allowed": true}));
    let answer = about(&client, &registry.image("d")).await;
    assert_eq!((&answer["allowed"], answer["warnings"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    let answer = about(&client, &registry.image("a")).await;
    assert!(class(&answer) == "denied" && message(&answer).contains("policy.noMatch"), "{answer}");
    let mut request = review("v1", &pod(&[&registry.image("b")]));
    request["request"]["namespace"] = "kube-system".into();
    let answer = ask(&client, &request).await;
    assert_eq!(
        (&answer["allowed"], &answer["auditAnnotations"]["exempt"]),
        (&json!(true), &json!("policy.namespaces.ignore"))
    );
    assert_eq!(registry.requests(), <[String; 0]>::default(), "nobody is asked");
    service.app.stop().await;
    for (no_match, allowed, warnings) in [("allow", true, None), ("warn", true, Some(1)), ("resolve", true, None)] {
        let (service, client) =
            start(&config(&registry, &[("default", &key)], &format!("noMatch: {no_match}"), "")).await;
        let answer = about(&client, &registry.image("a")).await;
        assert_eq!(
            (&answer["allowed"], answer["warnings"].as_array().map(Vec::len)),
            (&json!(allowed), warnings),
            "{answer}"
        );
        assert_eq!(answer.get("patch").is_some(), no_match == "resolve");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn with_pods_only_other_objects_are_let_in_with_a_warning() {
    let (registry, key) = (Signed::start().await, Key::new());
    registry.push("a");
    let (service, client) =
        start(&config(&registry, &[("default", &key)], &format!("resources: podsOnly, {ALL}"), "")).await;
    let object = json!({"metadata": {"name": "w"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": registry.image("a")}]}}}});
    let mut request = review("v1", &object);
    request["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let answer = ask(&client, &request).await;
    assert_eq!((&answer["allowed"], answer.get("patch")), (&json!(true), None), "{answer}");
    assert!(answer["warnings"][0].as_str().unwrap().contains("may not run (unsigned)"), "{answer}");
    assert_eq!(class(&about(&client, &registry.image("a")).await), "unsigned");
    service.app.stop().await;
}

/// An image that a controller copies from an owner is not verified again. If the named owner has another uid or lacks
/// the image, the image is verified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_has_what_its_owner_has() {
    let (registry, api, key) = (Signed::start().await, Api::start(false).await, Key::new());
    registry.push("a");
    let image = registry.image("a");
    let owner = json!({"metadata": {"uid": "u1"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    api.world.lock().core.insert("/apis/apps/v1/namespaces/team/replicasets/web".into(), owner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kube.yaml");
    kubeconfig(&path, api.address());
    let more = format!("kubernetes: {{kubeconfig: \"{}\"}}\n", path.display());
    let policy = format!("automaticChildApproval: true, {ALL}");
    let (service, client) = start(&config(&registry, &[("default", &key)], &policy, &more)).await;
    let child = |images: &[&str], uid: &str| {
        let mut object = pod(images);
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true}]);
        let mut request = review("v1", &object);
        request["request"]["namespace"] = "team".into();
        request
    };
    let answer = ask(&client, &child(&[&image, &image], "u1")).await;
    assert_eq!((&answer["allowed"], answer.get("patch")), (&json!(true), None), "{answer}");
    assert_eq!(answer["auditAnnotations"]["approved-by-owner"], format!("[\"{image}\"]"));
    assert_eq!(api.world.lock().count("replicasets/web"), 1, "once for the request");
    ask(&client, &child(&[&image], "u1")).await;
    assert_eq!(api.world.lock().count("replicasets/web"), 1, "and it is known for a moment");
    assert_eq!(class(&ask(&client, &child(&[&image], "u2")).await), "unsigned", "another uid");
    let other = registry.image("b");
    registry.push("b");
    assert_eq!(class(&ask(&client, &child(&[&other], "u1")).await), "unsigned", "another image");
    let page = service.health("/metrics").await.1;
    assert!(page.contains("longhaul_validation_skipped_total{reason=\"child\"} 2"), "{page}");
    service.app.stop().await;
}

#[tokio::test]
async fn policies_may_be_kubernetes_objects() {
    let (registry, key) = (Signed::start().await, Key::new());
    let digest = registry.push("team/a");
    registry.sign_at_tag("team/a", &digest, &digest, &[&key]);
    registry.push("team/b");
    let pem = key.pem().trim().replace('\n', "\n        ");
    let policy = format!(
        "apiVersion: longhaul.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {{name: team}}\nspec:\n  images: [\"*/team/*\"]\n  \
         authorities:\n    - name: release\n      key: |\n        {pem}\n  with: {{verifyInTransparencyLog: false}}\n"
    );
    let inside = policy.replace('\n', "\n    ");
    let map =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: policies}}\ndata:\n  team.yaml: |\n    {inside}\n");
    for text in [policy, map] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy.yaml"), text).unwrap();
        let documents = format!("documents: [\"{}\"]", folder.path().display());
        let (service, client) = start(&config(&registry, &[("default", &key)], &documents, "")).await;
        assert_eq!(about(&client, &registry.image("team/a")).await["allowed"], true);
        let answer = about(&client, &registry.image("team/b")).await;
        assert_eq!(class(&answer), "unsigned", "{answer}");
        let note = answer["auditAnnotations"]["denied"].as_str().unwrap();
        assert!(note.contains("policy.documents (rule 0)"), "{note}");
        service.app.stop().await;
    }
}

/// The setting `onFailure` applies to failure classes of signatures as to all other classes.
#[tokio::test]
async fn failures_of_signatures_have_their_actions() {
    let (registry, key) = (Signed::start().await, Key::new());
    registry.push("a");
    let rules = "rules: [{pattern: \"*\", with: {verifyInTransparencyLog: false}, onFailure: {unsigned: allow}}]";
    let (service, client) = start(&config(&registry, &[("default", &key)], rules, "")).await;
    let answer = about(&client, &registry.image("a")).await;
    let warning = format!("{} may not run (unsigned); let in by policy.rules[0]", registry.image("a"));
    assert_eq!((&answer["allowed"], &answer["warnings"][0]), (&json!(true), &json!(warning)), "{answer}");
    assert_eq!(answer.get("patch"), None);
    service.app.stop().await;
}

/// The validating webhook demands that a verified image is pinned to the verified digest.
#[tokio::test]
async fn the_validating_webhook_wants_the_pin_of_a_verified_image() {
    let (registry, key) = (Signed::start().await, Key::new());
    let digest = registry.push("a");
    registry.sign_at_tag("a", &digest, &digest, &[&key]);
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    let image = registry.image("a");
    let validate = async |image: &str| {
        let body = review("v1", &pod(&[image])).to_string();
        let answer = crate::admission::post(&client, "/validate", body).await;
        serde_json::from_slice::<Value>(answer.body()).unwrap()["response"].clone()
    };
    let answer = validate(&image).await;
    assert!(message(&answer).starts_with("1 image is not pinned: "), "{answer}");
    assert_eq!(validate(&format!("{image}@{digest}")).await["allowed"], true);
    service.app.stop().await;
}

/// Two reviews of the same image give equal patches, with and without cache.
#[tokio::test]
async fn a_review_is_repeatable() {
    let (registry, key) = (Signed::start().await, Key::new());
    let digest = registry.push("a");
    registry.sign_in_bundle("a", &digest, &digest, &key);
    let (service, client) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    let (first, second) = (about(&client, &registry.image("a")).await, about(&client, &registry.image("a")).await);
    assert_eq!(first, second);
    let patch = base64::engine::general_purpose::STANDARD.decode(first["patch"].as_str().unwrap()).unwrap();
    assert!(String::from_utf8(patch).unwrap().contains(&digest));
    service.app.stop().await;
}

/// The library function behind `verify` gives the same result as a review.
#[tokio::test]
async fn one_image_can_be_verified_without_a_webhook() {
    let (registry, key, stranger) = (Signed::start().await, Key::new(), Key::new());
    let digest = registry.push("a");
    registry.sign_at_tag("a", &digest, &digest, &[&key]);
    let folder = tempfile::tempdir().unwrap();
    let deadline = || tokio::time::Instant::now() + PATIENCE;
    for (key, verified) in [(&key, true), (&stranger, false)] {
        let path = folder.path().join("key.pub");
        std::fs::write(&path, key.pem()).unwrap();
        let config = service_admission::once::with_key(&registry.image("a"), &path, true).unwrap();
        let report = service_admission::once::verify(&config, &registry.image("a"), deadline()).await.unwrap();
        assert_eq!((report.outcome.is_ok(), report.digest.as_deref()), (verified, Some(&*digest)), "{report}");
        let text = report.to_string();
        assert!(
            text.contains(if verified { "signer:   default: key sha256:" } else { "not verified: invalid: " }),
            "{text}"
        );
    }
}

/// If no rule uses a validator, `config check`, the log and `/readyz?verbose` report it.
#[tokio::test]
async fn a_validator_that_nobody_asks_is_said() {
    let (registry, key) = (Signed::start().await, Key::new());
    let unasked = config(&registry, &[("default", &key)], "rules: [{pattern: \"*\", mode: resolve}]", "");
    let (service, _) = start(&unasked).await;
    let (status, said) = service.health("/readyz?verbose").await;
    assert!(status == 200 && said.contains("[!]validators: no rule asks the validator `default`"), "{status} {said}");
    service.app.stop().await;
    let (service, _) = start(&config(&registry, &[("default", &key)], ALL, "")).await;
    assert!(service.health("/readyz?verbose").await.1.contains("[+]validators: ok"));
    service.app.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, unasked).unwrap();
    let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul-service"));
    let output = check.args(["config", "check", "--config"]).arg(&path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("c.yaml: no rule asks the validator `default`"), "{said}");
    assert!(said.ends_with("c.yaml: ok\n"), "{said}");
}
