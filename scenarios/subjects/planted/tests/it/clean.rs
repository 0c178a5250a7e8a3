//! Without a mistake: everything is heard.

use crate::start;
use crate::world::SUBJECT;

/// 200 writes through every fault that a watch can meet.
async fn hears_everything(arguments: &[&str]) {
    let world = start(arguments).await;
    for round in 0..4 {
        world.churn(&format!("calm-{round}")).await;
    }
    world.until_told().await;

    world.until_watching().await;
    let reset = world.fault(1, "{name: watch-reset, at: 0s}");
    for round in 0..2 {
        world.churn(&format!("reset-{round}")).await;
    }
    world.until_hit(reset).await;
    world.server.faults().end(reset);
    world.until_told().await;

    for (id, form) in [(2, "http"), (3, "stream")] {
        world.until_watching().await;
        // Cut first, so that there is something to catch up with when the revision is too old.
        let gone = world.fault(id, &format!("{{name: watch-410, at: 0s, form: {form}}}"));
        world.churn(form).await;
        world.until_told().await;
        world.server.faults().end(gone);
    }

    world.until_watching().await;
    let silent = world.fault(4, "{name: silent-watch, at: 0s}");
    world.churn("silent").await;
    world.until_hit(silent).await;
    world.until_told().await;
    world.server.faults().end(silent);

    world.until_watching().await;
    let dropped = world.fault(5, "{name: event-dropped, at: 0s, for: 1m, change: deleted, count: 1}");
    world.churn("dropped").await;
    world.until_hit(dropped).await;
    // Only the periodic list can heal it.
    world.until_told().await;
    assert_eq!(world.server.traffic(SUBJECT).watches_open, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_heard_over_http_1() {
    hears_everything(&["--http", "1", "--relist", "6s"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn everything_is_heard_over_http_2() {
    hears_everything(&["--http", "2", "--relist", "6s"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn everything_is_heard_with_streaming_lists() {
    hears_everything(&["--streaming-lists", "--relist", "6s"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_handler_writes_once_for_each_generation() {
    let world = start(&["--handler", "status", "--handler-delay", "5ms"]).await;
    world.churn("handled").await;
    world.until_told().await;
    world.admin.update("handled-7", "again").await;
    world.until_told().await;
    let object = world.admin.object("handled-7").await;
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn a_restored_backup_is_noticed_and_believed() {
    use mock_faults::{Newer, Watches};
    let world = start(&["--relist", "3s", "--rewind-patience", "2s"]).await;
    world.churn("before").await;
    world.until_told().await;
    let backup = world.server.revision();
    world.churn("undone").await;
    world.until_told().await;
    world.server.rewind(backup, Newer::Silent, Watches::Kept).unwrap();
    world.until_told().await;
    world.churn("after").await;
    world.until_told().await;
}
