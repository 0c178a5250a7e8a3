//! Connections to what the harness itself listens with: the witness, the receiver of alerts, the small Redis.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Out of descriptors: one may be freed within this.
const REST: Duration = Duration::from_millis(50);

/// Serves connections side by side, at most `connections_max`; more wait in the system's queue. Dropping it ends all of them.
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
