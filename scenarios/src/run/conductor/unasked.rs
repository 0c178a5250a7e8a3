//! Ends the run early if a ready subject makes no request for a churned resource, because such a run shows nothing.
//!
//! Owns the time at which the run is ended. If a fault has begun, the fault may prevent requests; then the run goes on,
//! and the judges decide.

use std::time::{Duration, Instant};

use super::{Conductor, Halt};
use crate::run::audited::AuditedRequests;
use crate::run::plane::Plane;
use crate::run::ready::{Ready, Requested};
use crate::scenario::Scenario;

/// Minimum time after the subject's start. A controller that waits for a dead leader's lease gets the lease after 15 s.
const AFTER: Duration = Duration::from_secs(20);
/// Minimum time after the subject's readiness, because a program may list objects only after it reports readiness.
const AFTER_READY: Duration = Duration::from_secs(10);
/// Interval of the checks whether the subject made its first request.
const EVERY: Duration = Duration::from_millis(500);
/// Maximum number of resources that the error message names.
const NAMED_MAX: usize = 8;

/// Waits for the subject's first request for a churned resource.
pub(super) struct Unasked {
    told: AuditedRequests,
    started: Instant,
    due: Instant,
    next: Instant,
}

impl Unasked {
    /// Starts to wait for a subject that was started at `started` and is now ready. `None` if the subject need not
    /// request any churned resource.
    pub(super) fn of(scenario: &Scenario, ready: &Ready, told: AuditedRequests, started: Instant) -> Option<Self> {
        // With `ready: {request: first}` the subject may ask for judged resources at any time.
        let content = matches!(ready, Ready::FirstRequest { any: true, .. });
        let is_asked = !scenario.churn.is_empty() && !scenario.subject.watches_nothing() && told.judges_anything();
        // A subject that was accepted as ready after a time limit has not reported readiness.
        let after = if matches!(ready, Ready::FirstRequest { .. }) { Duration::ZERO } else { AFTER_READY };
        let now = Instant::now();
        (is_asked && !content).then(|| Self { told, started, due: (started + AFTER).max(now + after), next: now })
    }

    /// Returns the message if the time is over without a request for a churned resource, and whether the subject has
    /// made such a request.
    fn look(&mut self, plane: &Plane, now: Instant) -> (Option<String>, bool) {
        if now < self.next {
            return (None, false);
        }
        self.next = now + EVERY;
        // Unread parts of an audit log may contain requests for churned resources.
        if self.told.requests_so_far(plane) == Requested::Judged || !self.told.is_whole() {
            return (None, true);
        }
        let said = (now >= self.due)
            .then(|| sentence(now - self.started, self.told.judged_resources(), &self.told.kinds_asked(plane)));
        (said, false)
    }
}

impl Conductor<'_> {
    /// Ends the run if the subject made no request for a churned resource in time.
    pub(super) fn unasked(&mut self) -> Result<(), Halt> {
        let Some(unasked) = &mut self.unasked else { return Ok(()) };
        let (said, has_asked) = unasked.look(&self.world.plane, Instant::now());
        let Some(stage) = &self.stage else { return Ok(()) };
        // An observation proves that the subject saw a version in some way. Effects of a fault are for the judges.
        if has_asked || stage.faults.commits_before.is_some() || stage.events.counts().observations > 0 {
            self.unasked = None;
            return Ok(());
        }
        said.map_or(Ok(()), |said| Err(Halt::NeverAsked(said)))
    }
}

/// The message for the user: requested kinds with their verbs, churned resources, and the remedy.
fn sentence(passed: Duration, churned: &[String], kinds: &[(String, Vec<String>)]) -> String {
    let is_followed = |verbs: &[String]| verbs.iter().any(|verb| verb == "list" || verb == "watch");
    let locks = |kind: &str| kind == "leases.coordination.k8s.io";
    let named = |kinds: &[(String, Vec<String>)]| {
        let mut named: Vec<String> =
            kinds.iter().take(NAMED_MAX).map(|(kind, verbs)| format!("{kind} ({})", verbs.join(", "))).collect();
        if kinds.len() > NAMED_MAX {
            named.push(format!("{} more", kinds.len() - NAMED_MAX));
        }
        named.join(", ")
    };
    let asked = if kinds.is_empty() {
        "It requested no objects at all.".to_owned()
    } else {
        format!("It requested {}.", named(kinds))
    };
    let followed: Vec<&str> =
        kinds.iter().filter(|(_, verbs)| is_followed(verbs)).map(|(kind, _)| kind.as_str()).collect();
    let remedy = if !kinds.is_empty() && kinds.iter().all(|(kind, _)| locks(kind)) {
        "It waits to become the leader: check that it may write its Lease, and that the Lease's namespace exists."
            .to_owned()
    } else if followed.is_empty() {
        "Its output may show the reason: a flag that turns the controller on, a definition, a namespace.".to_owned()
    } else {
        format!(
            "Churn the kinds that it follows (`churn: {{resource: …}}` with {}), or find the flag, definition or namespace that makes it \
             follow the churned kind.",
            followed.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(" or ")
        )
    };
    format!(
        "the subject counts as ready, but within {} s it requested no churned objects ({}). {asked} {remedy} If it asks later than that, \
         write `ready: {{request: first}}` in `subject`.",
        passed.as_secs(),
        churned.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kinds: &[(&str, &[&str])]) -> String {
        let kinds: Vec<(String, Vec<String>)> = kinds
            .iter()
            .map(|(kind, verbs)| ((*kind).to_owned(), verbs.iter().map(ToString::to_string).collect()))
            .collect();
        sentence(AFTER, &["widgets.example.com".to_owned()], &kinds)
    }

    #[test]
    fn it_says_what_was_asked_what_is_churned_and_what_to_do() {
        let other = message(&[("gadgets.example.com", &["list", "watch"]), ("leases.coordination.k8s.io", &["get"])]);
        assert!(
            other.starts_with(
                "the subject counts as ready, but within 20 s it requested no churned objects (widgets.example.com). It requested \
                 gadgets.example.com (list, watch), leases.coordination.k8s.io (get). Churn the kinds that it follows"
            ),
            "{other}"
        );
        assert!(other.contains("`churn: {resource: …}` with gadgets.example.com"), "{other}");
        let standby = message(&[("leases.coordination.k8s.io", &["create", "get"])]);
        assert!(standby.contains("It waits to become the leader: check that it may write its Lease"), "{standby}");
        let silent = message(&[]);
        assert!(silent.contains("It requested no objects at all. Its output may show the reason"), "{silent}");
        let many: Vec<String> = (0..20).map(|number| format!("kind{number}")).collect();
        let many: Vec<(&str, &[&str])> = many.iter().map(|kind| (kind.as_str(), &["get"][..])).collect();
        assert!(message(&many).contains("kind7 (get), 12 more."), "{}", message(&many));
    }
}
