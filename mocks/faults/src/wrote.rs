//! Faults that begin with a write of the subject.
//!
//! Owns the awaited writes with their counters, and the order of events around such a write. A fault of the API server
//! begins inside the request, so that the effect is the same in each run. For any other fault the request waits until
//! its player has begun the fault. Does no HTTP.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Fault, FaultId, Side, Wrote};

/// Longest time that a request waits until another program has begun a fault.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// A write for which a fault waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    pub fault: FaultId,
    /// The time of the write in microseconds since the epoch.
    pub at_us: u64,
    /// Whether the engine has begun the fault. If not, the caller begins the fault, then calls
    /// [`super::Faults::began`].
    pub begun: bool,
}

/// The awaited writes of one engine.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    inner: Mutex<Inner>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    triggers: Vec<Trigger>,
    fired: VecDeque<Fired>,
    /// The faults for which requests wait.
    held: BTreeSet<FaultId>,
}

#[derive(Debug)]
struct Trigger {
    id: FaultId,
    fault: Fault,
    seen: u64,
}

impl Awaited {
    /// Awaits the writes of these faults, in addition to earlier ones. Faults without such a trigger are ignored.
    pub fn add(&self, faults: impl IntoIterator<Item = (FaultId, Fault)>) {
        let awaits = |fault: &Fault| fault.when.as_ref().is_some_and(|when| when.write.is_some());
        let triggers = faults.into_iter().filter(|(_, fault)| awaits(fault));
        self.inner.lock().triggers.extend(triggers.map(|(id, fault)| Trigger { id, fault, seen: 0 }));
    }

    pub fn is_empty(&self) -> bool {
        self.inner.lock().triggers.is_empty()
    }

    /// Counts a write on one of its sides, and returns the faults whose time has come.
    pub fn count(&self, wrote: &Wrote<'_>, side: Side) -> Vec<(FaultId, Fault)> {
        let mut inner = self.inner.lock();
        let mut due = Vec::new();
        for trigger in &mut inner.triggers {
            let Some(when) = &trigger.fault.when else { continue };
            let is_of_agent = trigger.fault.user_agent.as_deref().is_none_or(|part| wrote.user_agent.contains(part));
            let is_meant =
                is_of_agent && when.side() == side && when.write.as_ref().is_some_and(|write| write.matches(wrote));
            trigger.seen += u64::from(is_meant);
            if is_meant && trigger.seen == when.occurrence() {
                due.push((trigger.id, trigger.fault.clone()));
            }
        }
        due
    }

    /// Records that a write has started a fault. If `holds`, requests may wait for the fault.
    pub fn fire(&self, fired: Fired, holds: bool) {
        let mut inner = self.inner.lock();
        if holds {
            inner.held.insert(fired.fault);
        }
        inner.fired.push_back(fired);
    }

    pub fn has_fired(&self) -> bool {
        !self.inner.lock().fired.is_empty()
    }

    pub fn take(&self) -> Vec<Fired> {
        self.inner.lock().fired.drain(..).collect()
    }

    /// Lets the requests continue that wait for a fault.
    pub fn release(&self, id: FaultId) {
        self.inner.lock().held.remove(&id);
        self.released.notify_waiters();
    }

