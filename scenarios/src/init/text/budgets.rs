//! The proposed budgets: the budgets that the proposed witness can decide in a run of the proposed length.

use std::fmt::Write as _;

use super::{CHILDREN, flags, is_asked_of_pods, is_of_controller_runtime};
use crate::init::Found;
use crate::init::go::Flags;
use crate::init::seen::Seen;
use crate::init::witness::Proposal;
use crate::init::yaml::printable;

/// Proposed limit in requests per second. A careful controller stays well below this limit at ten changes per second. A
/// change costs a handful of requests, and a relist costs one request for each of fifty objects.
const REQUESTS: u32 = 300;

pub(super) fn budgets(text: &mut String, found: &Found, seen: &Seen, proposal: Option<&Proposal>) {
    line!(text, "# check: limits that a run of this length can decide.");
    line!(text, "budgets:");
    if let Some(proposal) = proposal {
        let seen_restored = || {
            let best = seen.best().into_iter().flat_map(|best| &best.children);
            best.into_iter().take(CHILDREN).any(|child| child.is_restored == Some(true) && !child.varies)
        };
        let restored = seen.ran() && seen_restored();
        let decided = proposal.budgets.trim_matches(['{', '}']);
        let all = [decided, if restored { "restored: true" } else { "" }];
        let all: Vec<&str> = all.into_iter().filter(|one| !one.is_empty()).collect();
        line!(text, "  events: {{{}}}", all.join(", "));
    }
    if is_asked_of_pods(found) {
        line!(text, "  # A p99 needs 10,000 reviews: at 50/s a steady phase of 200s.");
        line!(text, "  admission: {{errors: 0, p50: 100ms}}");
    }
    if found.own_hooks().next().is_some() {
        line!(text, "  # An answer that an API server would not accept, and a call without an answer, are errors.");
        line!(text, "  admission: {{errors: 0}}");
    }
    if is_of_controller_runtime(found) {
        line!(
            text,
            "  # At ten changes a second a careful controller needs a tenth of this; one that retries without waiting needs more."
        );
        line!(text, "  requests: {{rate: {REQUESTS}/s, hotLoop: 12/s}}");
    }
    let is_counted = if seen.ran() {
        seen.metrics().is_some_and(|open| open.counts_goroutines)
    } else {
        flags(found).is_some_and(Flags::serves_metrics)
    };
    if is_counted {
        line!(
            text,
            "  # At most one goroutine may stay per object ever created; goroutines that reconciles start and never end break this limit."
        );
        line!(text, "  metrics: {{go_goroutines: {{growthPerObject: 1}}}}");
    }
    line!(
        text,
        "  # check: a minute decides no growth, an hour does: `longhaul check --plan FILE` shows the length that is needed."
    );
    line!(text, "  # memory: {{growth: 5MiB/h}}");
}
