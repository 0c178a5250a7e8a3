//! `http-error`: a request is answered with an HTTP error and nothing is done. A hit is one answer.

use super::{Asked, Behaviour, ErrorBody, Instead, Refusal, Scene, Treatment};

/// When the fault does not say.
const STATUS: u16 = 500;

#[derive(Debug)]
pub(super) struct HttpError;

impl Behaviour for HttpError {
    fn asked(&mut self, asked: &Asked<'_>, treatment: &mut Treatment, scene: &mut Scene<'_>) {
        if treatment.instead.is_some() {
            return;
        }
        let fault = scene.fault;
        let refusal = Refusal {
            status: fault.status.unwrap_or(STATUS),
            reason: fault.reason.clone(),
            retry_after_s: fault.retry_after.map(|span| span.as_millis().div_ceil(1000)),
            body: fault.body.unwrap_or(ErrorBody::Status),
        };
        scene.hit(format!("{} answered with {}", asked.describe(), refusal.status));
        treatment.instead = Some(Instead::Refusal(refusal));
    }
}
