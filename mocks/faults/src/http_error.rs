//! `http-error`: a request is answered with an HTTP error and nothing is done. A hit is one answer.

use super::{Asked, Behaviour, ErrorBody, Injection, Instead, Refusal, Row, Scene};

pub(super) const ROW: Row = Row::requests("http-error", "Requests are answered with an HTTP error.")
    .takes(&[
        ("status", "500", ""),
        ("retryAfter", "none", "in whole seconds"),
        ("reason", "the one that belongs to the status", ""),
        ("body", "`status`", "`status` (a `Status` object), `text` or `empty`"),
    ])
    .sees("this HTTP error, 400 to 599; nothing is done")
    .drawn(8, Some(20))
    .played(|_| Box::new(HttpError));

/// When the fault does not say.
const STATUS: u16 = 500;

#[derive(Debug)]
pub(super) struct HttpError;

impl Behaviour for HttpError {
    fn asked(&mut self, asked: &Asked<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if injection.instead.is_some() {
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
        injection.instead = Some(Instead::Refusal(refusal));
    }
}
