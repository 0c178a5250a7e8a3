//! Tests of requests that are sent again over HTTP/2. Only requests that the server has certainly not processed are
//! sent again, and only a few times: a review that is processed twice would be additional load.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loadgen::admission::Load;
use tokio::io::AsyncWriteExt as _;

use crate::frames::{DELETIONS, GOAWAY, RST_STREAM, Raw, Wire, assert_example};
use crate::server::until;
use crate::webhook::{assert_accounts, plan, run};

/// How often a server processed each review, by uid.
type Looked = Arc<Mutex<BTreeMap<String, u32>>>;

fn look(looked: &Looked, uid: &str) {
    *looked.lock().unwrap().entry(uid.to_owned()).or_default() += 1;
}

/// Sends GOAWAY with `last` as the last stream.
async fn go_away(wire: &mut Wire, last: u32) -> Option<()> {
    wire.send(GOAWAY, 0, 0, &[&last.to_be_bytes()[..], &[0; 4]].concat()).await
}

/// Reads until the client closes the connection, as a server that drains does.
async fn drain(mut wire: Wire) -> Option<()> {
    while wire.frame().await.is_some() {}
    None
}

/// A server sends GOAWAY with six requests in flight, of which it has processed three. The processed requests are
/// answered, the other three use the next connection, and no request is processed twice.
#[tokio::test]
async fn what_a_goaway_leaves_behind_is_sent_again_once() {
    // A graceful end names every stream first and then the processed ones (RFC 9113, section 6.8).
    for warned in [false, true] {
        let looked = Looked::default();
        let seen = Arc::clone(&looked);
        let server = Raw::start(move |mut wire| {
            let looked = Arc::clone(&seen);
            async move {
                wire.welcome().await?;
                let mut requests = Vec::new();
                for _ in 0..if wire.number == 1 { 6 } else { 3 } {
                    requests.push(wire.request().await?);
                }
                if wire.number == 1 {
                    if warned {
                        go_away(&mut wire, (1 << 31) - 1).await?;
                    }
                    go_away(&mut wire, 5).await?;
                    requests.truncate(3);
                }
                for (stream, uid) in requests {
                    assert!(stream <= 5, "{stream}");
                    look(&looked, &uid);
                    wire.allow(stream, &uid).await?;
                }
                drain(wire).await
            }
        })
        .await;
        let interval = server.meets(6, 20).await;
        assert_eq!((interval.counts.allowed, interval.errors()), (6, 0), "{:?}", interval.examples);
        assert_eq!(
            (interval.counts.sent, interval.counts.sent_again, server.accepted()),
            (6, 3, 2),
            "warned: {warned}"
        );
        assert!(looked.lock().unwrap().values().eq(&[1; 6]), "{looked:?}");
    }
}

/// A request that the server accepted before its GOAWAY and never answered may have been processed. A request without
/// an answer is an error, and is not sent again.
#[tokio::test]
async fn what_was_taken_is_never_sent_again() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        for _ in 0..4 {
            wire.request().await?;
        }
        go_away(&mut wire, 7).await?;
        wire.stream.shutdown().await.ok()?;
        drain(wire).await
    })
    .await;
    let interval = server.meets(4, 20).await;
    assert_eq!((interval.counts.http_error, interval.counts.sent_again), (4, 0), "{:?}", interval.examples);
    assert_example(&interval, "the connection broke before an answer: the server closed it (GOAWAY NO_ERROR)");
    assert_eq!(server.accepted(), 1);
}

/// If a server never accepts a request, each call is sent four times and then fails. No call waits for ever.
#[tokio::test]
async fn a_server_that_always_goes_away_ends_calls_within_bounds() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        wire.request().await?;
        go_away(&mut wire, 0).await?;
        drain(wire).await
    })
    .await;
    let interval = run(plan(5, &format!(r#"{DELETIONS}, "rate": "50/s""#)), server.target()).await;
    assert_eq!((interval.counts.http_error, interval.errors()), (5, 5), "{:?}", interval.examples);
    assert_eq!(interval.counts.sent_again, 3 * 5, "each was sent four times");
    assert_example(&interval, "the server did not take the request: GOAWAY NO_ERROR");
}

/// A server ends each connection with GOAWAY after three requests. Requests after that use the next connection, and no
/// call is lost.
#[tokio::test]
async fn goaway_loses_no_call() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        for _ in 0..3 {
            let (stream, uid) = wire.request().await?;
            wire.allow(stream, &uid).await?;
        }
        // The third request was stream 5.
        wire.send(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]).await?;
        // Reads on until the client hangs up, as a server that drains does.
        while wire.frame().await.is_some() {}
        None
    })
    .await;
    let planned = plan(30, DELETIONS).total();
    let load = Load::saturate(plan(30, DELETIONS), server.target(), 2).unwrap();
    until("every request to be sent", || load.planned_now() == planned).await;
    let interval = load.stop(Duration::from_secs(20)).await;
    assert_accounts(&interval);
    assert_eq!((interval.counts.allowed, interval.errors()), (30, 0), "{:?}", interval.examples);
    assert_eq!(server.accepted(), 10);
}

/// A refused stream was not processed, so its call is tried again, but only a few times.
#[tokio::test]
async fn refused_streams_are_tried_again_within_bounds() {
    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        let mut refused = 0;
        loop {
            let (stream, uid) = wire.request().await?;
            if refused < 3 {
                refused += 1;
                wire.send(RST_STREAM, 0, stream, &[0, 0, 0, 7]).await?;
            } else {
                wire.allow(stream, &uid).await?;
            }
        }
    })
    .await;
    let interval = server.meets(1, 20).await;
    assert_eq!((interval.counts.allowed, interval.errors()), (1, 0), "{:?}", interval.examples);
    assert_eq!((interval.counts.sent, interval.counts.sent_again), (1, 3));

    let server = Raw::start(|mut wire| async move {
        wire.welcome().await?;
        loop {
            let (stream, _) = wire.request().await?;
            wire.send(RST_STREAM, 0, stream, &[0, 0, 0, 7]).await?;
        }
    })
    .await;
    let interval = server.meets(4, 20).await;
    assert_eq!((interval.counts.http_error, interval.errors()), (4, 4), "{:?}", interval.examples);
    assert_eq!(interval.counts.sent_again, 3 * 4, "each was sent four times");
    assert_example(&interval, "http error: the server reset the stream: REFUSED_STREAM");
    assert_eq!(server.accepted(), 1, "the connection is as good as before");
}
