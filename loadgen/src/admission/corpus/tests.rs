use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;

pub(in crate::admission) fn images() -> Vec<Image> {
    let digest = |c: char| Some(format!("sha256:{}", c.to_string().repeat(64)));
    let image = |reference: &str, digest| Image::new(reference, digest);
    vec![
        image("registry.test:5000/shop/cart:1.2", digest('a')),
        image("nginx", digest('b')),
        image("registry.test:5000/shop/ledger:7", digest('c')),
        image("registry.test:5000/shop/gone:1", None),
    ]
}

pub(in crate::admission) fn everything() -> Mix {
    let keys = serde_json::to_value(Mix::default()).unwrap();
    let ones: serde_json::Map<String, Value> = keys
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| !key.starts_with("hostile"))
        .map(|key| (key.clone(), json!(1)))
        .collect();
    serde_json::from_value(ones.into()).unwrap()
}

/// A corpus with every action and a quarter of the usual variants, because test builds are slow.
pub(in crate::admission) fn corpus_of_everything(seed: u64) -> Corpus {
    let images = images();
    let digests = oracle::digests(&images);
    Corpus::expanded(
        &everything(),
        Most { variants: VARIANTS / 4, ..MOST },
        Expand::new(seed, None, &images, Some(&digests)),
    )
}

fn is_deny(corpus: &Corpus, number: u32) -> bool {
    corpus.template(number).expected.is_deny()
}

/// Actions with an unpinned image are both admitted and denied; all other actions are always admitted.
#[test]
fn every_action_has_its_verdicts() {
    const BRING_IMAGES: [Action; 15] = [
        Action::CreatePod,
        Action::CreateDeployment,
        Action::CreateReplicaSet,
        Action::CreateReplicationController,
        Action::CreateStatefulSet,
        Action::CreateDaemonSet,
        Action::CreateJob,
        Action::CreateCronJob,
        Action::CreateCustomResource,
        Action::DryRunDeployment,
        Action::RollImage,
        Action::DebugPod,
        Action::CreatePodWithImageVolume,
        Action::CreatePodWithSidecar,
        Action::CreatePodOfEqualImages,
    ];
    let corpus = corpus_of_everything(1);
    for (action, variants) in corpus.actions() {
        let denied = variants.iter().filter(|sequence| is_deny(&corpus, sequence[0])).count();
        assert_eq!(variants.len(), VARIANTS / 4);
        if BRING_IMAGES.contains(action) {
            assert!((1..VARIANTS / 4).contains(&denied), "{action:?}: {denied} variants are denied");
        } else {
            assert_eq!(denied, 0, "{action:?}");
        }
    }
}

/// A denied action ends with the denial. An admitted action continues, and objects of controllers need no patch.
#[test]
fn children_follow_an_admission_and_carry_pins() {
    let corpus = corpus_of_everything(2);
    let mut sequences = BTreeSet::new();
    for (action, variants) in corpus.actions() {
        for sequence in variants {
            assert!(!is_deny(&corpus, sequence[0]) || sequence.len() == 1, "{action:?} goes on after a denial");
            // The review after a Pod with a sidecar is no controller's, and has the sidecar to pin.
            let children = if *action == Action::CreatePodWithSidecar { &[] } else { &sequence[1..] };
            for &number in children {
                let template = corpus.template(number);
                let Expected::Allow { images } = &template.expected else { panic!("{}", template.label) };
                assert!(images.iter().all(|field| field.written == field.right), "{}", template.label);
            }
            let mut labels: Vec<&str> =
                sequence.iter().map(|&number| corpus.template(number).label.rsplit_once(' ').unwrap().0).collect();
            labels.dedup();
            sequences.insert(format!("{}: {}", action.key(), labels.join(", ")));
        }
    }
    for expected in [
        "createPod: Pod CREATE",
        "createDeployment: Deployment CREATE, ReplicaSet CREATE, Pod CREATE",
        "createReplicaSet: ReplicaSet CREATE, Pod CREATE",
        "createReplicationController: ReplicationController CREATE, Pod CREATE",
        "createStatefulSet: StatefulSet CREATE, Pod CREATE",
        "createDaemonSet: DaemonSet CREATE, Pod CREATE",
        "createCronJob: CronJob CREATE, Job CREATE, Pod CREATE",
        "createJob: Job CREATE, Pod CREATE",
        "createCustomResource: Worker CREATE, Pod CREATE",
        "createNamespace: Namespace CREATE, ServiceAccount CREATE, ConfigMap CREATE",
        "createCustomResourceDefinition: CustomResourceDefinition CREATE",
        "dryRunDeployment: Deployment CREATE",
        "updateConfigMap: ConfigMap UPDATE",
        "rollImage: Deployment UPDATE, ReplicaSet CREATE, Pod CREATE, ReplicaSet UPDATE, Pod DELETE",
        "scaleDeployment: Deployment UPDATE, ReplicaSet UPDATE, Pod CREATE",
        "scaleDeployment: Deployment UPDATE, ReplicaSet UPDATE, Pod DELETE",
        "scaleThroughSubresource: Deployment/scale UPDATE, ReplicaSet UPDATE, Pod DELETE",
        "deleteDeployment: Deployment DELETE, ReplicaSet DELETE, Pod DELETE",
        "labelPod: Pod UPDATE",
        "deletePod: Pod DELETE",
        "evictPod: Pod/eviction CREATE, Pod DELETE",
        "debugPod: Pod/ephemeralcontainers UPDATE",
        "updateStatus: Pod/binding CREATE, Pod/status UPDATE, ReplicaSet/status UPDATE, Deployment/status UPDATE",
    ] {
        assert!(sequences.contains(expected), "`{expected}` is not in {sequences:#?}");
    }
}

