//! The sockets of an attack: connects, writes in turns, reads what comes, and connects again.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Shared;
use super::session::{Done, Script, Session};
use crate::wire::Endpoint;

/// How often a connection sends.
const TURN: Duration = Duration::from_millis(500);
/// A pause before the next connection, so that an attack is no flood of handshakes.
const AGAIN: Duration = Duration::from_millis(500);
/// A webhook that takes nothing for so long is left.
const WRITE_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 16 << 10;

/// Attacks over one connection after the other, until dropped.
pub(super) async fn keep_attacking(endpoint: &Endpoint, from: Option<IpAddr>, script: &Script, shared: &Shared) {
    loop {
        let Err(trouble) = attack(endpoint, from, script, shared).await;
        *shared.trouble.lock() = Some(trouble);
        sleep(AGAIN).await;
    }
}

/// One connection to its end, whose reason is the answer.
async fn attack(
    endpoint: &Endpoint,
    from: Option<IpAddr>,
    script: &Script,
    shared: &Shared,
) -> Result<std::convert::Infallible, String> {
    let stream = endpoint.connect_from(from).await.map_err(|failure| failure.text)?;
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let (mut from_server, mut to_server) = tokio::io::split(stream);
    let (mut session, mut out) = (Session::new(script), Vec::new());
    Session::greet(&mut out);
    let mut turns = interval(TURN);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut incoming = vec![0; READ_BYTES];
    loop {
        if !out.is_empty() {
            let writing = async {
                to_server.write_all(&out).await?;
                to_server.flush().await
            };
            let written = timeout(WRITE_MAX, writing).await.map_err(|_| "the webhook took nothing".to_owned())?;
            written.map_err(|error| error.to_string())?;
            out.clear();
        }
        tokio::select! {
            _ = turns.tick() => session.turn(&mut out),
            read = from_server.read(&mut incoming) => match read {
                Ok(0) => return Err("the webhook closed the connection".to_owned()),
                Ok(count) => {
                    let read = session.read(&incoming[..count], &mut out);
                    shared.add(session.take());
                    read?;
                }
                Err(error) => return Err(error.to_string()),
            },
        }
        shared.add(session.take());
    }
}

impl Shared {
    fn add(&self, done: Done) {
        let Done { streams, refused, reset, unread } = done;
        self.streams.fetch_add(streams, Ordering::Relaxed);
        self.refused.fetch_add(refused, Ordering::Relaxed);
        self.reset.fetch_add(reset, Ordering::Relaxed);
        self.unread.fetch_add(unread, Ordering::Relaxed);
    }
}
