//! With a mistake: what it breaks is not heard, and the same story without it is.

use std::time::Duration;

use crate::start;
use crate::world::SUBJECT;

/// Longer than the correct client needs for any of these faults on an idle machine.
const DEAD_AFTER: Duration = Duration::from_secs(9);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_client_that_gave_up_is_alive_and_asks_nothing() {
    let mut world = start(&["--mistake", "exits-on-410"]).await;
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
    let world = start(&["--mistake", "ignores-rewind"]).await;
    let backup = world.server.revision();
    world.churn("undone").await;
    world.until_told().await;
    world.server.rewind(backup, Newer::Silent, Watches::Kept).unwrap();
    world.admin.create("after").await;
    assert!(!world.agrees_within(DEAD_AFTER).await);
    assert!(!world.has_heard("after", "added"));
}
