//! One address in front of the subject's processes, like a Service in front of Pods: each new connection goes to the
//! next process and stays with this process.
//!
//! Owns the forwarded connections. TLS passes through unchanged.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Maximum number of connections at once, far more than a load generator opens; further connections wait in the listen queue.
const CONNECTIONS_MAX: usize = 4096;

/// The address in front of the subject's processes. Dropping this value closes all connections through it.
pub(super) struct Front {
    address: SocketAddr,
    endpoints: Arc<Mutex<Endpoints>>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Endpoints {
    behind: Vec<SocketAddr>,
    next: usize,
}

impl Front {
    /// Listens on a free port of the address `at`. While no endpoint is added, new connections are closed.
    pub(super) async fn open(at: Ipv4Addr) -> Result<Self> {
        let listener = TcpListener::bind((at, 0)).await;
        let listener = listener.context("failed to listen in front of the subject")?;
        let address = listener.local_addr()?;
        let endpoints = Arc::<Mutex<Endpoints>>::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&endpoints)));
        Ok(Self { address, endpoints, accepting })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends new connections also to this endpoint.
    pub(super) fn add(&self, endpoint: SocketAddr) {
        self.endpoints.lock().behind.push(endpoint);
    }

    /// Sends no further connections to this endpoint; open connections stay.
    pub(super) fn remove(&self, endpoint: SocketAddr) {
        self.endpoints.lock().behind.retain(|behind| *behind != endpoint);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Endpoints {
    fn turn(&mut self) -> Option<SocketAddr> {
        self.next = self.next.wrapping_add(1);
        self.behind.get(self.next.checked_rem(self.behind.len())?).copied()
    }
}

async fn accept(listener: TcpListener, endpoints: Arc<Mutex<Endpoints>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((near, _)) = listener.accept().await else { continue };
        let Some(endpoint) = endpoints.lock().turn() else { continue };
        connections.spawn(async move {
            let _place = place;
            pass(near, endpoint).await;
        });
    }
}

/// Forwards bytes until both ends have closed. If the endpoint does not listen, resets the client's connection, as a
/// node does.
async fn pass(mut near: TcpStream, endpoint: SocketAddr) {
    let Ok(mut far) = TcpStream::connect(endpoint).await else {
        let _ = near.set_zero_linger();
        return;
    };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    if tokio::io::copy_bidirectional(&mut near, &mut far).await.is_err() {
        let _ = (near.set_zero_linger(), far.set_zero_linger());
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn says(byte: u8) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::io::AsyncWriteExt::write_all(&mut stream, &[byte]).await.unwrap();
            }
        });
        address
    }

    async fn heard(front: &Front) -> Option<u8> {
        TcpStream::connect(front.address()).await.unwrap().read_u8().await.ok()
    }

    #[tokio::test]
    async fn new_connections_take_turns_and_leave_who_is_removed() {
        let front = Front::open(Ipv4Addr::LOCALHOST).await.unwrap();
        assert_eq!(heard(&front).await, None, "there is nobody yet");
        let (one, two) = (says(1).await, says(2).await);
        front.add(one);
        assert_eq!((heard(&front).await, heard(&front).await), (Some(1), Some(1)));
        front.add(two);
        let mut both = [heard(&front).await, heard(&front).await];
        both.sort_unstable();
        assert_eq!(both, [Some(1), Some(2)]);
        front.remove(one);
        assert_eq!((heard(&front).await, heard(&front).await), (Some(2), Some(2)));
    }
}
