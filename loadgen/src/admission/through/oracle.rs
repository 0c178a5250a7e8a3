//! Interprets an API server's answer, and decides whether it is the right answer. Pure: no I/O.
//!
//! An object that is stored with an unpinned image is no wrong answer in this module, because the answer does not show
//! whether the webhook was called. [`super::Stored`] counts such objects.

use serde::Deserialize;
use serde_json::Value;

use super::operate::Operator;
use super::plan::{Operation, Step};
use crate::admission::expected::Expected;
use crate::admission::objects;
use crate::admission::oracle::{Judgement, Wrong};
use crate::churn::api::Reply;
use crate::failure::Failure;

/// The start of kube-apiserver's message for a denial (`ToStatusErr` of apiserver/pkg/admission/plugin/webhook/errors).
const HOOK: &str = "admission webhook \"";
const DENIED: &str = "denied the request";
/// Maximum number of bytes shown of an answer's text.
const SHOWN_MAX: usize = 300;

/// The images of an object: JSON pointers and references.
pub(super) type Images = Vec<(String, String)>;

/// The judgement of an answer, and the state of the object after it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub judgement: Judgement,
    /// The state of the object after the answer; `None` if the answer shows no new state.
    pub state: Option<State>,
}

/// The known state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// The object exists and has these images.
    Stored(Images),
    Absent,
}

/// Judges an answer. `before` is the known state of the object; `None` if it may exist or not.
pub(super) fn judge(
    operator: &Operator,
    operation: Operation,
    before: Option<&State>,
    reply: &Reply,
) -> Result<Outcome, Failure> {
    let label = operator.label(operation);
    if reply.status.is_success() {
        return admitted(operator, operation, before, reply);
    }
    let said = message(reply);
    if said.contains(HOOK) && said.contains(DENIED) {
        let wrong = denies(operator, operation).is_none().then(|| Wrong {
            allow: false,
            why: format!("{label} was denied, but it is right to allow it; the answer: {said}"),
        });
        return Ok(Outcome { judgement: Judgement { wrong, ..Judgement::default() }, state: None });
    }
    if reply.status == http::StatusCode::NOT_FOUND && before != Some(&State::Absent) || reply.status.as_u16() != 404 {
        return Err(Failure::http(format!("{label}: HTTP {}: {said}", reply.status.as_u16())));
    }
    // The object is known not to exist, because its creation failed.
    Ok(Outcome { judgement: Judgement { allowed: true, ..Judgement::default() }, state: Some(State::Absent) })
}

