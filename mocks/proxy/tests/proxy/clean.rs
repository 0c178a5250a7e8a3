//! Tests without a fault: all bytes arrive in order, each peer sees the other's close, and no idle connection is
//! closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{PATIENCE, World, rest, send, until};

/// Makes bytes in which a wrong order is visible.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

#[tokio::test]
async fn every_byte_goes_through_both_ways_at_once() {
    let world = World::start().await;
    let pair = world.pair().await;
    let sent = pattern(4 << 20);
    let (mut subject_in, mut subject_out) = pair.subject.into_split();
    let (mut server_in, mut server_out) = pair.server.into_split();
    let writing = async {
        let up = subject_out.write_all(&sent);
        let down = server_out.write_all(&sent);
        tokio::try_join!(up, down).unwrap();
    };
    let (mut at_subject, mut at_server) = (vec![0; sent.len()], vec![0; sent.len()]);
    let reading = async {
        tokio::try_join!(subject_in.read_exact(&mut at_subject), server_in.read_exact(&mut at_server)).unwrap();
    };
    tokio::time::timeout(PATIENCE, async { tokio::join!(writing, reading) }).await.expect("in time");
    assert!(at_subject == sent && at_server == sent);
    let counts = world.proxy.counts();
    assert_eq!((counts.accepted, counts.open, counts.refused), (1, 1, 0));
    assert_eq!((counts.bytes_to_subject, counts.bytes_to_server), (4 << 20, 4 << 20));
}

#[tokio::test]
async fn a_half_closed_connection_still_answers() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    send(&mut pair.subject, b"all I have to say").await;
    pair.subject.shutdown().await.unwrap();
    assert_eq!(rest(&mut pair.server).await.0, b"all I have to say");
    send(&mut pair.server, b"and the answer").await;
    drop(pair.server);
    assert_eq!(rest(&mut pair.subject).await.0, b"and the answer");
    until("the connection is over", || world.proxy.counts().open == 0).await;
}

#[tokio::test]
async fn a_reset_is_passed_on_as_a_reset() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    pair.server.set_zero_linger().unwrap();
    drop(pair.server);
    let (_, end) = rest(&mut pair.subject).await;
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn who_does_not_read_makes_the_other_side_wait() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    let written = Arc::new(AtomicU64::new(0));
    let counter = written.clone();
    let piece = pattern(251 * 64);
    let size = piece.len() as u64;
    let mut server = pair.server;
    let writer = tokio::spawn(async move {
        while server.write_all(&piece).await.is_ok() {
            counter.fetch_add(size, Ordering::Relaxed);
        }
    });
    // It stands still if nothing was written for a while.
    let mut before = u64::MAX;
    let stalled = async {
        while before != written.load(Ordering::Relaxed) {
            before = written.load(Ordering::Relaxed);
            tokio::time::sleep(super::MOMENT * 3).await;
        }
    };
    tokio::time::timeout(PATIENCE, stalled).await.expect("the writer waits");
    // The buffers of two pairs of sockets, which Linux grows to 4 and 6 MiB each, and the proxy's own one.
    assert!(before > 0 && before < 32 << 20, "{before}");
    let mut read = vec![0; usize::try_from(before).unwrap()];
    tokio::time::timeout(PATIENCE, pair.subject.read_exact(&mut read)).await.expect("it goes on").unwrap();
    assert!(read.iter().enumerate().all(|(index, byte)| usize::from(*byte) == index % 251));
    writer.abort();
}

#[tokio::test]
async fn stopping_ends_every_connection() {
    let world = World::start().await;
    let (mut one, mut two) = (world.pair().await, world.pair().await);
    let address = world.proxy.address();
    world.proxy.shutdown().await;
    for tcp in [&mut one.subject, &mut one.server, &mut two.subject, &mut two.server] {
        assert!(rest(tcp).await.0.is_empty());
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn nobody_behind_it_is_a_reset() {
    let world = World::with(|config| config.upstream = "127.0.0.1:1".parse().unwrap()).await;
    let mut subject = tokio::net::TcpStream::connect(world.proxy.address()).await.unwrap();
    assert_eq!(rest(&mut subject).await.1.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}
