//! Tests of the audit, without sockets: versions that a list replaced, and versions that watches sent.

use std::sync::atomic::{AtomicU64, Ordering};

use mock_store::{Expect, Facts, Identity, Limits, Store};

use super::*;

fn scope() -> Scope {
    Scope { resource: ResourceId(1), namespace: None, labels: None, fields: None }
}

fn wanted(revision: u64) -> Wanted<'static> {
    Wanted { revision, name: None, at_us: 0 }
}

fn opened(audit: &UserAudit, start: u64, initial: bool, flushes: &Arc<AtomicU64>) -> Arc<Delivered> {
    audit.watch_opened(&scope(), &"things".into(), start, initial, flushes.clone(), 0)
}

#[test]
fn a_relist_closes_a_gap_and_a_resume_does_not() {
    let (audit, flushes) = (UserAudit::default(), Arc::new(AtomicU64::new(0)));
    audit.listed(scope(), 10);
    let delivered = opened(&audit, 10, false, &flushes);
    let gap = |after, through| Gap { resource: "things".into(), after, through };
    assert_eq!(audit.take_gaps(), [gap(0, 10)]);
    delivered.handed(15, 1);
    flushes.fetch_add(1, Ordering::Release);
    let again = opened(&audit, 15, false, &flushes);
    assert_eq!(audit.take_gaps(), []);
    again.handed(18, 2);
    audit.listed(scope(), 30);
    opened(&audit, 30, false, &flushes);
    assert_eq!(audit.take_gaps(), [gap(15, 30)], "18 was handed over and never flushed");
}

#[test]
fn a_snapshot_in_the_stream_counts_when_its_end_was_delivered() {
    let (audit, flushes) = (UserAudit::default(), Arc::new(AtomicU64::new(0)));
    opened(&audit, 10, true, &flushes);
    let second = opened(&audit, 20, true, &flushes);
    let gaps: Vec<_> = audit.take_gaps().into_iter().map(|gap| (gap.after, gap.through)).collect();
    assert_eq!(gaps, [(0, 10), (0, 20)]);
    second.handed(20, 1);
    flushes.fetch_add(1, Ordering::Release);
    opened(&audit, 25, true, &flushes);
    let gaps: Vec<_> = audit.take_gaps().into_iter().map(|gap| (gap.after, gap.through)).collect();
    assert_eq!(gaps, [(20, 25)]);
}

/// A client need not report versions that came and went during the initial events: client-go's reflector replaces its
/// store only at the closing bookmark.
#[test]
fn what_came_and_went_before_the_initial_events_were_closed_need_not_be_told() {
    let (audit, flushes) = (UserAudit::default(), Arc::new(AtomicU64::new(0)));
    let watch = opened(&audit, 10, true, &flushes);
    watch.handed(12, 1);
    flushes.fetch_add(1, Ordering::Release);
    audit.snapshot_closed(&"things".into(), &watch, 12);
    let gaps: Vec<_> = audit.take_gaps().into_iter().map(|gap| (gap.after, gap.through)).collect();
    assert_eq!(gaps, [(0, 10), (0, 12)]);
}

#[test]
fn sent_beats_withheld() {
    let audit = UserAudit::default();
    let resource = ResourceId(1);
    assert_eq!(audit.delivery(resource, 7), Delivery::NotSent);
    audit.withheld(1, resource, 7, 5, FaultId(3));
    assert_eq!(audit.delivery(resource, 7), Delivery::Withheld { fault: FaultId(3) });
    let line = Bytes::from_static(b"{}\n");
    audit.sent(2, resource, 9, std::iter::once((7, &line)));
    audit.withheld(3, resource, 7, 11, FaultId(3));
    assert_eq!(audit.delivery(resource, 7), Delivery::Sent { watch: 2, at_us: 9 });
    assert_eq!(audit.wire(&wanted(7), 2), [WireLine { watch: 2, at_us: 9, revision: 7, text: "{}".to_owned() }]);
    let both = audit.sendings(resource, &[6, 7], 0);
    assert_eq!(
        both.iter().map(|one| (one.watch, one.withheld_by)).collect::<Vec<_>>(),
        [(1, Some(FaultId(3))), (2, None), (3, Some(FaultId(3)))]
    );
}

#[test]
fn a_batch_counts_as_each_of_its_events() {
    const TEXT: &str = r#"{"type":"ADDED","object":{}}"#;
    let mut store = Store::new(Limits {
        history_max_events: 100,
        history_max_bytes: usize::MAX,
        history_max_age_us: u64::MAX,
        commits_max: 1,
    });
    let resource = ResourceId(1);
    let mut event = |name: &str| {
        let [resource_name, namespace, name, uid] = ["things", "", name, name].map(Arc::from);
        let identity = Arc::new(Identity { resource, resource_name, namespace, name, uid });
        store.put(&identity, Expect::Absent, &mut serde_json::json!({}), Facts::default(), 0).unwrap()
    };
    let events = [event("a"), event("b"), event("c")];
    let (audit, batch) = (UserAudit::default(), Arc::new(Batch::of(&events)));
    audit.sent_batch(1, resource, 5, &batch);
    audit.sent_batch(2, resource, 6, &batch);
    audit.withheld(3, resource, 4, 7, FaultId(1));
    for revision in 2..=4 {
        assert_eq!(audit.delivery(resource, revision), Delivery::Sent { watch: 2, at_us: 6 });
    }
    assert_eq!(audit.delivery(resource, 5), Delivery::NotSent);
    assert_eq!(audit.delivery(ResourceId(2), 3), Delivery::NotSent);
    let line = |watch, at_us, revision| WireLine { watch, at_us, revision, text: TEXT.to_owned() };
    assert_eq!(audit.wire(&wanted(3), 1), [line(1, 5, 2), line(1, 5, 3), line(1, 5, 4)]);
    let later = Wanted { at_us: 9, ..wanted(3) };
    assert_eq!(audit.wire(&later, 0), [line(2, 6, 3)], "the watch that is nearest to the moment");
    let twice: Vec<_> = audit.sendings(resource, &[1, 3, 4], 0).iter().map(|one| (one.revision, one.watch)).collect();
    assert_eq!(twice, [(3, 1), (4, 1), (3, 2), (4, 2), (4, 3)]);
    audit.rewound(3);
    assert_eq!(audit.delivery(resource, 3), Delivery::Sent { watch: 2, at_us: 6 });
    assert_eq!(audit.delivery(resource, 4), Delivery::NotSent);
    // The oldest of many versions are forgotten, and their lines long before.
    for _ in 0..50_000 {
        audit.sent_batch(9, ResourceId(2), 8, &batch);
    }
    assert_eq!(audit.delivery(resource, 3), Delivery::NotSent);
    assert_eq!(audit.wire(&wanted(3), 5000).len(), 1023);
}

#[test]
fn asking_again_for_what_is_gone_is_noticed() {
    let audit = UserAudit::default();
    audit.gone(ResourceId(1), 5, true);
    audit.gone(ResourceId(1), 5, false);
    audit.gone(ResourceId(2), 5, false);
    let traffic = audit.traffic(0);
    assert_eq!((traffic.gone_http, traffic.gone_stream, traffic.gone_repeated), (1, 2, 1));
}
