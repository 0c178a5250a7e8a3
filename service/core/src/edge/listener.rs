//! One listener: it accepts connections, limits their number, and ends them in order.
//!
//! A listener owns its connections in a set of limited size, which ends with the listener. The module `connection`
//! speaks the protocols; `slots` chooses the connection to close if there are too many.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::connection::{Shared, serve};
use super::drain::{Drain, Phase};
use super::heartbeat::Heartbeat;
use super::metrics::ListenerMetrics;
use super::peer::Accounts;
use super::slots::{Limits, Slots};
use super::tls::ServerTls;
use super::way::Handler;
use crate::logs::Throttle;

/// Maximum number of connections of a listener without its own configuration, such as the health listener.
const CONNECTIONS: usize = 256;
/// During the drain, the listener accepts connections until no new connection has come for this long, because clients
/// learn late that an endpoint is removed.
const LAME_DUCK_MIN: Duration = Duration::from_secs(3);
/// Pause after a failed accept; the usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Interval at which the accept loop renews its heartbeat while no connection comes.
const BEAT: Duration = Duration::from_secs(1);

pub enum Protocols {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/2 or HTTP/1.1 over TLS; the client chooses.
    Tls(Arc<ServerTls>),
}

pub struct Listener {
    tcp: TcpListener,
    protocols: Protocols,
    lame_duck: Duration,
    /// Whether each new connection during the drain prolongs the drain.
    knocks_prolong: bool,
    limits: Limits,
    metrics: ListenerMetrics,
    heartbeat: Arc<Heartbeat>,
}

impl Listener {
    pub async fn bind(address: SocketAddr, protocols: Protocols, metrics: ListenerMetrics) -> std::io::Result<Self> {
        let tcp = TcpListener::bind(address).await?;
        let limits =
            Limits { connections: CONNECTIONS, connections_per_peer: CONNECTIONS, handshakes_per_peer: CONNECTIONS };
        let heartbeat = Arc::new(Heartbeat::new("listener"));
        Ok(Self { tcp, protocols, lame_duck: LAME_DUCK_MIN, knocks_prolong: true, limits, metrics, heartbeat })
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the name of the listener's health check, for a process with several listeners.
    #[must_use]
    pub fn checked_as(mut self, name: &'static str) -> Self {
        self.heartbeat = Arc::new(Heartbeat::new(name));
        self
    }

    /// Makes the listener serve until the end of the drain, even without connections, because each health probe opens a
    /// new connection.
    #[must_use]
    pub fn through_the_drain(mut self) -> Self {
        self.lame_duck = Duration::from_hours(1);
        self
    }

    /// New connections do not prolong the drain of this listener: its clients know the address and always connect
    /// again.
    #[must_use]
    pub fn known_to_its_clients(mut self) -> Self {
        self.knocks_prolong = false;
        self
    }

    /// The listener's address, with the actual port if port 0 was configured.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    pub fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }

    /// Serves until the phase is `Stopping`, or until the process drains and no connection is left. The future is
    /// boxed, so that HTTP and TLS are compiled in this crate.
    pub fn serve(self, handler: Handler, drain: Drain) -> BoxFuture<'static, ()> {
        Box::pin(self.accepting(handler, drain))
    }

    async fn accepting(self, handler: Handler, drain: Drain) {
        let tls = match &self.protocols {
            Protocols::Plain => None,
            Protocols::Tls(tls) => Some(Arc::clone(tls)),
        };
        let (accounts, metrics) = (Accounts::default(), self.metrics.clone());
        let shared = Arc::new(Shared { handler, tls, accounts, metrics, throttle: Throttle::default() });
        let slots = Slots::new(self.limits);
        let mut phase = drain.follow();
        let mut lame_duck_ends = None;
        let mut connections = JoinSet::new();
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let take = |connections: &mut JoinSet<()>, tcp: TcpStream, address: IpAddr| {
            self.take(connections, &slots, &shared, drain.follow(), (tcp, address));
        };
        loop {
            let ended = end(drain.follow(), lame_duck_ends, connections.is_empty());
            tokio::select! {
                _ = phase.wait_for(|phase| *phase >= Phase::Draining), if lame_duck_ends.is_none() => {
                    lame_duck_ends = Some(Instant::now() + self.lame_duck);
                }
                (tcp, address) = self.accept() => {
                    take(&mut connections, tcp, address);
                    // A client that still comes does not know of the end; its next connection would be refused.
                    if self.knocks_prolong {
                        lame_duck_ends = lame_duck_ends.map(|_| Instant::now() + self.lame_duck);
                    }
                }
                _ = beat.tick() => self.heartbeat.turn(),
                Some(_) = connections.join_next() => {}
                () = ended => break,
            }
        }
        // Closing the socket resets connections that the kernel has accepted and this loop has not: they are served to
        // the end.
        while let Some(Ok((tcp, address))) = self.tcp.accept().now_or_never() {
            take(&mut connections, tcp, address.ip());
        }
        drop(self.tcp);
        while connections.join_next().await.is_some() {}
    }

    async fn accept(&self) -> (TcpStream, IpAddr) {
        loop {
            match self.tcp.accept().await {
                Ok((tcp, address)) => {
                    self.heartbeat.beat();
                    return (tcp, address.ip());
                }
                Err(error) => {
                    tracing::debug!(name: crate::logs::names::ACCEPT_FAILED, %error, "accept failed");
                    self.heartbeat.miss("connections cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn take(
        &self,
        connections: &mut JoinSet<()>,
        slots: &Arc<Slots>,
        shared: &Arc<Shared>,
        phase: watch::Receiver<Phase>,
        (tcp, address): (TcpStream, IpAddr),
    ) {
        let slot = match slots.admit(address) {
            Ok((slot, given_up)) => {
                if let Some(reason) = given_up {
                    self.metrics.given_up(reason);
                }
                slot
            }
            Err(reason) => {
                self.metrics.refused(reason);
                return tracing::debug!(name: crate::logs::names::NO_ROOM, reason = reason.name(), "connection refused");
            }
        };
        // Answers are small and written as a whole.
        let _ = tcp.set_nodelay(true);
        self.metrics.open.inc();
        let (shared, open) = (Arc::clone(shared), Open(self.metrics.clone()));
        connections.spawn(async move {
            serve(tcp, address, slot, &shared, phase).await;
            drop(open);
        });
    }
}

/// Decrements the count of open connections on drop, even if the connection's task is aborted.
struct Open(ListenerMetrics);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

async fn end(mut phase: watch::Receiver<Phase>, lame_duck_ends: Option<Instant>, empty: bool) {
    let closing = phase.wait_for(|phase| *phase >= Phase::Closing);
    match lame_duck_ends {
        Some(ends) if empty => {
            let _ = tokio::time::timeout_at(ends, closing).await;
        }
        _ => drop(closing.await),
    }
}