/// Why a denial is right; `None` if it is wrong.
fn denies(operator: &Operator, operation: Operation) -> Option<String> {
    match operation.step {
        Step::Create | Step::DryRun => match &operator.stock.made(operation.made).expected {
            Expected::Deny { refused, .. } => {
                Some(refused.iter().map(|refused| &*refused.written).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        },
        Step::SetImage(number) => {
            let image = &operator.stock.images()[number as usize];
            image.digest.is_none().then(|| image.reference.clone())
        }
        _ => None,
    }
}

fn admitted(
    operator: &Operator,
    operation: Operation,
    before: Option<&State>,
    reply: &Reply,
) -> Result<Outcome, Failure> {
    let right = |wrong, state| Outcome { judgement: Judgement { allowed: true, wrong, ..Judgement::default() }, state };
    match operation.step {
        Step::Delete => return Ok(right(None, Some(State::Absent))),
        // The answer is a scale.
        Step::Scale { subresource: true, .. } => return Ok(right(None, None)),
        _ => {}
    }
    let label = operator.label(operation);
    let object: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| Failure::invalid(format!("{label}: the answer is no object: {error}")))?;
    let got = objects::images(operator.kind(operation), &object);
    let wrong = match (operation.step, before) {
        (Step::Create | Step::DryRun, _) => wrong_images(operator, &got, None),
        (Step::SetImage(_), Some(State::Stored(old))) => wrong_images(operator, &got, Some(old)),
        (_, Some(State::Stored(old))) if *old != got => Some("its images changed without a write".to_owned()),
        _ => None,
    };
    let wrong = wrong.map(|why| Wrong { allow: true, why: format!("{label}: {why}") });
    let state = (operation.step != Step::DryRun).then_some(State::Stored(got));
    Ok(right(wrong, state))
}

/// An image that is neither unchanged, nor as the user wrote it, nor pinned to its digest.
fn wrong_images(operator: &Operator, got: &Images, old: Option<&Images>) -> Option<String> {
    let digests = operator.stock.digests();
    got.iter().find_map(|image| {
        let (pointer, written) = image;
        if old.is_some_and(|old| old.contains(image)) {
            return None;
        }
        let (reference, digest) = written.split_once('@').map_or((written.as_str(), None), |(r, d)| (r, Some(d)));
        match (digest, digests.get(reference).map(|image| image.digest.as_ref())) {
            (None, Some(_)) => None,
            (Some(got), Some(Some(right))) if got == right => None,
            (Some(_), Some(Some(right))) => {
                Some(format!("was stored with another digest: {pointer} is `{written}`, right is `{right}`"))
            }
            _ => Some(format!("was stored with an image that was not requested: {pointer} is `{written}`")),
        }
    })
}

/// The message of a `Status`, or the beginning of any other body.
fn message(reply: &Reply) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    let text = serde_json::from_slice::<Status>(&reply.body)
        .map_or_else(|_| String::from_utf8_lossy(&reply.body).into_owned(), |status| status.message);
    text.chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::StatusCode;
    use serde_json::json;

    use super::super::stock::Stock;
    use super::*;
    use crate::admission::Mix;
    use crate::admission::image::Image;
    use crate::churn::api::{Api, Client};

    const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn operator() -> Operator {
        let images = [Image::new("r/a:1", Some(DIGEST.to_owned())), Image::new("r/gone:1", None)];
        let mix = Mix { create_pod: 1, ..Mix::default() };
        let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let api = Api {
            url: "https://127.0.0.1:1".to_owned(),
            ca_pem: authority.cert.pem(),
            token: "t".to_owned(),
            mark: None,
        };
        let stock = Stock::build(&mix, 1, &images, vec!["n".to_owned()]);
        Operator { client: Arc::new(Client::new(&api).unwrap()), stock: Arc::new(stock) }
    }

    fn reply(status: u16, body: &Value) -> Reply {
        Reply { status: StatusCode::from_u16(status).unwrap(), body: Bytes::from(body.to_string()) }
    }

    /// The first manifest has only images that exist; the second has an image that does not exist.
    fn create(made: u32) -> Operation {
        Operation { object: 1, made, step: Step::Create }
    }

    fn pod(image: &str) -> Value {
        json!({"kind": "Pod", "spec": {"containers": [{"name": "app", "image": image}]}})
    }

    #[test]
    fn denials_are_right_where_an_image_is_missing() {
        let operator = operator();
        let denial = json!({"kind": "Status", "message": "admission webhook \"x\" denied the request: no such image"});
        for (made, right) in [(0, false), (1, true)] {
            let outcome = judge(&operator, create(made), None, &reply(403, &denial)).unwrap();
            assert!(!outcome.judgement.allowed);
            assert_eq!(outcome.judgement.wrong.is_none(), right, "{made}");
        }
        let failed = json!({"message": "Internal error occurred: failed calling webhook \"x\": refused"});
        let failure = judge(&operator, create(0), None, &reply(500, &failed)).unwrap_err();
        assert!(failure.text.contains("HTTP 500: Internal error occurred: failed calling webhook"), "{}", failure.text);
        let own = judge(&operator, create(0), None, &reply(403, &json!({"message": "exceeded quota"}))).unwrap_err();
        assert!(own.text.contains("HTTP 403: exceeded quota"), "a refusal of the API server is no verdict");
    }

    #[test]
    fn only_other_images_are_wrong() {
        let operator = operator();
        let pinned = format!("r/a:1@{DIGEST}");
        let other = format!("r/a:1@sha256:{}", "b".repeat(64));
        for (image, expected) in [
            (pinned.as_str(), None),
            ("r/a:1", None),
            ("r/gone:1", None),
            (&other, Some("another digest")),
            ("evil:1", Some("that was not requested")),
        ] {
            let outcome = judge(&operator, create(0), None, &reply(201, &pod(image))).unwrap();
            let why = outcome.judgement.wrong.map(|wrong| wrong.why);
            assert_eq!(why.is_some(), expected.is_some(), "{image} {why:?}");
            assert!(why.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }

    #[test]
    fn a_label_changes_no_image() {
        let operator = operator();
        let label = Operation { step: Step::Label, ..create(0) };
        let before = State::Stored(vec![("/spec/containers/0/image".to_owned(), "r/a:1".to_owned())]);
        let same = judge(&operator, label, Some(&before), &reply(200, &pod("r/a:1"))).unwrap();
        assert!(same.judgement.wrong.is_none());
        let pinned = judge(&operator, label, Some(&before), &reply(200, &pod(&format!("r/a:1@{DIGEST}")))).unwrap();
        assert!(pinned.judgement.wrong.unwrap().why.contains("changed without a write"));
        let gone = reply(404, &json!({"message": "not found"}));
        assert!(judge(&operator, label, Some(&before), &gone).is_err());
        assert!(judge(&operator, label, Some(&State::Absent), &gone).unwrap().judgement.allowed);
    }
}
