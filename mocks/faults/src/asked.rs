//! The request as a fault sees it, and the effects that it wants on the answer.
//!
//! Owns `Asked` and `Injection`; the server acts on them. A request without a fault has the default injection, which
//! costs nothing.

use std::sync::Arc;
use std::time::Duration;

use super::View;
use super::{ActiveFault, ErrorBody, Fault, Form, On};

/// One request for a resource, before it is answered.
#[derive(Debug)]
pub struct Asked<'a> {
    pub user: &'a Arc<str>,
    /// Full resource name.
    pub resource: &'a Arc<str>,
    /// The client's `User-Agent`.
    pub user_agent: &'a Arc<str>,
    /// The sort of request.
    pub on: On,
    /// The query as it was sent.
    pub query: &'a str,
    /// The number of the endpoint; 0 is the server itself.
    pub endpoint: u32,
    /// The number of the connection.
    pub connection: u64,
}

/// The effects of faults on one request.
#[derive(Debug, Default)]
pub struct Injection {
    /// The replacement of the answer.
    pub instead: Option<Instead>,
    /// Delay before the request is handled.
    pub before: Option<Duration>,
    /// Delay after the answer is decided.
    pub after: Option<Duration>,
    /// The old state that the answer shows.
    pub stale: Option<Stale>,
    /// The form in which revisions that are too large are refused.
    pub too_large: Option<TooLargeRule>,
    /// The most items of a page.
    pub page_items: Option<(u64, ActiveFault)>,
    /// Whether a list comes newest first.
    pub newest_first: Option<ActiveFault>,
    /// The media type that the answer claims.
    pub content_type: Option<String>,
    /// Number of events to repeat on a watch.
    pub repeat: Option<(u64, ActiveFault)>,
    /// Whether a watch from a compacted revision gets an empty answer.
    pub empty_when_gone: Option<ActiveFault>,
    /// Whether the head of the answer waits for the first bytes of its body.
    pub holds_head: bool,
    /// The serial numbers of the faults that apply to the watch of this request, among those before `known`.
    pub matched: Vec<u64>,
    /// The serial number of the next fault at the time of the request.
    pub known: u64,
}

/// An old state that a request is answered from, until its fault ends.
#[derive(Debug, Clone)]
pub struct Stale {
    pub view: Arc<View>,
    /// The fault that shows it.
    pub active: ActiveFault,
}

/// The form in which revisions that are too large are refused.
#[derive(Debug)]
pub struct TooLargeRule {
    pub form: Form,
    pub always: bool,
    pub active: ActiveFault,
}

/// The replacement of an answer.
#[derive(Debug)]
pub enum Instead {
    Refusal(Refusal),
    /// No answer until the fault ends; then the connection is closed.
    Silence(ActiveFault),
    /// Status 200 and the end of the body.
    Empty,
}

/// An HTTP error.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    /// The `reason`; if absent, [`crate::reason_of`] the status.
    pub reason: Option<String>,
    /// The header `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// The form of the body.
    pub body: ErrorBody,
}

impl Asked<'_> {
    /// Whether a fault concerns such requests, ignoring the user.
    pub fn concerns(&self, fault: &Fault) -> bool {
        fault.on().has(self.on) && fault.matches(self.resource, self.user_agent, self.query, self.endpoint)
    }

    /// The revision from which a watch wants to go on; `None` if it begins with the present state.
    pub(crate) fn resumes_from(&self) -> Option<u64> {
        let value = |key: &str| self.query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let begins = self.on != On::Watch || value("sendInitialEvents") == Some("true");
        value("resourceVersion").filter(|_| !begins)?.parse().ok().filter(|from| *from > 0)
    }

    /// For example `list of packages.longhaul.dev by subject on connection 3`.
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
