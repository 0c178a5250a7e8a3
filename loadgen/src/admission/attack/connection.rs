//! Keeps one connection of an attack: connects, sends twice a second, reads answers, and connects again after an end.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Shared;
use super::session::{Done, Script, Session};
use crate::wire::Endpoint;

/// The time between two sends over a connection.
const TURN: Duration = Duration::from_millis(500);
/// The pause before an attack opens its next connection, so that it is no flood of handshakes.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a write may make no progress before the connection is closed.
const WRITE_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 16 << 10;

/// Opens one connection after another for an attack, until the future is dropped.
pub(super) async fn keep_attacking(endpoint: &Endpoint, from: Option<IpAddr>, script: &Script, shared: &Shared) {
    loop {
        let Err(trouble) = attack(endpoint, from, script, shared).await;
        *shared.trouble.lock() = Some(trouble);
        sleep(AGAIN).await;
    }
}

/// Attacks over one connection until the connection ends, and returns why it ended.
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
