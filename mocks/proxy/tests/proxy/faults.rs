//! Tests of every network fault that user space can play.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use mock_faults::{Direction, Fault, FaultId, How, Name, NewConnections, Nth};
use units::{Bytes, Span, Throughput};

use super::{ID, MOMENT, World, is_silent, later, receive, rest, send, unacknowledged, until};

#[tokio::test]
async fn a_frozen_path_moves_nothing_and_the_kernel_still_acknowledges() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    assert!(pair.is_healthy().await);
    world.begin(&later(Name::NetFreeze));
    assert_eq!(world.hits(), 0, "nothing was withheld yet");
    assert!(world.proxy.faults().struck().now_or_never().is_none());
    send(&mut pair.subject, b"asked").await;
    send(&mut pair.server, b"told").await;
    world.proxy.faults().struck().await;
    assert!(is_silent(&mut pair.server).await && is_silent(&mut pair.subject).await);
    until("both kernels have acknowledged", || {
        [&pair.subject, &pair.server].iter().all(|tcp| unacknowledged(tcp) == Some(0))
    })
    .await;
    assert_eq!(world.hits(), 1, "one connection");
    assert!(world.details()[0].starts_with("connection 1 from 127.0.0.1:"));
    assert!(world.pair().await.is_healthy().await, "new connections are healthy");
    world.end();
    assert!(is_silent(&mut pair.subject).await, "a dead path does not come back");
}

#[tokio::test]
async fn a_frozen_path_may_heal_and_loses_nothing() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    world.begin(&later(Name::NetFreeze).set("heals", true));
    send(&mut pair.subject, b"asked").await;
    assert!(is_silent(&mut pair.server).await);
    world.end();
    assert_eq!(receive(&mut pair.server, 5).await, b"asked");
    assert!(pair.is_healthy().await);
}

#[tokio::test]
async fn one_way_may_be_frozen_alone() {
    let world = World::start().await;
    for (direction, hears) in [(Direction::ToSubject, "server"), (Direction::ToServer, "subject")] {
        let id = FaultId(u32::from(direction == Direction::ToServer));
        let mut pair = world.pair().await;
        let fault = later(Name::NetFreeze).set("direction", direction);
        world.proxy.faults().begin(id, &fault).unwrap();
        send(&mut pair.subject, b"asked").await;
        send(&mut pair.server, b"told").await;
        if hears == "server" {
            assert_eq!(receive(&mut pair.server, 5).await, b"asked");
            assert!(is_silent(&mut pair.subject).await);
        } else {
            assert_eq!(receive(&mut pair.subject, 4).await, b"told");
            assert!(is_silent(&mut pair.server).await);
        }
        world.proxy.faults().end(id);
    }
}

#[tokio::test]
async fn not_even_an_end_passes_but_a_subject_that_left_is_not_kept() {
    let world = World::start().await;
    let (mut ended, mut left) = (world.pair().await, world.pair().await);
    world.begin(&later(Name::NetFreeze));
    drop(ended.server);
    assert!(is_silent(&mut ended.subject).await, "no FIN either");
    drop(left.subject);
    assert!(rest(&mut left.server).await.0.is_empty(), "the server is told, so that it counts no leak");
    until("only the other one is open", || world.proxy.counts().open == 1).await;
}

#[tokio::test]
async fn what_comes_may_be_frozen_too() {
    let world = World::start().await;
    world.begin(&Fault { nth: Some(Nth::one(2)), ..Fault::armed(Name::NetFreeze) });
    let (mut first, mut second, mut third) = (world.pair().await, world.pair().await, world.pair().await);
    assert!(first.is_healthy().await);
    send(&mut second.subject, b"asked").await;
    assert!(is_silent(&mut second.server).await);
    assert!(third.is_healthy().await);
    world.end();
    world
        .proxy
        .faults()
        .begin(
            FaultId(8),
            &Fault { count: Some(1), ..Fault::armed(Name::NetFreeze) }.set("newConnections", NewConnections::Frozen),
        )
        .unwrap();
    send(&mut first.subject, b"asked").await;
    assert!(is_silent(&mut first.server).await, "the count is used up by the oldest one that is open");
    assert!(world.pair().await.is_healthy().await);
}

