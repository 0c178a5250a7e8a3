//! How faults affect the delivery of versions to the subject: some versions are delayed, others are lost.
//!
//! Owns the times at which faults were active, and decides whether a fault explains a late or missing version. Does no
//! I/O: the traffic is an argument. The ledger decides whether the subject is at fault ([`reports::ledger`] has the
//! rules).

use mock_faults::{Family, Fault, Name};
use mock_kube::Sending;
use reports::record::is_unsure;

/// Maximum number of time spans of faults that are kept; the oldest ended span is dropped first. Random faults of a hundred hours have six
/// thousand spans.
const SPANS_MAX: usize = 1024;

/// The faults of a scenario, and the times at which each was active.
pub(super) struct Arrivals<'a> {
    faults: &'a [Fault],
    spans: Vec<Span>,
    gives_back: bool,
}

struct Span {
    index: usize,
    from_ms: u64,
    to_ms: Option<u64>,
    hit: bool,
}

impl<'a> Arrivals<'a> {
    pub(super) fn of(faults: &'a [Fault]) -> Self {
        Self { faults, spans: Vec::new(), gives_back: faults.iter().any(gives_back) }
    }

    pub(super) fn began(&mut self, index: usize, now_ms: u64) {
        if !self.faults.get(index).is_some_and(disturbs_events) {
            return;
        }
        if self.spans.len() >= SPANS_MAX {
            let oldest = self.spans.iter().position(|span| span.to_ms.is_some()).unwrap_or(0);
            self.spans.remove(oldest);
        }
        self.spans.push(Span { index, from_ms: now_ms, to_ms: None, hit: false });
    }

    /// Records that fault number `index` had a hit.
    pub(super) fn hit(&mut self, index: usize) {
        self.spans.iter_mut().rev().find(|span| span.index == index).into_iter().for_each(|span| span.hit = true);
    }

    pub(super) fn ended(&mut self, index: usize, now_ms: u64) {
        let open = self.spans.iter_mut().rev().find(|span| span.index == index && span.to_ms.is_none());
        if let Some(span) = open {
            span.to_ms = Some(now_ms);
        }
    }

    /// Whether the traffic must be read to learn how faults delayed an object's overdue versions. With `ends`, the
    /// object was deleted; otherwise the subject reported an observation of the object.
    pub(super) fn matter(&self, ends: bool) -> bool {
        !self.spans.is_empty() && (ends || self.gives_back)
    }

    /// Whether an active fault explains that an overdue version never reached the subject. Any fault explains a version
    /// that was not sent. A fault that loses data also explains a version that was sent. A fault that ended more than
    /// one deadline ago explains nothing, because the subject should have relisted.
    pub(super) fn kept(&self, resource: &str, is_sent: bool, now_ms: u64, deadline_ms: u64) -> bool {
        self.spans.iter().filter(|span| span.hit && span.from_ms <= now_ms).any(|span| {
            let lately = span.to_ms.is_none_or(|to_ms| to_ms.saturating_add(deadline_ms) >= now_ms);
            let Some(fault) = self.faults.get(span.index) else { return false };
            lately && concerns(fault, resource) && (!is_sent || is_unsure(fault.name.as_str()))
        })
    }
}

/// The time at which a delayed version was sent on the same watch, without an action of the subject. `None` if the
/// version came on another watch, was never sent, or was not delayed.
pub(super) fn given_back(sendings: &[Sending]) -> Option<u64> {
    let first = sendings.iter().position(|sending| sending.withheld_by.is_none())?;
    let kept = sendings[..first].iter().any(|sending| sending.watch == sendings[first].watch);
    kept.then_some(sendings[first].at_us)
}

/// Whether a version was sent on any watch.
pub(super) fn is_sent(sendings: &[Sending]) -> bool {
    sendings.iter().any(|sending| sending.withheld_by.is_none())
}

