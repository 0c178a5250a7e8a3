//! The effects of faults on a request: delays, other answers, an old state.
//!
//! This module carries out the effects that an `Injection` lists. This module must not decide which requests a fault
//! hits.

use std::time::Duration;

use http::{Method, StatusCode};
use mock_faults::{ErrorBody, Instead, Refusal, reason_of};
use mock_objects::status::Failure;
use serde_json::json;

use super::answer::Answer;
use super::audit::Said;
use super::call::Call;
use super::payload::Payload;
use super::verbs;
use super::written::Write;

/// Longest time that a read waits for a revision that the API server has not seen yet, as in kube-apiserver's watch
/// cache.
const CATCH_UP: Duration = Duration::from_secs(3);
/// Interval of the checks while a read waits for a revision.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The error of a request whose connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("a fault leaves the request without an answer")]
pub(crate) struct Unanswered;

/// Answers a request with the effects that its injection describes.
/// `write` is the write in the request, if a fault or the log of writes needs it.
pub(super) async fn answer(
    mut call: Box<Call>,
    body: Payload,
    write: Option<Write>,
) -> Result<Result<Answer, Failure>, Unanswered> {
    if let Some(instead) = call.injection.instead.take() {
        // The body is read to its end: otherwise a client that is still writing would see a closed connection instead
        // of the answer.
        let read = verbs::read_body(&call.app.limits, body).await;
        if let (Some(write), Instead::Refusal(refusal)) = (write, &instead) {
            write.ended(call.cluster(), refusal.status).await;
        }
        return match (read, instead) {
            (Err(failure), _) => Ok(Err(failure)),
            (Ok(_), Instead::Refusal(refusal)) => Ok(Ok(refused(&refusal))),
            (Ok(_), Instead::Empty) => Ok(Ok(Answer::nothing())),
            (Ok(_), Instead::Silence(active)) => {
                tokio::select! { () = active.over() => {}, () = call.app.ending.cancelled() => {} }
                Err(Unanswered)
            }
        };
    }
    if let Some(before) = call.injection.before {
        tokio::time::sleep(before).await;
    }
    catch_up(&call).await;
    let after = call.injection.after;
    let holds_head = call.injection.holds_head;
    let content_type = call.injection.content_type.take();
    let lost = call.injection.lost.take();
    let cluster = call.cluster().clone();
    let asked = lost.as_ref().map(|_| call.describe());
    let answer = verbs::dispatch(call, body).await.unwrap_or_else(Answer::from);
    if let Some(write) = write {
        Box::pin(write.ended(&cluster, answer.status.as_u16())).await;
    }
    if let Some(lost) = lost.filter(|_| answer.status.is_success())
        && lost.active.hit(|| format!("{} done, its answer lost", asked.as_deref().unwrap_or_default()))
    {
        return lost.refusal.map(|refusal| Ok(refused(&refusal))).ok_or(Unanswered);
    }
    let answer = Answer { other_content_type: content_type, holds_head, ..answer };
    if let Some(after) = after {
        tokio::time::sleep(after).await;
    }
    Ok(Ok(answer))
}

/// Waits until the old state that a fault shows reaches the revision that a list or a read needs, at most [`CATCH_UP`].
async fn catch_up(call: &Call) {
    let reads = call.method == Method::GET && !call.query.watch;
    let wanted = call.query.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
    let Some(wanted) = wanted.filter(|_| reads && call.injection.stale.is_some()) else { return };
    if call.injection.too_large.is_some() {
        return;
    }
    let ends = tokio::time::Instant::now() + CATCH_UP;
    while call.sees(call.cluster().revision()) < wanted && tokio::time::Instant::now() < ends {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn refused(refusal: &Refusal) -> Answer {
    let code = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = match refusal.status {
        401 => "Unauthorized",
        410 => "The resourceVersion for the provided watch is too old.",
        429 => "The apiserver is too busy to answer, please try again later",
        503 => "The apiserver is currently unable to handle the request",
        _ => code.canonical_reason().unwrap_or("the request failed"),
    };
    let mut answer = match refusal.body {
        ErrorBody::Empty => Answer::text(code, ""),
        ErrorBody::Text => Answer::text(code, format!("{message}\n")),
        ErrorBody::Status => {
            let reason = refusal.reason.as_deref().unwrap_or(reason_of(refusal.status));
            let mut status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": message, "reason": reason, "code": refusal.status,
            });
            if let Some(seconds) = refusal.retry_after_s {
                status["details"] = json!({"retryAfterSeconds": seconds});
            }
            Answer::value(code, &status)
        }
    };
    answer.retry_after_s = refusal.retry_after_s;
    answer.said = Some(Said::refused("", message));
    answer
}
