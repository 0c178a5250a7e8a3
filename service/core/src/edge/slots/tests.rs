//! Tests of the choice of the connection that closes for a new one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::advance;

use super::{Limits, Reason, Slot, Slots};

fn slots() -> Arc<Slots> {
    Slots::new(Limits { connections: 6, connections_per_peer: 4, handshakes_per_peer: 2 })
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn connected(slots: &Arc<Slots>, last: u8) -> Slot {
    let (slot, gone) = slots.admit(address(last)).unwrap();
    assert_eq!(gone, None);
    slot.established();
    slot
}

fn goes(slot: &Slot) -> bool {
    slot.state.given_up.is_cancelled()
}

#[tokio::test(start_paused = true)]
async fn the_oldest_idle_connection_of_the_greatest_holder_makes_room() {
    let slots = slots();
    let honest: Vec<_> = (0..2).map(|_| connected(&slots, 1)).collect();
    for slot in &honest {
        drop(slot.calls().begin());
    }
    advance(Duration::from_secs(1)).await;
    let mut crowd = Vec::new();
    for _ in 0..4 {
        crowd.push(connected(&slots, 2));
        drop(crowd.last().unwrap().calls().begin());
        advance(Duration::from_secs(1)).await;
    }
    let busy = crowd[0].calls().begin();
    let (_newcomer, gone) = slots.admit(address(3)).unwrap();
    assert_eq!(gone, Some(Reason::Full));
    assert_eq!(crowd.iter().map(goes).collect::<Vec<_>>(), [false, true, false, false], "the first one works");
    assert!(!honest.iter().any(goes), "they are older, but those of a peer that has fewer");
    assert_eq!(slots.open(), 6);
    drop(busy);
}

/// Of eight connections that became idle within a millisecond, the oldest is closed first, although the map has no
/// order.
#[tokio::test]
async fn the_oldest_goes_also_when_all_came_to_rest_within_a_millisecond() {
    let slots = Slots::new(Limits { connections: 8, connections_per_peer: 8, handshakes_per_peer: 8 });
    let crowd: Vec<_> = (0..8).map(|_| connected(&slots, 1)).collect();
    for slot in &crowd {
        drop(slot.calls().begin());
    }
    let (_newcomer, gone) = slots.admit(address(2)).unwrap();
    assert_eq!((gone, goes(&crowd[0])), (Some(Reason::Full), true));
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_call_goes_before_one_that_brought_some() {
    let slots = slots();
    let used = connected(&slots, 1);
    drop(used.calls().begin());
    advance(Duration::from_mins(1)).await;
    let silent: Vec<_> = (0..3).map(|_| connected(&slots, 1)).collect();
    advance(Duration::from_secs(2)).await;
    let (_newcomer, gone) = slots.admit(address(1)).unwrap();
    assert_eq!(gone, Some(Reason::Peer));
    assert!(!goes(&used));
    assert_eq!(silent.iter().filter(|slot| goes(slot)).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_handshakes_make_room_for_new_ones_and_young_ones_do_not() {
    let slots = slots();
    let (first, _) = slots.admit(address(1)).unwrap();
    let (second, _) = slots.admit(address(1)).unwrap();
    assert_eq!(slots.admit(address(1)).unwrap_err(), Reason::Handshakes);
    assert!(slots.admit(address(2)).is_ok(), "another peer is not concerned");
    second.established();
    advance(Duration::from_secs(2)).await;
    let (third, gone) = slots.admit(address(1)).unwrap();
    assert_eq!((gone, goes(&first)), (None, false), "one of two is under way");
    let (_fourth, gone) = slots.admit(address(1)).unwrap();
    assert_eq!((gone, goes(&first), goes(&third)), (Some(Reason::Handshakes), true, false));
}

#[tokio::test(start_paused = true)]
async fn when_all_are_at_work_a_newcomer_is_refused_and_counts_come_back() {
    let slots = slots();
    let open: Vec<_> = (0..6).map(|index| connected(&slots, index % 2)).collect();
    let calls: Vec<_> = open.iter().map(|slot| slot.calls().begin()).collect();
    advance(Duration::from_secs(9)).await;
    assert_eq!(slots.admit(address(7)).unwrap_err(), Reason::Full);
    drop(calls);
    let (newcomer, _) = slots.admit(address(7)).unwrap();
    drop((open, newcomer));
    assert_eq!(slots.open(), 0);
    assert!(slots.table.lock().counts.is_empty() && slots.table.lock().leaving == 0);
}
