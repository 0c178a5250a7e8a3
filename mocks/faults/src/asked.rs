//! What a fault knows of a request, and what it wants done with the answer.
//!
//! Owns `Asked` and `Injection`; the server acts on them. A request without a fault has the default injection,
//! which costs nothing.

use std::sync::Arc;
use std::time::Duration;

use super::View;
use super::{ActiveFault, ErrorBody, Fault, Form, On};

/// One request for a resource, before it is answered.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Who asks.
    pub user: &'a Arc<str>,
    /// Full resource name.
    pub resource: &'a Arc<str>,
    /// With which client.
    pub user_agent: &'a Arc<str>,
    /// What for.
    pub on: On,
    /// As it was sent.
    pub query: &'a str,
    /// At which endpoint; 0 is the server itself.
    pub endpoint: u32,
    /// On which connection.
    pub connection: u64,
}

/// What becomes of a request.
#[derive(Debug, Default)]
pub struct Injection {
    /// What is answered instead.
    pub instead: Option<Instead>,
    /// To wait before it is looked at.
    pub before: Option<Duration>,
    /// To wait after the answer is decided.
    pub after: Option<Duration>,
    /// The state that it is answered from.
    pub stale: Option<Stale>,
    /// How revisions are refused that are too large.
    pub too_large: Option<TooLargeRule>,
    /// The most items of a page.
    pub page_items: Option<(u64, ActiveFault)>,
    /// A list comes newest first.
    pub newest_first: Option<ActiveFault>,
    /// The media type that the answer claims.
    pub content_type: Option<String>,
    /// Events to send once more on a watch.
    pub repeat: Option<(u64, ActiveFault)>,
    /// A watch from a revision that is gone is answered with nothing.
    pub empty_when_gone: Option<ActiveFault>,
    /// The head of the answer waits for the first bytes of its body.
    pub holds_head: bool,
    /// The faults that the watch of this request is to meet, by serial number, among those before `known`.
    pub matched: Vec<u64>,
    /// The serial number of the next fault when the request was asked about.
    pub known: u64,
}

/// An old state that a request is answered from, until its fault ends.
#[derive(Debug, Clone)]
pub struct Stale {
    /// The old state.
    pub view: Arc<View>,
    /// The fault that shows it.
    pub active: ActiveFault,
}

/// How revisions are refused that are too large.
#[derive(Debug)]
pub struct TooLargeRule {
    pub form: Form,
    pub always: bool,
    pub active: ActiveFault,
}

/// What is answered instead.
#[derive(Debug)]
pub enum Instead {
    /// An error.
    Refusal(Refusal),
    /// Nothing, until the fault ends; then the connection is closed.
    Silence(ActiveFault),
    /// 200 and the end.
    Empty,
}

/// An error.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// `reason`; without it, [`crate::reason_of`] the status.
    pub reason: Option<String>,
    /// The header `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// What the answer carries.
    pub body: ErrorBody,
}

impl Asked<'_> {
    /// Whether a fault is about such requests; whoever asks.
    pub fn concerns(&self, fault: &Fault) -> bool {
        fault.on().has(self.on) && fault.matches(self.resource, self.user_agent, self.query, self.endpoint)
    }

    /// The revision from which a watch wants to go on; none where it begins with what there is.
    pub(crate) fn resumes_from(&self) -> Option<u64> {
        let value = |key: &str| self.query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        let begins = self.on != On::Watch || value("sendInitialEvents") == Some("true");
        value("resourceVersion").filter(|_| !begins)?.parse().ok().filter(|from| *from > 0)
    }

    /// `list of packages.longhaul.dev by subject on connection 3`.
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