/// `rollImage` requires only one pin, because the other containers of the Deployment are already pinned.
#[test]
fn rolling_changes_one_image() {
    let corpus = corpus_of_everything(3);
    let (_, variants) = corpus.actions().iter().find(|(action, _)| *action == Action::RollImage).unwrap();
    let mut several = false;
    for sequence in variants {
        if let Expected::Allow { images } = &corpus.template(sequence[0]).expected {
            assert_eq!(images.iter().filter(|field| field.written != field.right).count(), 1);
            several |= images.len() > 1;
        }
    }
    assert!(several, "some Deployment has more than one image");
}

/// The reviews of a corpus as JSON, each with its label.
fn requests(corpus: &Corpus) -> Vec<(String, Value)> {
    let request = |template: &Template| {
        let mut review: Value = serde_json::from_slice(template.bytes()).unwrap();
        (template.label.clone(), review["request"].take())
    };
    corpus.templates().iter().map(request).collect()
}

/// A second function, which looks at field names instead of paths, computes the same right answers. It counts every
/// `image` in a list of containers, and every reference of an image volume, wherever the pod spec is.
#[test]
fn the_oracle_agrees_with_a_search_of_the_whole_object() {
    let corpus = corpus_of_everything(9);
    let digests = oracle::digests(&images());
    for (template, (label, request)) in corpus.templates().iter().zip(requests(&corpus)) {
        let mut found = Vec::new();
        if request["subResource"] != "status" {
            search(&request["object"], &mut String::new(), &mut found);
        }
        let missing: Vec<&String> = found
            .iter()
            .map(|(_, image)| image)
            .filter(|image| digests.get(*image).is_some_and(|image| image.digest.is_none()))
            .collect();
        match &template.expected {
            Expected::Deny { refused, .. } => {
                let refused: Vec<_> = refused.iter().map(|refused| &refused.written).collect();
                assert_eq!(missing, refused, "{label}");
            }
            Expected::Allow { images } if request["subResource"] == "status" => {
                assert!(images.iter().all(|field| field.written == field.right), "{label}");
            }
            Expected::Allow { images } => {
                let mut expected: Vec<_> =
                    images.iter().map(|field| (field.pointer.clone(), field.written.clone())).collect();
                expected.sort();
                found.sort();
                assert_eq!(found, expected, "{label}");
                for field in images {
                    assert!(field.right.starts_with(&field.written), "{label}");
                    assert_eq!(field.right.matches("@sha256:").count(), 1, "{label}: {}", field.right);
                }
            }
            Expected::Any | Expected::Admit | Expected::Refuse => panic!("{label}"),
        }
    }
}

fn search(value: &Value, at: &mut String, found: &mut Vec<(String, String)>) {
    let length = at.len();
    let mut inside = |key: &str, inner: &Value| {
        at.push('/');
        at.push_str(key);
        let list = at.rsplit('/').nth(2).unwrap_or_default();
        let of_container = key == "image" && ["containers", "initContainers", "ephemeralContainers"].contains(&list);
        match inner.as_str() {
            Some(image) if of_container || at.ends_with("/image/reference") => {
                found.push((at.clone(), image.to_owned()));
            }
            _ if key == "managedFields" || key == "openAPIV3Schema" => {}
            _ => search(inner, at, found),
        }
        at.truncate(length);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| inside(key, inner)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, inner)| inside(&i.to_string(), inner)),
        _ => {}
    }
}

