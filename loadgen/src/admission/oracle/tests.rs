use base64::Engine as _;
use serde_json::json;

use super::*;
use crate::admission::corpus::Corpus;
use crate::admission::corpus::tests::corpus_of_everything;
use crate::admission::mix::Mix;
use crate::failure::Class;

fn verdict(allowed: bool, patch: Option<Value>) -> Verdict {
    let patch = patch.map(|patch| serde_json::from_value(patch).unwrap());
    Verdict { allowed, patch, message: "because".to_owned(), ..Verdict::default() }
}

fn template<'a>(corpus: &'a Corpus, label: &str, deny: bool) -> &'a Template {
    let wanted = |template: &&Template| {
        let changes = match &template.expected {
            Expected::Deny { .. } => return deny && template.label.starts_with(label),
            Expected::Allow { images } => images.iter().any(Field::must_change),
            Expected::Any | Expected::Admit | Expected::Refuse => false,
        };
        !deny && (changes || label.contains("DELETE")) && template.label.starts_with(label)
    };
    corpus.templates().iter().find(wanted).unwrap()
}

fn right_patch(template: &Template) -> Vec<Value> {
    let Expected::Allow { images } = &template.expected else { panic!("denied") };
    let changing = images.iter().filter(|field| field.must_change());
    changing.map(|field| json!({"op": "replace", "path": field.pointer, "value": field.right})).collect()
}

fn wrong(template: &Template, verdict: Verdict) -> Option<(bool, String)> {
    judge(template, verdict).unwrap().wrong.map(|wrong| (wrong.allow, wrong.why))
}

#[test]
fn right_answers_are_right() {
    let corpus = corpus_of_everything(5);
    for template in corpus.templates() {
        let right = match &template.expected {
            Expected::Deny { .. } => verdict(false, None),
            Expected::Allow { .. } if template.label.contains("DELETE") => verdict(true, None),
            Expected::Allow { .. } => verdict(true, Some(right_patch(template).into())),
            Expected::Any | Expected::Admit | Expected::Refuse => panic!("{}: the images are known", template.label),
        };
        assert_eq!(wrong(template, right), None, "{}", template.label);
    }
}

/// A patch with the same effect as the expected one is right: another order, `test` operations, or whole containers
/// replaced.
#[test]
fn the_effect_counts_not_the_form() {
    let corpus = corpus_of_everything(6);
    let template = template(&corpus, "Deployment CREATE", false);
    let mut reversed = right_patch(template);
    reversed.reverse();
    assert_eq!(wrong(template, verdict(true, Some(reversed.clone().into()))), None);
    reversed.insert(0, json!({"op": "test", "path": "/kind", "value": "Deployment"}));
    assert_eq!(wrong(template, verdict(true, Some(reversed.into()))), None);
    let mut object = template.object();
    let patch: Patch = serde_json::from_value(right_patch(template).into()).unwrap();
    json_patch::patch(&mut object, &patch.0).unwrap();
    let whole = json!([{"op": "replace", "path": "", "value": object}]);
    assert_eq!(wrong(template, verdict(true, Some(whole))), None);
}

