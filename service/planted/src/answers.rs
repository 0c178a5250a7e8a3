//! Planted bugs that change the answers of reviews or make reviews more expensive.
//!
//! The code of this module sees only the answers that callers get. So this module reads the reason of a denial from the
//! message.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use service_core::edge::{Answer, Handler};

use super::Bug;
use super::growth::{Moment, at};
use super::slower::{linger, longer};

/// Maximum number of images that are remembered as admissible: without a limit, the bug would also be a leak, which is
/// another bug.
const DOUBTED_MAX: usize = 4096;
/// The request path with the longest timeout that an API server can set.
const PATIENT: &str = "PATH?timeout=30s";
/// The beginning of a denial of one image. The message about the image follows this text.
const ONE_IMAGE: &str = "1 image may not run: ";

pub fn around(handler: Handler, bug: Bug) -> Handler {
    let doubted: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    Arc::new(move |request, peer| {
        let answered = handler(with_bug(bug, request), peer);
        let doubted = Arc::clone(&doubted);
        async move { spoilt(bug, answered.await, &doubted).await }.boxed()
    })
}

fn with_bug<B>(bug: Bug, mut request: Request<B>) -> Request<B> {
    if bug == Bug::IgnoresDeadline
        && let Ok(uri) = PATIENT.replace("PATH", request.uri().path()).parse()
    {
        *request.uri_mut() = uri;
    }
    request
}

pub async fn whole(answer: Answer) -> Response<Bytes> {
    let (head, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    Response::from_parts(head, body.to_bytes())
}

async fn spoilt(bug: Bug, answer: Answer, doubted: &Mutex<BTreeSet<String>>) -> Answer {
    let mut answer = whole(answer).await;
    if bug == Bug::CachesCannotTell {
        doubt(answer.body(), doubted);
    }
    if !answer.status().is_success() {
        return answer.map(Full::new);
    }
    let denied = is_denial(answer.body());
    at(bug, Moment::Review { denied });
    linger(bug).await;
    let spoilt = if denied && believes(bug, answer.body(), doubted) {
        changed(answer.body(), |response| {
            response.retain(|key, _| key == "uid");
            response.insert("allowed".into(), true.into());
        })
    } else if let Some(text) = longer(bug) {
        changed(answer.body(), |response| {
            let notes = response.entry("auditAnnotations").or_insert_with(|| Map::new().into());
            notes["planted"] = text.into();
        })
    } else {
        None
    };
    if let Some(spoilt) = spoilt {
        answer.headers_mut().remove(http::header::CONTENT_LENGTH);
        *answer.body_mut() = spoilt;
    }
    answer.map(Full::new)
}

/// Whether an answer denies its review. The bytes can be compared, because the service writes JSON without spaces.
fn is_denial(body: &[u8]) -> bool {
    const NO: &[u8] = br#","allowed":false"#;
    body.windows(NO.len()).any(|part| part == NO)
}

/// Whether `bug` admits an image that was denied with this message.
fn believes(bug: Bug, body: &[u8], doubted: &Mutex<BTreeSet<String>>) -> bool {
    if bug == Bug::WrongAllow {
        return true;
    }
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = review["response"]["status"]["message"].as_str().unwrap_or_default();
    let Some((image, class, why)) = denial(message) else { return false };
    match bug {
        // The message lists found signatures before the searched places.
        Bug::AcceptsAnySignature => {
            ["invalid", "mismatch"].contains(&class) || class == "unsigned" && found(why).is_some()
        }
        Bug::IgnoresDigestBinding => {
            class == "mismatch" && (why.contains("it signs the image ") || why.contains("its statement is about "))
        }
        Bug::ThresholdCountsTwice => too_few(why).is_some_and(|threshold| layers(why) >= threshold),
        Bug::CachesCannotTell => doubted.lock().contains(image),
        Bug::EvidenceAsUnavailable => ["too-much-evidence", "busy"].contains(&class),
        _ => false,
    }
}

/// The denied image, the class of its failure, and the cause, from a denial's message.
fn denial(message: &str) -> Option<(&str, &str, &str)> {
    let (_, one) = message.split_once(ONE_IMAGE)?;
    let (image, rest) = one.split_once(": ")?;
    let (class, why) = rest.split_once(": ")?;
    Some((image, class, why))
}

/// The section of a denial's message about signatures that exist but do not count.
fn found(why: &str) -> Option<&str> {
    let (_, found) = why.split_once(" in any format; ")?;
    Some(found).filter(|found| !found.starts_with("looked at "))
}

/// Remembers an image whose signatures could not be verified.
fn doubt(body: &[u8], doubted: &Mutex<BTreeSet<String>>) {
    let text = String::from_utf8_lossy(body);
    let Some((image, _, why)) = denial(&text) else { return };
    let mut doubted = doubted.lock();
    if why.starts_with("its signatures cannot be verified") && doubted.len() < DOUBTED_MAX {
        doubted.insert(image.to_owned());
    }
}

/// The demanded number of signers, if the image has some signers but too few.
fn too_few(why: &str) -> Option<usize> {
    let (before, _) = why.split_once(" signers: ")?;
    let (count, threshold) = before.split_once(" of ")?;
    count.parse::<usize>().ok()?;
    threshold.parse().ok()
}

/// The number of signatures that a denial's message mentions.
fn layers(why: &str) -> usize {
    let counts = why.split('(').filter_map(|part| part.split_once(" layers)").or_else(|| part.split_once(" bundles)")));
    counts.filter_map(|(count, _)| count.parse::<usize>().ok()).sum()
}

/// The answer `body` with a changed response; `None` if it has no response.
fn changed(body: &[u8], change: impl FnOnce(&mut Map<String, Value>)) -> Option<Bytes> {
    let mut review: Value = serde_json::from_slice(body).ok()?;
    change(review.get_mut("response")?.as_object_mut()?);
    serde_json::to_vec(&review).ok().map(Bytes::from)
}