/// Controllers find their own objects: labels match the selector of the owner, and only objects of a Deployment have a
/// hash in their selectors.
#[test]
fn children_match_the_selectors_of_their_owners() {
    let corpus = corpus_of_everything(10);
    let requests = requests(&corpus);
    let (mut matched, mut with_hash) = (0, BTreeSet::new());
    for sequence in corpus.actions().iter().flat_map(|(_, variants)| variants) {
        let mut selectors: BTreeMap<String, Value> = BTreeMap::new();
        for &number in sequence {
            let (label, request) = &requests[number as usize];
            let object = &request["object"];
            let owner = &object["metadata"]["ownerReferences"][0];
            if request["operation"] != "CREATE" || request["subResource"].is_string() {
                continue;
            }
            if let Some(selector) = owner["name"].as_str().and_then(|name| selectors.get(name)) {
                for (key, value) in selector.as_object().unwrap() {
                    assert_eq!(&object["metadata"]["labels"][key], value, "{label} does not match its owner");
                    matched += 1;
                }
            }
            let selector = &object["spec"]["selector"];
            let selector = if selector["matchLabels"].is_object() { &selector["matchLabels"] } else { selector };
            if selector.is_object() {
                let hashed = selector["pod-template-hash"].is_string();
                assert_eq!(hashed, object["kind"] == "ReplicaSet" && owner["kind"] == "Deployment", "{label}");
                with_hash.insert(hashed);
                selectors.insert(request["name"].as_str().unwrap().to_owned(), selector.clone());
            }
        }
    }
    assert!(matched > 20 && with_hash.len() == 2, "{matched} {with_hash:?}");
}

/// Objects of natural size are as large as real objects of their kind.
#[test]
fn natural_sizes() {
    for (label, request) in requests(&corpus_of_everything(4)) {
        let small = request["subResource"].is_string() || label.contains("ServiceAccount");
        for object in [&request["object"], &request["oldObject"]].into_iter().filter(|object| object.is_object()) {
            let length = object.to_string().len();
            let range = if small { 100..=32_768 } else { 600..=32_768 };
            assert!(range.contains(&length), "{label} has {length} bytes");
        }
    }
}

/// For any action and size, a review is within 2 % of the size, unless its kind cannot be so small or so large.
#[test]
fn sizes_are_kept() {
    const SOME: [&str; 6] = [
        "createDeployment",
        "rollImage",
        "createCronJob",
        "updateConfigMap",
        "createSecret",
        "createCustomResourceDefinition",
    ];
    let cases = [
        (4 << 10, mix_of(&SOME[..5])),
        (24 << 10, everything()),
        (150 << 10, mix_of(&SOME[..1])),
        (400 << 10, mix_of(&SOME[3..])),
    ];
    let mut applied_sizes = BTreeSet::new();
    for (bytes, mix) in cases {
        let (size, images) = (Size { median: units::Bytes(bytes), max: units::Bytes(bytes) }, images());
        let digests = oracle::digests(&images);
        let mut expand = Expand::new(1, Some(size), &images, Some(&digests));
        let mut kept = 0;
        for (action, _) in mix.weights().into_iter().filter(|&(_, weight)| weight > 0) {
            for review in expand.action(action, Pick::Existing) {
                let label = Template::new(&review, Expected::Any).label;
                let fixed = ["/scale", "/eviction", "/binding", "ServiceAccount", "kube-root-ca"];
                // Some reviews do not fit into 4 KiB: those with two workloads, and those with a status.
                let too_small = bytes == 4 << 10 && !label.contains(" CREATE ");
                if too_small || fixed.iter().any(|part| label.contains(part)) {
                    continue;
                }
                let length = review.to_bytes().len();
                let off = (length as f64 / bytes as f64 - 1.0).abs();
                assert!(off <= 0.02, "{label} has {length} bytes instead of {bytes}");
                kept += 1;
                let of_object = |object: &Value| {
                    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].is_string()
                };
                applied_sizes.extend(review.object.as_ref().is_some_and(of_object).then_some(bytes));
            }
        }
        assert!(kept >= 3, "{kept} reviews of {bytes} bytes");
    }
    assert!(applied_sizes.contains(&(150 << 10)), "{applied_sizes:?}");
    assert!(!applied_sizes.contains(&(400 << 10)), "no client writes a copy of that size: {applied_sizes:?}");
}

fn mix_of(keys: &[&str]) -> Mix {
    let keys: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!(1))).collect();
    serde_json::from_value(keys.into()).unwrap()
}

/// However large the objects are, the corpus contains every action, and its size is only a little above its limit.
#[test]
fn the_corpus_is_bounded() {
    let largest = Size { median: units::Bytes(1 << 20), max: units::Bytes(1 << 20) };
    let mix = mix_of(&["createConfigMap", "createSecret", "createService"]);
    let (images, most) = (images(), Most { bytes: 4 << 20, ..MOST });
    let digests = oracle::digests(&images);
    let corpus = Corpus::expanded(&mix, most, Expand::new(1, Some(largest), &images, Some(&digests)));
    let length = |template: &Template| template.bytes().len();
    let bytes: usize = corpus.templates().iter().map(length).sum();
    assert!((4 << 20..6 << 20).contains(&bytes), "{bytes}");
    assert!(corpus.templates().iter().map(length).max() <= Some((1 << 20) * 102 / 100));
    assert!(corpus.actions().iter().all(|(_, variants)| !variants.is_empty()));
    let full =
        Corpus::expanded(&mix, Most { bytes: 1, ..most }, Expand::new(1, Some(largest), &images, Some(&digests)));
    assert!(full.actions().iter().all(|(_, variants)| variants.len() == 1), "one of each, whatever its size");
}

