//! Makes the answers to callers when a request to the API server fails.

use http::StatusCode;

use super::answer::Refusal;
use service_core::{kube, wire};

/// The answer about `error`, which occurred while `doing` something, such as "reading the scale".
pub fn refusal(error: &kube::Error, doing: &str) -> Refusal {
    match error {
        kube::Error::Status { status, message, .. } => {
            let said = message.as_deref().unwrap_or("it gave no reason");
            let with = |status, text: String| Refusal::new(status, text);
            match status.as_u16() {
                404 => with(StatusCode::NOT_FOUND, "there is no such deployment".into()),
                409 => with(StatusCode::CONFLICT, format!("somebody else has written meanwhile: {said}")),
                422 => with(StatusCode::UNPROCESSABLE_ENTITY, format!("the API server refused it: {said}")),
                code => {
                    let text = format!("the API server answered {code} while {doing}: {said}");
                    let refusal = with(StatusCode::BAD_GATEWAY, text);
                    error.retry_after().map_or(refusal.clone(), |wait| refusal.after(wait))
                }
            }
        }
        kube::Error::Wire(wire::Error::Deadline { .. }) => {
            Refusal::new(StatusCode::GATEWAY_TIMEOUT, format!("no answer from the API server in time while {doing}"))
        }
        // Addresses and causes are for the log and the operator.
        _ => Refusal::new(StatusCode::BAD_GATEWAY, format!("the API server cannot be reached while {doing}")),
    }
}
