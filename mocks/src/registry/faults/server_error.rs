//! `server-error`: a status of the 500s, with `Retry-After` when the fault says so. A hit is one such answer.

use http::StatusCode;
use http::header::RETRY_AFTER;

use super::{Ask, Before, Behaviour, Fault};
use crate::registry::refusal::{Code, Refusal};
use crate::registry::route::Kind;

pub(super) struct ServerError;

impl Behaviour for ServerError {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, fault: &Fault) -> Option<Before> {
        let status = fault.status.and_then(|status| StatusCode::from_u16(status).ok());
        let refusal = Refusal::new(Code::Unavailable).status(status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
        Some(Before::Refuse(match fault.retry_after {
            Some(span) => refusal.header(RETRY_AFTER, &span.as_millis().div_ceil(1000).to_string()),
            None => refusal,
        }))
    }
}