/// The second review of a Pod with a sidecar has only one image to pin: that of the last container.
#[test]
fn a_reinvoked_review_has_only_the_sidecar_to_pin() {
    let images = images();
    let digests = oracle::digests(&images);
    let mix = Mix { create_pod_with_sidecar: 1, ..Mix::default() };
    let corpus = Corpus::expanded(&mix, MOST, Expand::new(3, None, &images, Some(&digests)));
    let (_, variants) = &corpus.actions()[0];
    let mut seen = 0;
    for second in variants.iter().filter_map(|sequence| sequence.get(1)) {
        let template = corpus.template(*second);
        let Expected::Allow { images } = &template.expected else { panic!("{} is denied", template.label) };
        let last = template.object()["spec"]["containers"].as_array().unwrap().len() - 1;
        let to_pin: Vec<&str> =
            images.iter().filter(|field| field.written != field.right).map(|field| field.pointer.as_str()).collect();
        assert_eq!(to_pin, [format!("/spec/containers/{last}/image")]);
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn eight_equal_images_are_eight_and_equal() {
    let images = images();
    let digests = oracle::digests(&images);
    let mix = Mix { create_pod_of_equal_images: 1, ..Mix::default() };
    let corpus = Corpus::expanded(&mix, MOST, Expand::new(3, None, &images, Some(&digests)));
    for template in corpus.templates() {
        if let Expected::Allow { images } = &template.expected {
            let distinct: BTreeSet<&str> = images.iter().map(|field| field.written.as_str()).collect();
            assert_eq!((images.len(), distinct.len()), (8, 1));
        }
    }
}

/// Attacks are as heavy as documented, come from one tenant, and a right answer to them is also 413 or 429.
#[test]
fn attacks_are_heavy_and_may_be_shed() {
    let mut images = images();
    images.push(Image {
        hostile: true,
        ..Image::new("registry.test:5000/hostile/bundles-0:v1", Some("sha256:00".into()))
    });
    let mix = Mix {
        hostile_body: 1,
        hostile_many_images: 1,
        hostile_bundles: 1,
        hostile_refused_images: 1,
        create_pod: 1,
        ..Mix::default()
    };
    let digests = oracle::digests(&images);
    let corpus = Corpus::expanded(&mix, Most { variants: 2, ..MOST }, Expand::new(3, None, &images, Some(&digests)));
    let of = |action: Action| {
        let (_, variants) = corpus.actions().iter().find(|(known, _)| *known == action).unwrap();
        corpus.template(variants[0][0])
    };
    let body = of(Action::HostileBody);
    assert!((7 << 20..8 << 20).contains(&body.bytes().len()), "{}", body.bytes().len());
    assert!(matches!(body.expected, Expected::Allow { .. }));
    let Expected::Deny { refused, .. } = &of(Action::HostileManyImages).expected else { panic!("to be refused") };
    let distinct: BTreeSet<_> = refused.iter().map(|refused| &refused.written).collect();
    assert_eq!(distinct.len(), 500);
    assert!(String::from_utf8_lossy(of(Action::HostileBundles).bytes()).contains("hostile/bundles-0:v1"));
    let Expected::Deny { refused, .. } = &of(Action::HostileRefusedImages).expected else { panic!("to be refused") };
    let bytes: usize = refused.iter().map(|refused| refused.written.len()).sum();
    assert!(refused.len() == 500 && bytes > 110_000, "{} images of {bytes} bytes", refused.len());
    for action in [Action::HostileBody, Action::HostileManyImages, Action::HostileBundles, Action::HostileRefusedImages]
    {
        assert!(of(action).hostile && of(action).label.contains(" hostile/"), "{}", of(action).label);
    }
    assert!(!of(Action::CreatePod).hostile);
    for (status, is_right) in [(429, true), (413, true), (500, false)] {
        let seen = crate::socket::WholeAnswer {
            status,
            content_type: None,
            coding: crate::socket::Coding::Identity,
            body: b"",
        };
        let judged =
            |template| oracle::judge_in(&Truth::default(), template, std::time::Instant::now(), seen, &[b'0'; 36]);
        assert_eq!(judged(body).is_ok(), is_right, "{status}");
        assert!(judged(of(Action::CreatePod)).is_err(), "{status}");
    }
}
