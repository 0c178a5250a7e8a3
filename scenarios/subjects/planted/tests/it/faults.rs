//! The correct client through every other fault of the mock API server.

use std::time::Duration;

use crate::start;

/// How long a fault lasts when nothing else ends it.
const LASTS: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(30);

/// Armed while the client watches; writes before, during and after.
async fn survives(arguments: &[&str], fault: &str) -> Result<(), String> {
    let world = start(arguments).await;
    world.until_watching().await;
    let id = world.fault(1, fault);
    // What a fault on lists or on new streams needs to have something to hit.
    let cut = world.fault(2, "{name: watch-reset, count: 1}");
    world.churn("during").await;
    world.until_hit(id).await;
    let _ = world.agrees_within(LASTS).await;
    world.server.faults().end(cut);
    world.server.faults().end(id);
    world.churn("after").await;
    if !world.agrees_within(PATIENCE).await {
        return Err(format!("{arguments:?} did not survive {fault}: {}", world.difference().await));
    }
    Ok(())
}

async fn survives_over_both(fault: &str) -> Result<(), String> {
    let (one, two) = (["--http", "1", "--relist", "2s"], ["--http", "2", "--relist", "2s"]);
    if fault.contains("goaway") || fault.contains("no-pong") {
        return survives(&two, fault).await;
    }
    let (one, two) = tokio::join!(survives(&one, fault), survives(&two, fault));
    one.and(two)
}

macro_rules! survived {
    ($($group:ident: $($fault:literal),+;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        #[ignore = "slow"]
        async fn $group() {
            let mut stories = tokio::task::JoinSet::new();
            $(stories.spawn(survives_over_both($fault));)+
            let failed: Vec<String> = stories.join_all().await.into_iter().filter_map(Result::err).collect();
            assert!(failed.is_empty(), "{failed:#?}");
        })+
    };
}

survived! {
    faults_on_requests:
        "{name: http-error, on: any, status: 500}",
        "{name: http-error, on: watch, status: 429, retryAfter: 1s}",
        "{name: http-error, on: list, status: 503, body: empty}",
        "{name: no-answer, on: watch}",
        "{name: no-answer, on: list}",
        "{name: delay-answer, on: list, delay: 800ms}",
        "{name: hold-headers, delay: 6s}",
        "{name: empty-200}",
        "{name: stale-view}",
        "{name: forced-pages, on: list}",
        "{name: unordered, on: list}",
        "{name: wrong-content-type, on: list, contentType: text/html}";
    faults_on_streams:
        "{name: watch-end}",
        "{name: watch-eof, midLine: true}",
        "{name: error-event, code: 500, then: hold}",
        "{name: error-event, code: 410, then: end}",
        "{name: event-delayed, delay: 700ms}",
        "{name: event-repeated, events: 3}",
        "{name: out-of-order}",
        "{name: truncated-line}",
        "{name: split, bytes: 7B}",
        "{name: merge-lines, events: 3}",
        "{name: hold-buffer, bytes: 4KiB}",
        "{name: slow-drip, rate: 200B/s}",
        "{name: bookmark-ahead}",
        "{name: no-bookmarks}";
    faults_on_connections:
        "{name: freeze}",
        "{name: no-pong}",
        "{name: goaway}";
}
