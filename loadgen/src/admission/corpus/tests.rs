use std::collections::BTreeSet;

use super::*;
use crate::admission::oracle::Expected;

pub(in crate::admission) fn images() -> Vec<Image> {
    let digest = |c: char| Some(format!("sha256:{}", c.to_string().repeat(64)));
    let image = |reference: &str, digest| Image { reference: reference.to_owned(), digest };
    vec![
        image("registry.test:5000/shop/cart:1.2", digest('a')),
        image("nginx", digest('b')),
        image("registry.test:5000/shop/ledger:7", digest('c')),
        image("registry.test:5000/shop/gone:1", None),
    ]
}

pub(in crate::admission) fn everything() -> Mix {
    let keys = serde_json::to_value(Mix::default()).unwrap();
    let ones: serde_json::Map<String, Value> =
        keys.as_object().unwrap().keys().map(|key| (key.clone(), json!(1))).collect();
    serde_json::from_value(ones.into()).unwrap()
}

pub(in crate::admission) fn corpus_of_everything(seed: u64) -> Corpus {
    Corpus::build(&everything(), None, seed, &images())
}

fn is_deny(corpus: &Corpus, number: u32) -> bool {
    corpus.template(number).expected.is_deny()
}

/// Actions that bring an unpinned image are seen both admitted and denied, the others always admitted.
#[test]
fn every_action_has_its_verdicts() {
    let corpus = corpus_of_everything(1);
    for (action, variants) in corpus.actions() {
        let denied = variants.iter().filter(|sequence| is_deny(&corpus, sequence[0])).count();
        assert_eq!(variants.len(), VARIANTS);
        if matches!(action, Action::ScaleDeployment | Action::LabelPod | Action::DeletePod) {
            assert_eq!(denied, 0, "{action:?}");
        } else {
            assert!((1..VARIANTS).contains(&denied), "{action:?}: {denied} variants are denied");
        }
    }
}

/// A denied action ends with the denial; an admitted one goes on, and what controllers make needs no patch.
#[test]
fn children_follow_an_admission_and_carry_pins() {
    let corpus = corpus_of_everything(2);
    let mut labels = BTreeSet::new();
    for (action, variants) in corpus.actions() {
        for sequence in variants {
            assert!(!is_deny(&corpus, sequence[0]) || sequence.len() == 1, "{action:?} goes on after a denial");
            for &number in &sequence[1..] {
                let template = corpus.template(number);
                let Expected::Allow { images } = &template.expected else { panic!("{}", template.label) };
                assert!(images.iter().all(|field| field.written == field.right), "{}", template.label);
            }
            let words = sequence.iter().map(|&number| corpus.template(number).label.clone());
            let short: Vec<String> = words.map(|label| label.rsplit_once(' ').unwrap().0.to_owned()).collect();
            labels.insert(format!("{}: {}", action.key(), short.join(", ")));
        }
    }
    for expected in [
        "createPod: Pod CREATE",
        "createDeployment: Deployment CREATE, ReplicaSet CREATE, Pod CREATE, Pod CREATE",
        "createCronJob: CronJob CREATE, Job CREATE, Pod CREATE",
        "createJob: Job CREATE, Pod CREATE",
        "rollImage: Deployment UPDATE, ReplicaSet CREATE, Pod CREATE, Pod DELETE",
        "debugPod: Pod/ephemeralcontainers UPDATE",
        "deletePod: Pod DELETE",
    ] {
        assert!(labels.contains(expected), "`{expected}` is not in {labels:#?}");
    }
}

/// `rollImage` asks for one pin only: the other containers of the Deployment are pinned already.
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

/// Bodies look like real ones: sizes, both objects on UPDATE, no object on DELETE, the right groups.
#[test]
fn reviews_have_the_real_shape() {
    let corpus = corpus_of_everything(4);
    for template in corpus.templates() {
        let review: Value = serde_json::from_slice(template.bytes()).unwrap();
        let request = &review["request"];
        let has = |field: &str| request[field].is_object();
        match request["operation"].as_str().unwrap() {
            "CREATE" => assert!(has("object") && !has("oldObject"), "{}", template.label),
            "UPDATE" => assert!(has("object") && has("oldObject"), "{}", template.label),
            _ => assert!(!has("object") && has("oldObject"), "{}", template.label),
        }
        for object in [&request["object"], &request["oldObject"]].into_iter().filter(|object| object.is_object()) {
            let length = object.to_string().len();
            assert!((1_024..=8_192).contains(&length), "{} has {length} bytes", template.label);
        }
        assert!(request["userInfo"]["username"].is_string());
        assert!(request["resource"]["resource"].as_str().unwrap().ends_with('s'));
    }
}

/// Asked for a size, objects have it, and the corpus stays bounded.
#[test]
fn sizes_are_kept_and_bounded() {
    let mix = Mix { create_pod: 1, ..Mix::default() };
    let size = Size { median: units::Bytes(1 << 20), max: units::Bytes(1 << 20) };
    let corpus = Corpus::build(&mix, Some(size), 1, &images());
    for template in &corpus.templates()[..3] {
        let length = template.object().to_string().len();
        assert!(((1 << 20) - 64..(1 << 20) + 64).contains(&length), "{length}");
    }
    let mix = Mix { create_pod: 1, delete_pod: 1, ..Mix::default() };
    let all = Corpus::build(&mix, Some(size), 1, &images());
    let bytes: usize = all.templates().iter().map(|template| template.bytes().len()).sum();
    assert!((32 << 20..36 << 20).contains(&bytes), "{bytes}");
}