#[tokio::test]
async fn a_reset_hits_both_ends_of_what_is_open() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    world.begin(&later(Name::NetReset));
    world.end();
    for tcp in [&mut pair.subject, &mut pair.server] {
        assert_eq!(rest(tcp).await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(world.hits(), 1);
    assert!(world.pair().await.is_healthy().await);
    world
        .proxy
        .faults()
        .begin(FaultId(8), &Fault { lasts: Some(Span::from_secs(9)), ..later(Name::NetReset) })
        .unwrap();
    let mut during = tokio::net::TcpStream::connect(world.proxy.address()).await.unwrap();
    assert_eq!(rest(&mut during).await.1.unwrap_err().kind(), ErrorKind::ConnectionReset, "while it lasts");
}

#[tokio::test]
async fn new_connections_are_refused_in_three_ways() {
    for how in [How::Reset, How::Close, How::Hang] {
        let world = World::start().await;
        let mut open = world.pair().await;
        world.begin(&Fault::armed(Name::NetRefuse).set("how", how));
        let mut refused = tokio::net::TcpStream::connect(world.proxy.address()).await.unwrap();
        match how {
            How::Reset => assert_eq!(rest(&mut refused).await.1.unwrap_err().kind(), ErrorKind::ConnectionReset),
            How::Close => assert!(rest(&mut refused).await.1.is_ok()),
            How::Hang => {
                send(&mut refused, b"anybody there").await;
                assert!(is_silent(&mut refused).await);
            }
        }
        assert!(open.is_healthy().await);
        world.end();
        assert!(world.pair().await.is_healthy().await);
        assert_eq!((world.hits(), world.proxy.counts().refused), (1, 1));
        if how == How::Hang {
            assert!(is_silent(&mut refused).await, "also not when it is over");
        }
    }
}

#[tokio::test]
async fn latency_delays_and_keeps_the_order() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    let delay = Duration::from_millis(60);
    let fault = later(Name::NetLatency);
    world.begin(&fault.set("delay", Span(delay)).set("jitter", Span(delay)));
    let began = Instant::now();
    for byte in 0..20 {
        send(&mut pair.subject, &[byte]).await;
        tokio::task::yield_now().await;
    }
    let order: Vec<u8> = (0..20).collect();
    assert_eq!(receive(&mut pair.server, 20).await, order);
    assert!(began.elapsed() >= delay, "{:?}", began.elapsed());
    assert_eq!(world.hits(), 1);
    world.end();
    assert!(pair.is_healthy().await);
}

#[tokio::test]
async fn bandwidth_is_a_limit_for_each_direction() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    world.begin(&later(Name::NetBandwidth).set("rate", Throughput { bytes_per_second: 10_000 }));
    let began = Instant::now();
    send(&mut pair.server, &[7; 3000]).await;
    assert_eq!(receive(&mut pair.subject, 3000).await, [7; 3000]);
    // The first slice is written at once.
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
    assert_eq!(world.hits(), 1);
    world.end();
    let began = Instant::now();
    send(&mut pair.server, &vec![7; 60_000]).await;
    receive(&mut pair.subject, 60_000).await;
    assert!(began.elapsed() < Duration::from_secs(5), "6 s with the limit");
}

#[tokio::test]
async fn an_answer_is_cut_after_so_many_bytes() {
    for (how, kind) in [(How::Close, None), (How::Reset, Some(ErrorKind::ConnectionReset))] {
        let world = World::start().await;
        let mut pair = world.pair().await;
        assert!(pair.is_healthy().await);
        let fault = later(Name::NetCut).set("bytes", Bytes(1000)).set("how", how);
        world.begin(&fault);
        send(&mut pair.subject, &[1; 2000]).await;
        receive(&mut pair.server, 2000).await;
        send(&mut pair.server, &[7; 700]).await;
        assert_eq!(receive(&mut pair.subject, 700).await, [7; 700]);
        assert_eq!(world.hits(), 0);
        send(&mut pair.server, &[7; 700]).await;
        let (bytes, end) = rest(&mut pair.subject).await;
        assert_eq!((bytes.len(), end.err().map(|error| error.kind())), (300, kind));
        assert_eq!(world.hits(), 1);
        assert!(world.details()[0].ends_with("cut after 1004 bytes to the subject"), "all that the connection moved");
    }
}

#[tokio::test]
async fn faults_add_up_and_go_one_by_one() {
    let world = World::start().await;
    let mut pair = world.pair().await;
    let delay = Some(Span(Duration::from_millis(40)));
    world.begin(&later(Name::NetLatency).set("delay", delay));
    world.proxy.faults().begin(FaultId(8), &later(Name::NetFreeze).set("heals", true)).unwrap();
    send(&mut pair.subject, b"asked").await;
    tokio::time::sleep(MOMENT).await;
    assert!(is_silent(&mut pair.server).await);
    world.proxy.faults().end(FaultId(8));
    assert_eq!(receive(&mut pair.server, 5).await, b"asked");
    let active: Vec<bool> = world.proxy.faults().all().into_iter().map(|(_, _, active, _)| active).collect();
    assert_eq!(active, [true, false]);
}

#[tokio::test]
async fn what_it_cannot_play_it_says() {
    let world = World::start().await;
    let refused = |fault: &Fault| world.proxy.faults().begin(ID, fault).unwrap_err().to_string();
    assert_eq!(
        refused(&later(Name::WatchReset)),
        "`watch-reset` cannot be played here: the proxy plays faults of the network only"
    );
    assert_eq!(refused(&later(Name::NetLoss)), "`net-loss` cannot be played here: it has no network namespace");
    assert!(refused(&later(Name::NetReset).set("streams", 3)).contains("`streams` has no meaning"));
    world.begin(&later(Name::NetLatency));
    assert_eq!(refused(&later(Name::NetLatency)), "fault 7 is already running: end it first");
}