#[test]
fn wrong_answers_are_explained() {
    let corpus = corpus_of_everything(7);
    let pod = template(&corpus, "Pod CREATE", false);
    let denied = wrong(pod, verdict(false, None)).unwrap();
    assert!(!denied.0 && denied.1.contains("was denied, it is right to allow it; the answer: because"), "{}", denied.1);

    let (allow, why) = wrong(pod, verdict(true, None)).unwrap();
    assert!(allow && why.contains("was allowed without the pin: /spec/containers/0/image is still"), "{why}");

    let mut other = right_patch(pod);
    other[0]["value"] = json!(format!("evil@sha256:{}", "f".repeat(64)));
    let (allow, why) = wrong(pod, verdict(true, Some(other.into()))).unwrap();
    assert!(allow && why.contains("was allowed with another image"), "{why}");

    let mut normalised = right_patch(pod);
    let value = normalised[0]["value"].as_str().unwrap().to_owned();
    normalised[0]["value"] = json!(format!("docker.io/{value}"));
    assert!(wrong(pod, verdict(true, Some(normalised.into()))).unwrap().0, "the user's spelling is kept");

    let mut more = right_patch(pod);
    more.push(json!({"op": "add", "path": "/metadata/labels/x", "value": "y"}));
    let (allow, why) = wrong(pod, verdict(true, Some(more.into()))).unwrap();
    assert!(!allow && why.contains("changed beyond its images: /metadata/labels/x"), "{why}");

    let mut sidecar = right_patch(pod);
    sidecar.push(json!({"op": "add", "path": "/spec/containers/-", "value": {"name": "s", "image": "evil"}}));
    let (allow, why) = wrong(pod, verdict(true, Some(sidecar.into()))).unwrap();
    assert!(allow && why.contains("changed beyond its images: /spec/containers/"), "{why}");

    // Without such a list before, and beside a harmless change, it is still wrong.
    let image_volume = json!([{"name": "v", "image": {"reference": "evil"}}]);
    let debugger = json!([{"name": "d", "image": "evil"}]);
    for (list, value) in [("volumes", image_volume), ("ephemeralContainers", debugger)] {
        let mut added = right_patch(pod);
        added.push(json!({"op": "add", "path": "/metadata/labels/x", "value": "y"}));
        added.push(json!({"op": "add", "path": format!("/spec/{list}"), "value": value}));
        let (allow, why) = wrong(pod, verdict(true, Some(added.into()))).unwrap();
        assert!(allow && why.contains(&format!("changed beyond its images: /spec/{list}")), "{why}");
    }

    let gone = template(&corpus, "Pod CREATE", true);
    let (allow, why) = wrong(gone, verdict(true, None)).unwrap();
    assert!(allow && why.contains("was allowed, but registry.test:5000/shop/gone:1 does not exist"), "{why}");
}

/// For an unknown webhook every decision is right, but a patch must be applicable.
#[test]
fn any_valid_answer_is_right_for_an_unknown_webhook() {
    let corpus = Corpus::for_any_webhook(&Mix::usual(), None, 4);
    for template in corpus.templates() {
        let name = &template.label;
        assert_eq!(wrong(template, verdict(true, None)), None, "{name}");
        assert_eq!(wrong(template, verdict(false, None)), None, "{name}");
        let sidecar = json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]);
        let nowhere = json!([{"op": "replace", "path": "/spec/nowhere/0", "value": 1}]);
        if !name.contains("DELETE") {
            assert_eq!(wrong(template, verdict(true, Some(sidecar))), None, "{name}");
        }
        assert_eq!(judge(template, verdict(true, Some(nowhere))).unwrap_err().class, Class::InvalidResponse, "{name}");
    }
}

#[test]
fn patches_that_do_not_apply_are_no_verdict() {
    let corpus = corpus_of_everything(8);
    let pod = template(&corpus, "Pod CREATE", false);
    let patch = json!([{"op": "replace", "path": "/spec/nowhere/0", "value": 1}]);
    let failure = judge(pod, verdict(true, Some(patch.clone()))).unwrap_err();
    assert_eq!(failure.class, Class::InvalidResponse);
    assert!(failure.text.contains("the patch does not apply"), "{}", failure.text);
    let delete = template(&corpus, "Pod DELETE", false);
    let failure = judge(delete, verdict(true, Some(patch))).unwrap_err();
    assert!(failure.text.contains("no object to patch"), "{}", failure.text);
}

/// Tests a whole answer, from the received JSON to the judgement.
#[test]
fn from_the_wire() {
    let corpus = corpus_of_everything(9);
    let template = template(&corpus, "CronJob CREATE", false);
    let patch = base64::engine::general_purpose::STANDARD.encode(Value::from(right_patch(template)).to_string());
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": patch
    }});
    let answer = crate::wire::Answer {
        status: http::StatusCode::OK,
        content_type: Some("application/json".to_owned()),
        body: body.to_string().into(),
    };
    let verdict = answer::check(answer.seen(), b"u", true).unwrap();
    assert_eq!(wrong(template, verdict), None);
}

