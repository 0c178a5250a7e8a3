//! Accepts TCP connections on the harness's own listeners: the witness, the receiver of alerts, the small Redis.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Pause before the next attempt to accept if the process has no file descriptor left; another connection may close
/// meanwhile.
const REST: Duration = Duration::from_millis(50);

/// Serves up to `connections_max` connections at the same time. Further connections wait in the kernel's queue.
/// Dropping the future of this function ends all connections.
pub async fn accept<F>(listener: TcpListener, connections_max: usize, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(connections_max));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let serves = serve(stream);
        connections.spawn(async move {
            let _place = place;
            serves.await;
        });
    }
}
