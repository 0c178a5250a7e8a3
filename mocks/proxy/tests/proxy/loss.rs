//! Tests of `net-loss`: lost packets. They need a network namespace.

use std::process::Command;

use mock_faults::{Direction, Name, NewConnections};
use mock_proxy::netns::{Error, Namespace};
use tokio::net::TcpStream;

use super::{MOMENT, World, is_silent, later, receive, send, unacknowledged, until};

/// `None`, with a message, if there can be no namespace.
fn namespace() -> Option<Namespace> {
    match Namespace::create() {
        Ok(namespace) => Some(namespace),
        Err(Error::Needs { what, why }) => {
            println!("skipped: needs {what} ({why})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

async fn world() -> Option<World> {
    let namespace = namespace()?;
    Some(World::with(|config| config.namespace = Some(namespace)).await)
}

#[tokio::test]
async fn lost_packets_are_not_acknowledged_and_come_again_later() {
    let Some(world) = world().await else { return };
    let mut pair = world.pair().await;
    assert!(pair.is_healthy().await);
    world.begin(&later(Name::NetLoss));
    assert!(world.pair().await.is_healthy().await, "new connections are healthy");
    send(&mut pair.subject, b"asked").await;
    send(&mut pair.server, b"told").await;
    assert!(is_silent(&mut pair.server).await && is_silent(&mut pair.subject).await);
    assert_eq!(unacknowledged(&pair.subject), Some(5), "TCP itself knows that nobody answers");
    until("the filter saw it", || world.hits() == 1).await;
    assert!(world.details()[0].starts_with("packets vanished: "));
    world.end();
    assert_eq!(receive(&mut pair.server, 5).await, b"asked", "sent again by the kernel");
    assert_eq!(receive(&mut pair.subject, 4).await, b"told");
    assert_eq!(world.hits(), 1);
}

#[tokio::test]
async fn a_lost_path_refuses_nobody_and_lets_nobody_in() {
    let Some(world) = world().await else { return };
    let all = later(Name::NetLoss).set("newConnections", NewConnections::Frozen);
    world.begin(&all);
    let connecting = tokio::time::timeout(MOMENT, TcpStream::connect(world.proxy.address()));
    assert!(connecting.await.is_err(), "not even a refusal");
    world.end();
    assert!(world.pair().await.is_healthy().await);
    assert_eq!(world.hits(), 1);
}

#[tokio::test]
async fn one_way_may_be_lost_alone() {
    let Some(world) = world().await else { return };
    let mut pair = world.pair().await;
    world.begin(&later(Name::NetLoss).set("direction", Direction::ToSubject));
    send(&mut pair.subject, b"asked").await;
    assert_eq!(receive(&mut pair.server, 5).await, b"asked");
    send(&mut pair.server, b"told").await;
    assert!(is_silent(&mut pair.subject).await);
    assert_eq!(unacknowledged(&pair.subject), Some(5), "it arrived, but the acknowledgement did not");
    world.end();
    assert_eq!(world.hits(), 1);
}

#[tokio::test]
async fn what_nobody_sends_cannot_be_lost() {
    let Some(world) = world().await else { return };
    world.begin(&later(Name::NetLoss).set("newConnections", NewConnections::Frozen));
    world.end();
    assert_eq!(world.hits(), 0);
    assert!(world.pair().await.is_healthy().await);
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let Some(namespace) = namespace() else { return };
    let address = namespace.address().to_string();
    let near = address.rsplit_once('.').map(|(net, _)| format!(" {net}.")).unwrap();
    let shown = |arguments: &[&str]| {
        let output = Command::new("ip").args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let names = || -> Vec<String> {
        let list = shown(&["netns", "list"]);
        list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    // Other tests of this process have their own.
    let mine = names().into_iter().find(|name| shown(&["-n", name, "-4", "addr"]).contains(&address)).unwrap();
    assert!(mine.starts_with(&format!("longhaul-{}-", std::process::id())));
    let addresses = |near: &str| shown(&["-o", "-4", "addr", "show"]).matches(near).count();
    let with = addresses(&near);
    let world = World::with(|config| config.namespace = Some(namespace)).await;
    let pair = world.pair().await;
    world.begin(&later(Name::NetLoss));
    drop(pair);
    world.proxy.shutdown().await;
    until("the cable is gone", || addresses(&near) < with).await;
    assert!(!names().contains(&mine));
}
