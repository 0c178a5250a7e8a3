//! `http-error`: a request is answered with an HTTP error and not carried out. A hit is one answer with the error.

use units::Span;

use super::settings::{error_status, keys};
use super::{Behaviour, Error, ErrorBody, Injection, Instead, PlayedRow, Refusal, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        status "status": u16 = ("500", ""),
        retry_after "retryAfter": Span = ("none", "in whole seconds"),
        reason "reason": String = ("the one that belongs to the status", ""),
        body "body": ErrorBody = ("`status`", "`status` (a `Status` object), `text` or `empty`"),
    }
}

pub(super) const ROW: PlayedRow = Row::requests("http-error", "Requests are answered with an HTTP error.")
    .takes::<Keys>()
    .refuses(|fault| {
        let keys = fault.keys::<Keys>();
        if keys.body == Some(ErrorBody::Empty) && keys.reason.is_some() {
            let instead = "an empty body has none: leave it out, or write `body: status`";
            return Err(Error::Value { key: "reason", given: "set".to_owned(), instead });
        }
        error_status(keys.status)
    })
    .sees("this HTTP error, 400 to 599; the request has no effect")
    .drawn(8, Some(20))
    .played(|_| Box::new(HttpError));

/// The default HTTP status.
const STATUS: u16 = 500;

#[derive(Debug)]
pub(super) struct HttpError;

impl Behaviour for HttpError {
    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if injection.instead.is_some() {
            return;
        }
        let keys = scene.fault.keys::<Keys>();
        let refusal = Refusal {
            status: keys.status.unwrap_or(STATUS),
            reason: keys.reason,
            retry_after_s: keys.retry_after.map(|span| span.as_millis().div_ceil(1000)),
            body: keys.body.unwrap_or(ErrorBody::Status),
        };
        scene.hit(format!("{} answered with {}", asked.describe(), refusal.status));
        injection.instead = Some(Instead::Refusal(refusal));
    }
}
