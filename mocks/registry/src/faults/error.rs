//! `registry-error`: the registry answers with an HTTP error, 503 unless the fault names another status. If the fault
//! sets `Retry-After`, the answer has that header in whole seconds. A hit is one answer with the error.

use http::StatusCode;
use http::header::RETRY_AFTER;
use mock_faults::ErrorKeys;

use super::{Ask, Before, Behaviour, Fault};
use crate::refusal::{Code, Refusal};
use crate::route::Kind;

pub(super) struct HttpError;

impl Behaviour for HttpError {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, fault: &Fault) -> Option<Before> {
        let keys = fault.keys::<ErrorKeys>();
        let status = keys.status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let code = match status {
            StatusCode::TOO_MANY_REQUESTS => Code::TooManyRequests,
            StatusCode::UNAUTHORIZED => Code::Unauthorized,
            StatusCode::FORBIDDEN => Code::Denied,
            StatusCode::NOT_FOUND => Code::NameUnknown,
            _ => Code::Unavailable,
        };
        let refusal = Refusal::new(code).status(status);
        Some(Before::Refuse(match keys.retry_after {
            Some(span) => refusal.header(RETRY_AFTER, &span.as_millis().div_ceil(1000).to_string()),
            None => refusal,
        }))
    }
}
