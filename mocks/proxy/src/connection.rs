//! One connection through the proxy: two sockets, two directions, and the state that faults change.
//!
//! Owns the end of a connection: which socket is closed, and how. Only a fault ends a connection before one of its
//! peers does.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::pump::{Ended, pump};
use super::shape::{End, Way};
use super::wire::Wire;

/// How long the proxy waits for the peer to close after a FIN. Bytes that the peer still sends are discarded.
const LINGER: Duration = Duration::from_secs(1);
const DISCARD_BYTES: usize = 4096;

/// Moves bytes until the subject and the server have closed or a fault ends the connection.
pub(super) async fn serve(wire: &Wire, mut subject: TcpStream, mut server: TcpStream) {
    // Small pieces are passed on at once: delay is a fault of its own.
    let _ = (subject.set_nodelay(true), server.set_nodelay(true));
    let end = {
        let (from_subject, to_subject) = subject.split();
        let (from_server, to_server) = server.split();
        let moving = both(
            pump(from_subject, to_server, Way::ToServer, wire),
            pump(from_server, to_subject, Way::ToSubject, wire),
        );
        tokio::select! { end = wire.ended() => Some(end), end = moving => end }
    };
    match end {
        None => {}
        Some(End::Reset) => {
            let _ = (subject.set_zero_linger(), server.set_zero_linger());
        }
        Some(End::Close) => {
            let _ = server.set_zero_linger();
            drop(server);
            close(subject).await;
        }
    }
}

/// Runs both directions until both have ended, or until one of them ends the whole connection.
async fn both(one: impl Future<Output = Ended>, two: impl Future<Output = Ended>) -> Option<End> {
    let (mut one, mut two) = (std::pin::pin!(one), std::pin::pin!(two));
    let first = tokio::select! {
        ended = one.as_mut() => (ended, true),
        ended = two.as_mut() => (ended, false),
    };
    let second = match first {
        (Ended::Whole(end), _) => return Some(end),
        (Ended::Finished, true) => two.await,
        (Ended::Finished, false) => one.await,
    };
    match second {
        Ended::Whole(end) => Some(end),
        Ended::Finished => None,
    }
}

/// Closes a socket with FIN. The peer's bytes are still read for up to [`LINGER`], because a close with unread bytes
/// would send RST after the FIN.
pub(super) async fn close(mut tcp: TcpStream) {
    if tcp.shutdown().await.is_ok() {
        let _ = tokio::time::timeout(LINGER, discard(&tcp)).await;
    }
}

/// Reads and discards bytes until the peer closes.
pub(super) async fn discard(tcp: &TcpStream) {
    let mut buffer = [0; DISCARD_BYTES];
    loop {
        if tcp.readable().await.is_err() {
            return;
        }
        match tcp.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
