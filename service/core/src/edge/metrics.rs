//! The metrics of listeners. The labels have closed lists of values: the listener's name and a reason.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::call_memory::{CallMemory, NoRoom};
use super::slots::Reason;
use super::tls::Refusal;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByListener {
    listener: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    listener: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCut {
    listener: &'static str,
    what: &'static str,
}

/// The metrics of all listeners, and the memory limit that the listeners share.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    open: Family<ByListener, Gauge>,
    given_up: Family<ByReason, Counter>,
    refused: Family<ByReason, Counter>,
    handshakes: Family<ByReason, Counter>,
    clients_refused: Family<ByReason, Counter>,
    calls_refused: Family<ByReason, Counter>,
    cut: Family<ByCut, Counter>,
    room: Arc<CallMemory>,
}

#[derive(Debug, Clone)]
pub struct ListenerMetrics {
    listener: &'static str,
    all: Metrics,
    pub open: Gauge,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let sub = registry.sub_registry_with_prefix("longhaul_edge");
        sub.register("connections", "Open connections", metrics.open.clone());
        sub.register(
            "connections_given_up",
            "Connections that were closed to make room for another",
            metrics.given_up.clone(),
        );
        sub.register("connections_refused", "Connections for which there was no room", metrics.refused.clone());
        sub.register("handshake_failures", "TLS handshakes that failed", metrics.handshakes.clone());
        sub.register(
            "clients_refused",
            "Clients whose certificate was refused, in a handshake or on an open connection, by reason",
            metrics.clients_refused.clone(),
        );
        sub.register("calls_refused", "Calls for which there was no memory", metrics.calls_refused.clone());
        sub.register(
            "cut",
            "Streams and connections that were ended because their peers took no answers or sent floods of frames",
            metrics.cut.clone(),
        );
        metrics
    }

    /// The memory limit for open calls of all listeners.
    pub fn room(&self) -> &Arc<CallMemory> {
        &self.room
    }

    pub fn of(&self, listener: &'static str) -> ListenerMetrics {
        let open = self.open.get_or_create(&ByListener { listener }).clone();
        ListenerMetrics { listener, all: self.clone(), open }
    }

    /// The metrics of a listener with a memory limit of its own, which calls of other listeners cannot use up.
    pub fn apart(&self, listener: &'static str, room_bytes: usize) -> ListenerMetrics {
        Self { room: CallMemory::of(room_bytes), ..self.clone() }.of(listener)
    }
}

impl ListenerMetrics {
    /// Counts a connection that had to close to free its slot for a new connection.
    pub fn given_up(&self, reason: Reason) {
        self.all.given_up.get_or_create(&self.by(reason.name())).inc();
    }

    pub fn refused(&self, reason: Reason) {
        self.all.refused.get_or_create(&self.by(reason.name())).inc();
    }

    pub fn listener(&self) -> &'static str {
        self.listener
    }

    pub fn client_refused(&self, reason: Refusal) {
        self.all.clients_refused.get_or_create(&self.by(reason.label())).inc();
    }

    /// Counts a failed handshake; `reason` is one of a closed list.
    pub fn handshake_failed(&self, reason: &'static str) {
        self.all.handshakes.get_or_create(&self.by(reason)).inc();
    }

    pub(super) fn room(&self) -> &Arc<CallMemory> {
        &self.all.room
    }

    pub(super) fn call_refused(&self, reason: NoRoom) {
        self.all.calls_refused.get_or_create(&self.by(reason.name())).inc();
    }

    /// Counts a stream or connection that was ended because of its peer; `what` is a label from a closed list.
    pub(super) fn cut(&self, what: &'static str) {
        self.all.cut.get_or_create(&ByCut { listener: self.listener, what }).inc();
    }

    fn by(&self, reason: &'static str) -> ByReason {
        ByReason { listener: self.listener, reason }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::edge::Accounts;

    /// The kubelet's probes are answered even if clients of the webhook hold all memory for open calls.
    #[test]
    fn a_listener_apart_has_room_when_the_others_have_none() {
        let (metrics, accounts) = (Metrics::default(), Accounts::default());
        let (webhook, health) = (metrics.of("webhook"), metrics.apart("health", 1 << 20));
        let peer = |last: u8| accounts.peer(Ipv4Addr::new(10, 0, 0, last).into(), None);
        let mut held = Vec::new();
        for last in 1..=3 {
            while let Ok(hold) = webhook.room().hold(&peer(last), 0) {
                held.push(hold);
            }
        }
        assert!(webhook.room().hold(&peer(4), 0).is_err());
        assert!(health.room().hold(&peer(4), 0).is_ok());
    }
}