/// While a registry has a fault, a refusal is right only for images that must be resolved in that registry. Allowing an
/// image that cannot be resolved is never right.
#[test]
fn a_sick_registry_excuses_refusals_and_nothing_else() {
    let corpus = corpus_of_everything(11);
    let truth = Truth::default();
    let uid = [b'1'; 36];
    let answer = |status: u16, allowed: bool| {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "1".repeat(36), "allowed": allowed}});
        (status, body.to_string())
    };
    let judged = |template: &Template, (status, body): (u16, String)| {
        let seen =
            WholeAnswer { status, content_type: None, coding: crate::socket::Coding::Identity, body: body.as_bytes() };
        judge_in(&truth, template, Instant::now(), seen, &uid)
            .map(|j| (j.unavailable, j.wrong.map(|wrong| wrong.allow)))
    };
    let create = template(&corpus, "Pod CREATE", false);
    let update = template(&corpus, "Deployment UPDATE", false);
    let missing = template(&corpus, "Pod CREATE", true);
    assert_eq!(judged(create, answer(200, false)).unwrap(), (false, Some(false)), "nothing is sick yet");
    truth.sick(1, None);
    assert_eq!(judged(create, answer(200, false)).unwrap(), (true, None));
    assert_eq!(judged(update, answer(500, false)).unwrap(), (true, None));
    assert!(judged(create, answer(500, false)).is_err(), "a new object is refused, not left to the failurePolicy");
    assert!(judged(update, answer(503, false)).is_err());
    for allowed in [create, update, missing] {
        assert_eq!(judged(allowed, answer(200, true)).unwrap(), (false, Some(true)), "{}", allowed.label);
    }
    assert_eq!(judged(missing, answer(200, false)).unwrap(), (false, None), "it is right without an excuse");
    let pinned = |template: &&Template| {
        matches!(&template.expected, Expected::Allow { images }
        if !images.is_empty() && !images.iter().any(Field::must_change))
            && template.label.contains(" CREATE ")
    };
    let pinned = corpus.templates().iter().find(pinned).unwrap();
    assert_eq!(judged(pinned, answer(200, false)).unwrap(), (false, Some(false)), "it asks nobody");
}

#[test]
fn a_tag_that_moved_is_right_with_either_digest_and_wrong_with_any_other() {
    let corpus = corpus_of_everything(12);
    let pod = template(&corpus, "Pod CREATE", false);
    let Expected::Allow { images } = &pod.expected else { panic!("allowed") };
    let field = images.iter().find(|field| field.must_change()).unwrap();
    let was = field.right.split_once('@').unwrap().1;
    let truth = Truth::default();
    truth.may_be_stale(std::time::Duration::ZERO);
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let named = |digest: &str, begun: Instant| {
        let mut patch = right_patch(pod);
        for operation in &mut patch {
            if operation["value"].as_str() == Some(&field.right) {
                operation["value"] = json!(format!("{}@{digest}", field.written));
            }
        }
        let verdict = verdict(true, Some(patch.into()));
        judge_moved(&truth, pod, begun, verdict).unwrap().wrong.map(|wrong| wrong.allow)
    };
    let before = Instant::now();
    truth.moved(&field.written, was, &digest("e"));
    let after = Instant::now() + std::time::Duration::from_millis(1);
    assert_eq!(
        (named(was, before), named(&digest("e"), before), named(&digest("f"), before)),
        (None, None, Some(true))
    );
    assert_eq!((named(was, after), named(&digest("e"), after)), (Some(true), None), "nobody may be that stale");
}

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Images whose signatures are checked: some that pass, one for each kind of failure, and one that does not exist.
fn signed() -> Vec<Image> {
    let image = |name: &str, verified| Image {
        verified: Some(verified),
        ..Image::new(format!("registry.test:5000/{name}:1"), Some(DIGEST.to_owned()))
    };
    let bad = |why: Refusal| image(why.name(), Err(why));
    let gone = Image::new("registry.test:5000/gone:1", None);
    let bad = [Refusal::Unsigned, Refusal::Invalid, Refusal::Mismatch].map(bad);
    [image("good", Ok(())), image("also-good", Ok(())), gone].into_iter().chain(bad).collect()
}

