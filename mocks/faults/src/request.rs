//! A request as a fault sees it, and the effects of faults on its answer.
//!
//! Owns [`RequestFacts`] and [`Injection`]; the server carries out the effects. A request without a fault has the default
//! [`Injection`], which costs nothing.

use std::sync::Arc;
use std::time::Duration;

use super::View;
use super::{ActiveFault, ErrorBody, Fault, Form, On};

/// One request for a resource, before it is answered.
#[derive(Debug)]
pub struct RequestFacts<'a> {
    pub user: &'a Arc<str>,
    /// The full name of the resource, such as `packages.longhaul.dev`.
    pub resource: &'a Arc<str>,
    pub user_agent: &'a Arc<str>,
    pub on: On,
    /// The query as it was sent.
    pub query: &'a str,
    /// The number of the endpoint; 0 is the server's own endpoint.
    pub endpoint: u32,
    pub connection: u64,
}

/// The effects of faults on one request.
#[derive(Debug, Default)]
pub struct Injection {
    /// The answer that is sent instead of the server's own.
    pub instead: Option<Instead>,
    /// The delay before the request is handled.
    pub before: Option<Duration>,
    /// The delay between the decision of the answer and its sending.
    pub after: Option<Duration>,
    /// The old state from which the server answers the request, if a fault wants that.
    pub stale: Option<Stale>,
    /// How a revision that the server has not reached is refused.
    pub too_large: Option<TooLargeRule>,
    /// Maximum number of items in a page of a list, and the fault that sets the limit.
    pub page_items: Option<(u64, ActiveFault)>,
    /// The fault that sends the items of a list newest first.
    pub newest_first: Option<ActiveFault>,
    /// The media type in the answer's `Content-Type`, instead of the right type.
    pub content_type: Option<String>,
    /// Number of events that a watch sends a second time, and the fault that repeats them.
    pub repeat: Option<(u64, ActiveFault)>,
    /// The fault that gives an empty answer to a watch from a compacted revision.
    pub empty_when_gone: Option<ActiveFault>,
    /// The loss of the answer, if the request succeeds.
    pub lost: Option<Lost>,
    /// Whether the head of the answer is sent only with the first bytes of the body.
    pub holds_head: bool,
    /// Serial numbers, all below `known`, of the faults that apply to this request's watch.
    pub matched: Vec<u64>,
    /// The serial number that the next fault gets.
    pub known: u64,
}

/// An old state from which a request is answered until the fault ends.
#[derive(Debug, Clone)]
pub struct Stale {
    pub view: Arc<View>,
    /// The fault that shows the old state.
    pub active: ActiveFault,
}

/// The loss of a successful request's answer.
#[derive(Debug)]
pub struct Lost {
    /// The error that is sent instead; `None` means a reset.
    pub refusal: Option<Refusal>,
    pub active: ActiveFault,
}

/// How a revision that the server has not reached is refused.
#[derive(Debug)]
pub struct TooLargeRule {
    pub form: Form,
    pub always: bool,
    pub active: ActiveFault,
}

/// The answer that is sent instead of the server's own.
#[derive(Debug)]
pub enum Instead {
    Refusal(Refusal),
    /// No answer until the fault ends; then the connection is closed.
    Silence(ActiveFault),
    /// Status 200 with an empty body.
    Empty,
}

#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    /// The `reason` of the `Status`; default: that of the HTTP status, see [`crate::reason_of`].
    pub reason: Option<String>,
    /// The header `Retry-After` in seconds.
    pub retry_after_s: Option<u64>,
    /// The kind of the answer's body: a `Status`, plain text or nothing.
    pub body: ErrorBody,
}

impl RequestFacts<'_> {
    /// Whether a fault's keys choose this request; the user is not checked.
    pub fn concerns(&self, fault: &Fault) -> bool {
        fault.on().has(self.on) && fault.matches(self.resource, self.user_agent, self.query, self.endpoint)
    }

    /// The revision from which a watch resumes; `None` if the watch starts from the present state.
    pub(crate) fn resumes_from(&self) -> Option<u64> {
        let value = |key: &str| self.query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let begins = self.on != On::Watch || value("sendInitialEvents") == Some("true");
        value("resourceVersion").filter(|_| !begins)?.parse().ok().filter(|from| *from > 0)
    }

    /// Describes the request, for example `list of packages.longhaul.dev by subject on connection 3`.
    pub fn describe(&self) -> String {
        let verb = match self.on {
            On::List => "list",
            On::Watch => "watch",
            On::Get => "get",
            On::Create => "create",
            On::Update => "update",
            On::Patch => "patch",
            On::Delete => "delete",
            _ => "request",
        };
        format!("{verb} of {} by {} on connection {}", self.resource, self.user, self.connection)
    }
}
