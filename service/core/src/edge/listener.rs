//! One listener: accepting, places for connections, and an orderly end.
//!
//! A listener owns its connections: they live in one set of limited size, and end with it. `connection` owns the
//! protocols, and `slots` chooses the connection that has to go when places run out.

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

/// Connections of a listener without its own configuration, such as the health listener.
const CONNECTIONS: usize = 256;
/// While draining, the listener accepts new connections until none has come for this long: endpoints learn of the end
/// with a delay.
const LAME_DUCK_MIN: Duration = Duration::from_secs(3);
/// Pause after a failed accept; the usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Interval of the loop's heartbeat without connections.
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
    /// Whether each connection that comes during the drain prolongs the wait.
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

    /// Sets the name of its health check, for a process with several.
    #[must_use]
    pub fn checked_as(mut self, name: &'static str) -> Self {
        self.heartbeat = Arc::new(Heartbeat::new(name));
        self
    }

    /// Serves through the whole drain, also without connections: probes come on fresh connections.
    #[must_use]
    pub fn through_the_drain(mut self) -> Self {
        self.lame_duck = Duration::from_hours(1);
        self
    }

    /// For clients that know the address and come again as long as the listener exists: connections during the drain
    /// are served, and prolong nothing.
    #[must_use]
    pub fn known_to_its_clients(mut self) -> Self {
        self.knocks_prolong = false;
        self
    }

    /// The listener's address, with the actual port if port 0 was configured.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The heartbeat of the loop that accepts connections.
    pub fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }

    /// Serves until the phase is `Stopping`, or until an earlier phase after `Serving` and no connection is left.
    /// Boxed, so that HTTP and TLS are compiled here.
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

/// Counts an open connection down, also when its task is cut.
struct Open(ListenerMetrics);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

/// Ready when the listener has nothing more to do.
async fn end(mut phase: watch::Receiver<Phase>, lame_duck_ends: Option<Instant>, empty: bool) {
    let closing = phase.wait_for(|phase| *phase >= Phase::Closing);
    match lame_duck_ends {
        Some(ends) if empty => {
            let _ = tokio::time::timeout_at(ends, closing).await;
        }
        _ => drop(closing.await),
    }
}