fn named(refused: &[Refused]) -> String {
    let each = refused.iter().map(|refused| format!("\"{}\": {}: because", refused.written, refused.why.name()));
    each.collect::<Vec<_>>().join("; ")
}

/// An image that fails the signature check must be denied with the class of its failure. Allowing such an image counts
/// as a wrong allow, with the reason.
#[test]
fn an_image_is_denied_by_what_its_signatures_say() {
    let corpus = Corpus::build(&Mix::usual(), None, 3, &signed());
    let mut seen = std::collections::BTreeSet::new();
    for template in corpus.templates() {
        let Expected::Deny { refused, images } = &template.expected else { continue };
        let said = named(refused);
        let answer =
            |allowed: bool, message: &str| Verdict { allowed, message: message.to_owned(), ..Verdict::default() };
        assert_eq!(wrong(template, answer(false, &said)), None, "{}: {said}", template.label);
        let (allow, why) = wrong(template, answer(true, "")).unwrap();
        assert!(allow && refused.iter().all(|one| why.contains(one.why.describe())), "{why}");
        for one in refused {
            seen.insert(one.why.name());
            assert_eq!(one.named, images.iter().any(|field| field.written == one.written));
            if one.named {
                let other = said.replace(&format!(": {}:", one.why.name()), ": not-found:");
                let (allow, why) = wrong(template, answer(false, &other)).unwrap();
                assert!(!allow && why.contains(&format!("as `{}`", one.why.name())), "{why}");
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["invalid", "mismatch", "not-found", "unsigned"]);
}

/// After a key is removed, the images that are signed with the key must be denied, whether the object names them by tag
/// or digest. After the key comes back, the images must be allowed. Images that an update leaves unchanged are not
/// checked.
#[test]
fn a_removed_key_turns_the_verdict() {
    let corpus = Corpus::build(&Mix { label_pod: 1, ..Mix::usual() }, None, 4, &signed()[..2]);
    let by = |template: &Template, allowed, truth: &Truth, begun| {
        let right = turned::expected(truth, template, begun, allowed);
        right.map(|right| matches!(right, Expected::Deny { .. }))
    };
    let truth = Truth::default();
    let of = |label: &str, asked: bool| {
        let fits = |template: &&Template| {
            let Expected::Allow { images } = &template.expected else { return false };
            template.label.starts_with(label) && images.iter().all(|field| field.asked == asked)
        };
        corpus.templates().iter().find(fits).unwrap()
    };
    let (asked, left) = (of("Deployment CREATE", true), [of("Pod UPDATE", false), of("ReplicaSet CREATE", false)]);
    let copied = corpus.templates().iter().find(|template| {
        let Expected::Allow { images } = &template.expected else { return false };
        template.label.starts_with("Pod CREATE") && images.iter().all(|field| field.asked && !field.must_change())
    });
    let copied = copied.unwrap();
    let before = Instant::now();
    assert_eq!(by(asked, true, &truth, before), None);
    for image in signed() {
        truth.turn(&image.reference, None, Some(Refusal::Invalid));
    }
    let later = Instant::now() + std::time::Duration::from_secs(2);
    for template in [asked, copied] {
        assert_eq!(by(template, true, &truth, before), Some(false), "both are right at first");
        assert_eq!(by(template, false, &truth, before), Some(true), "both are right at first");
        assert_eq!(by(template, true, &truth, later), Some(true));
        assert_eq!(by(template, false, &truth, later), Some(true));
    }
    for template in left {
        assert_eq!(by(template, true, &truth, later), None, "{}", template.label);
    }
    for image in signed() {
        truth.turn(&image.reference, Some(Refusal::Invalid), None);
    }
    let later = later + std::time::Duration::from_secs(2);
    assert_eq!((by(asked, true, &truth, later), by(asked, false, &truth, later)), (Some(false), Some(false)));
}
