//! With a mistake: what it breaks is not heard, and the same story without it is.

use std::time::Duration;

use crate::world::{SUBJECT, World};

/// Longer than the correct client needs for any of these faults on an idle machine.
const DEAD_AFTER: Duration = Duration::from_secs(9);

/// Plays a fault and writes: the client with the mistake must not come to know of it, the one without must.
async fn shows(mistaken: &[&str], correct: &[&str], fault: &str) {
    let (dead, alive) = tokio::join!(played(mistaken, fault), played(correct, fault));
    alive.until_told().await;
    assert!(!dead.agrees_within(DEAD_AFTER).await, "{mistaken:?} heard everything");
}

async fn played(arguments: &[&str], fault: &str) -> World {
    let world = World::start(arguments).await;
    world.until_watching().await;
    let fault = world.fault(1, fault);
    world.churn("after").await;
    world.until_hit(fault).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn every_fault_finds_its_mistake() {
    tokio::join!(
        shows(&["--mistake", "no-read-timeout"], &[], "{name: silent-watch, at: 0s}"),
        shows(
            &["--mistake", "expects-410-only-in-http-status"],
            &[],
            "{name: watch-410, at: 0s, for: 1m, form: stream}"
        ),
        shows(&["--mistake", "expects-410-only-in-stream"], &[], "{name: watch-410, at: 0s, for: 1m, form: http}"),
        shows(
            &["--mistake", "never-relists"],
            &["--relist", "2s"],
            "{name: event-dropped, at: 0s, for: 1m, change: deleted, count: 1}"
        ),
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_name_that_is_used_again_is_an_update_to_who_keeps_names() {
    let world = World::start(&["--mistake", "replaces-by-name"]).await;
    world.until_watching().await;
    world.fault(1, "{name: watch-410, at: 0s, form: http}");
    world.admin.delete("early").await;
    world.admin.create("early").await;
    world.admin.create("sentinel").await;
    world.until_heard("sentinel", "added").await;
    let told = world.heard.lock().clone();
    let uids: std::collections::BTreeSet<_> =
        told.iter().filter(|line| line["name"] == "early").map(|line| line["uid"].to_string()).collect();
    // Whether the list or the watch was first decides if there was a gap; in the gap it is a swap.
    if !world.has_heard("early", "deleted") {
        assert!(uids.len() == 2 && world.has_heard("early", "modified"), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_watch_that_is_not_closed_stays_open() {
    let world = World::start(&["--mistake", "watch-not-closed"]).await;
    world.until_watching().await;
    world.fault(1, "{name: silent-watch, at: 0s}");
    world.churn("after").await;
    world.until("nothing leaks", |world| world.server.traffic(SUBJECT).watches_open > 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_client_that_gave_up_is_alive_and_asks_nothing() {
    let mut world = World::start(&["--mistake", "exits-on-410"]).await;
    world.until_watching().await;
    world.fault(1, "{name: watch-410, at: 0s, for: 1m, form: http}");
    world.until("the watch goes on", |world| world.server.traffic(SUBJECT).watches_open == 0).await;
    world.churn("after").await;
    assert!(!world.agrees_within(Duration::from_secs(4)).await);
    assert!(world.client.try_wait().unwrap().is_none(), "the process ended");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_restored_backup_is_not_believed_by_who_knows_better() {
    use mock_faults::{Newer, Watches};
    let world = World::start(&["--mistake", "ignores-rewind"]).await;
    let backup = world.server.revision();
    world.churn("undone").await;
    world.until_told().await;
    world.server.rewind(backup, Newer::Silent, Watches::Kept).unwrap();
    world.admin.create("after").await;
    assert!(!world.agrees_within(DEAD_AFTER).await);
    assert!(!world.has_heard("after", "added"));
}