/// Whether a fault sends delayed versions without a new watch of the subject.
fn gives_back(fault: &Fault) -> bool {
    fault.name == Name::EventDelayed
        || (fault.name == Name::SilentWatch && fault.keys::<mock_faults::SilentWatchKeys>().heals == Some(true))
}

/// Whether a fault affects a resource. A fault with a resource, such as `packages` or `packages.longhaul.dev`, affects
/// only this resource.
fn concerns(fault: &Fault, resource: &str) -> bool {
    let Some(named) = fault.resource.as_deref() else { return true };
    resource == named || resource.strip_prefix(named).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a fault can delay the time at which the subject sees a change.
pub(super) fn disturbs_events(fault: &Fault) -> bool {
    !matches!(fault.name.row().family, Family::Registry | Family::Subject) && fault.name != Name::NetworkPolicy
}

#[cfg(test)]
mod tests {
    use mock_faults::FaultId;

    use super::*;

    fn faults() -> Vec<Fault> {
        serde_json::from_value(serde_json::json!([
            {"name": "event-delayed", "at": "1s", "resource": "packages", "delay": "8s"},
            {"name": "freeze", "at": "1s", "resource": "packages"},
            {"name": "registry-error", "at": "1s"},
        ]))
        .unwrap()
    }

    fn sending(watch: u64, at_us: u64, withheld: bool) -> Sending {
        Sending { revision: 7, watch, at_us, withheld_by: withheld.then_some(FaultId(0)) }
    }

    /// A version counts as delayed by a fault only if the watch that delayed the version also sent it. A subject that
    /// had to open another watch could have opened it sooner.
    #[test]
    fn what_is_given_back_on_the_same_watch_came_then() {
        let (kept, sent) = (|watch| sending(watch, 1, true), |watch, at_us| sending(watch, at_us, false));
        assert_eq!(given_back(&[kept(3), sent(3, 8)]), Some(8));
        assert_eq!(given_back(&[kept(3), kept(4), sent(4, 9), sent(3, 12)]), Some(9));
        assert_eq!(given_back(&[kept(3), sent(4, 9)]), None, "another watch");
        assert_eq!(given_back(&[kept(3)]), None);
        assert_eq!(given_back(&[sent(2, 2), kept(3), sent(3, 8)]), None, "it had it already");
        assert_eq!(given_back(&[]), None);
    }

    #[test]
    fn a_fault_keeps_what_was_not_sent_while_it_lasts_and_a_deadline_after() {
        let faults = faults();
        let mut arrivals = Arrivals::of(&faults);
        assert!(!arrivals.matter(true));
        arrivals.began(0, 1000);
        let kept =
            |arrivals: &Arrivals<'_>, resource: &str, is_sent, now_ms| arrivals.kept(resource, is_sent, now_ms, 5000);
        assert!(!kept(&arrivals, "packages.longhaul.dev", false, 2000), "it was not hit");
        arrivals.hit(0);
        assert!(kept(&arrivals, "packages.longhaul.dev", false, 2000));
        assert!(!kept(&arrivals, "packages.longhaul.dev", true, 2000), "what was sent came");
        assert!(!kept(&arrivals, "pods", false, 2000) && !kept(&arrivals, "packagesets.longhaul.dev", false, 2000));
        arrivals.ended(0, 9000);
        assert!(kept(&arrivals, "packages.longhaul.dev", false, 14_000));
        assert!(!kept(&arrivals, "packages.longhaul.dev", false, 14_001), "it was for the subject to ask");
        // Under a fault that loses data, a sent version proves nothing.
        arrivals.began(1, 20_000);
        arrivals.hit(1);
        assert!(kept(&arrivals, "packages.longhaul.dev", true, 21_000));
        arrivals.began(2, 30_000);
        assert_eq!(arrivals.spans.len(), 2, "a sick registry keeps no event back");
        for index in 0..2 * SPANS_MAX {
            arrivals.began(0, index as u64);
            arrivals.ended(0, index as u64);
        }
        assert_eq!(arrivals.spans.len(), SPANS_MAX);
    }
}