    /// Waits until all these faults have begun, at most [`BEGINS_WITHIN`].
    pub async fn begun(&self, ids: &[FaultId]) {
        let wait = async {
            loop {
                let mut released = std::pin::pin!(self.released.notified());
                released.as_mut().enable();
                if ids.iter().all(|id| !self.inner.lock().held.contains(id)) {
                    return;
                }
                released.await;
            }
        };
        // A player that takes longer begins the fault later; the fault's hits show whether it had an effect.
        let _ = tokio::time::timeout(BEGINS_WITHIN, wait).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::{Faults, Instead, On, RequestFacts};
    use super::*;

    fn fault(keys: serde_json::Value) -> Fault {
        let fault: Fault = serde_json::from_value(keys).unwrap();
        fault.check().unwrap();
        fault
    }

    fn create<'a>(user: &'a str, name: &'a str) -> Wrote<'a> {
        Wrote { user, user_agent: "test/1", verb: On::Create, resource: "pods", subresource: "", name, fields: &[] }
    }

    fn refuses(faults: &Faults) -> bool {
        let (user, resource, user_agent) = (&"jane".into(), &"pods".into(), &"test".into());
        let on = On::Create;
        let asked = RequestFacts { user, resource, user_agent, on, query: "", endpoint: 0, connection: 1 };
        matches!(faults.injection(&asked).instead, Some(Instead::Refusal(_)))
    }

    /// Only writes with the fault's user agent count.
    #[tokio::test]
    async fn writes_of_other_programs_do_not_count() {
        let faults = Faults::new(1);
        faults.target_everybody();
        let one = fault(
            json!({"name": "http-error", "on": "create", "userAgent": "manager", "when": {"write": {"verb": "create", "resource": "pods"}, "side": "before"}}),
        );
        faults.await_writes([(FaultId(3), one)]);
        faults.written(&create("jane", "a"), Side::Before).await;
        assert!(faults.take_fired().is_empty());
        faults.written(&Wrote { user_agent: "my-manager/2", ..create("jane", "b") }, Side::Before).await;
        assert_eq!(faults.take_fired().len(), 1);
    }

    /// A fault with `side: before` affects the write that it waits for, counted among the matching writes of target
    /// users only.
    #[tokio::test]
    async fn a_fault_begins_with_the_awaited_write() {
        let faults = Faults::new(1);
        faults.target_users(["jane"]);
        let when = json!({"write": {"verb": "create", "resource": "pods"}, "occurrence": 2, "side": "before"});
        let one = fault(json!({"name": "http-error", "on": "create", "count": 1, "when": when}));
        faults.await_writes([(FaultId(7), one)]);
        assert!(!faults.never_any());
        let mut seen = Vec::new();
        for user in ["jane", "joe", "jane", "jane"] {
            faults.written(&create(user, "a"), Side::Before).await;
            seen.push(user == "jane" && refuses(&faults));
            faults.written(&create(user, "a"), Side::After).await;
        }
        assert_eq!(seen, [false, false, true, false]);
        let fired = faults.take_fired();
        assert_eq!(fired.iter().map(|fired| (fired.fault, fired.begun)).collect::<Vec<_>>(), [(FaultId(7), true)]);
        assert!(faults.take_fired().is_empty());
    }

    /// If another program must begin the fault, the request waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_a_fault_of_another_program() {
        let faults = Arc::new(Faults::new(1));
        faults.target_everybody();
        let jump = fault(json!({"name": "clock-jump", "ahead": "1h", "when": {"write": {}}}));
        faults.await_writes([(FaultId(0), jump)]);
        let asked = faults.clone();
        let write = tokio::spawn(async move { asked.written(&create("jane", "a"), Side::After).await });
        faults.struck().await;
        let fired = faults.take_fired();
        assert!(!fired[0].begun && !write.is_finished());
        faults.began(fired[0].fault);
        tokio::time::timeout(Duration::from_millis(1), write).await.unwrap().unwrap();
        // The next matching write waits for nothing.
        faults.written(&create("jane", "b"), Side::After).await;
        assert!(faults.take_fired().is_empty());
    }

    /// A fault that nobody begins delays the request only for a limited time.
    #[tokio::test(start_paused = true)]
    async fn a_request_does_not_wait_for_ever() {
        let faults = Faults::new(1);
        faults.target_everybody();
        let jump = fault(json!({"name": "clock-jump", "ahead": "1h", "when": {"write": {}}}));
        faults.await_writes([(FaultId(0), jump)]);
        let start = tokio::time::Instant::now();
        faults.written(&create("jane", "a"), Side::After).await;
        assert_eq!(start.elapsed(), BEGINS_WITHIN);
    }
}
