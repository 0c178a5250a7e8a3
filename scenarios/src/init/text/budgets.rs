//! The budgets that are proposed: those that a run of this length decides, with what was found.

use std::fmt::Write as _;

use super::{flags, is_asked_of_pods, is_webhook_only};
use crate::init::witness::Proposal;
use crate::init::yaml::told;
use crate::init::{Found, Framework};

/// Requests a second that a careful controller does not come near with ten changes a second: each costs it a handful of requests, and a relist
/// of fifty objects costs each of them one more.
const REQUESTS: u32 = 300;

pub(super) fn budgets(text: &mut String, found: &Found, proposal: Option<&Proposal>) {
    line!(text, "budgets:");
    if let Some(proposal) = proposal {
        line!(text, "  events: {}", proposal.budgets);
    }
    if is_asked_of_pods(found) {
        line!(text, "  # A p99 needs 10,000 reviews: at 50/s a steady phase of 200s.");
        line!(text, "  admission: {{errors: 0, p50: 100ms}}");
    }
    if found.own_hooks().next().is_some() {
        line!(text, "  # An answer that an API server would not take, and a call that nobody answers, are errors.");
        line!(text, "  admission: {{errors: 0}}");
    }
    let framework = found.program().and_then(|program| program.framework);
    if framework == Some(Framework::ControllerRuntime) && !is_webhook_only(found) {
        line!(
            text,
            "  # Ten changes a second cost a careful controller a tenth of this; one that tries again without waiting costs more."
        );
        line!(text, "  requests: {{rate: {REQUESTS}/s}}");
    }
    if flags(found).is_some_and(|flags| flags.metrics().is_some()) {
        line!(
            text,
            "  # Goroutines that stay, one for each object that ever was: what a reconcile starts and nobody ends is more."
        );
        line!(text, "  metrics: {{go_goroutines: {{growthPerObject: 1}}}}");
    }
    line!(text, "  # check: a minute decides no growth. An hour does: `longhaul plan FILE` says from which length on.");
    line!(text, "  # memory: {{growth: 5MiB/h}}");
}
