//! The entry point of the fuzz target `http2` in `service/fuzz`, which sends the input to a complete HTTP/2 connection.
//!
//! The clock advances only when every task waits, so an input that reaches a time limit takes no real time.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncWriteExt as _, copy, duplex, sink, split};
use tokio::time::{sleep, timeout};

use super::connection::{Shared, serve_http2_of};
use super::slots::{Limits, Slots};
use super::{Accounts, Drain, Handler, Metrics};
use crate::logs::Throttle;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of each answer in bytes: larger than the windows of some clients, and smaller than the socket's buffer.
const ANSWER_BYTES: usize = 24 << 10;
/// A time far longer than any time limit of a connection.
const ENDED: Duration = Duration::from_mins(10);

/// Acts as an HTTP/2 client that sends `bytes`. The first byte of the input says whether the client reads and how it
/// divides its writes; the other bytes are frames. The memory of open calls stays within the limit and is free at the
/// end.
pub fn http2(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime needs no files").block_on(connection(bytes));
}

async fn connection(bytes: &[u8]) {
    let [how, frames @ ..] = bytes else { return };
    let handler: Handler = Arc::new(|request: Request<Incoming>, _| {
        async move {
            let _ = request.into_body().collect().await;
            Response::new(Full::new(Bytes::from(vec![b'x'; ANSWER_BYTES])))
        }
        .boxed()
    });
    let metrics = Metrics::default().of("fuzz");
    let room = Arc::clone(metrics.room());
    let shared = Shared { handler, tls: None, accounts: Accounts::default(), metrics, throttle: Throttle::default() };
    let slots = Slots::new(Limits { connections: 1, connections_per_peer: 1, handshakes_per_peer: 1 });
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (slot, _) = slots.admit(address).expect("the only connection");
    let drain = Drain::new();
    let (client, server) = duplex(16 << 10);
    let phase = drain.follow();
    let served = tokio::spawn(async move { serve_http2_of(server, address, slot, &shared, phase).await });
    let (mut from, mut to) = split(client);
    let reads = how & 1 == 0;
    let reading = tokio::spawn(async move {
        if reads {
            let _ = copy(&mut from, &mut sink()).await;
        }
        std::future::pending::<()>().await;
    });
    let mut sent = to.write_all(PREFACE).await;
    for piece in frames.chunks(usize::from(how >> 1).max(1) * 32) {
        if sent.is_err() {
            break;
        }
        sent = to.write_all(piece).await;
        room.assert_kept();
    }
    let _ = to.shutdown().await;
    timeout(ENDED, served).await.expect("a connection ends after its client").expect("a connection does not panic");
    let given_back = async {
        while room.held_bytes() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(ENDED, given_back).await.expect("what a connection held is given back");
    reading.abort();
}

#[cfg(test)]
mod tests {
    /// No seed input makes a connection hold more memory than the limit.
    #[test]
    fn no_connection_holds_more_than_its_room() {
        for seed in [
            &include_bytes!("../../../fuzz/seeds/http2/review")[..],
            include_bytes!("../../../fuzz/seeds/http2/without-bodies"),
            include_bytes!("../../../fuzz/seeds/http2/window-of-nothing"),
            include_bytes!("../../../fuzz/seeds/http2/window-of-one"),
            include_bytes!("../../../fuzz/seeds/http2/resets"),
            include_bytes!("../../../fuzz/seeds/http2/settings"),
            include_bytes!("../../../fuzz/seeds/http2/long-head"),
        ] {
            for how in [seed[0], seed[0] ^ 1] {
                super::http2(&[&[how], &seed[1..]].concat());
            }
        }
    }
}
