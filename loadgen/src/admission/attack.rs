//! Attacks that are not reviews: HTTP/2 clients with hand-written frames, which run beside the load.
//!
//! Owns the times of each attack, its connections and its counts of effects. The module `session` owns the frames of
//! one connection. No answer to an attack is right or wrong. The load shows whether other clients get answers, and the
//! observer measures the webhook's memory.

mod connection;
mod session;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::attack_plan::check;
pub use super::attack_plan::{Attack, Name};
use super::{Error, Target};
use crate::wire::{Endpoint, Tls};
use connection::keep_attacking;
use session::Script;

/// The address from which attacks on loopback come. A webhook limits clients by address, so load and attacks must have
/// different addresses. On Linux all addresses of 127.0.0.0/8 are loopback.
const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub connections: u64,
    pub streams: u64,
    /// Number of streams that the webhook refused at once; they are also in `streams`.
    pub refused: u64,
    /// Number of streams that the webhook ended later; they are also in `streams`.
    pub reset: u64,
    /// Number of answers that came and were not read.
    pub unread: u64,
    /// The last error of any connection, as text.
    pub trouble: Option<String>,
}

/// Attacks that are under way; dropping the value ends them.
#[derive(Debug)]
pub struct Attackers {
    attacks: Vec<(Attack, Arc<Shared>)>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: AtomicU64,
    streams: AtomicU64,
    refused: AtomicU64,
    reset: AtomicU64,
    unread: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Counts {
    /// How often the attack had an effect: streams that were opened, or answers that were left unread.
    pub fn hits(&self, name: Name) -> u64 {
        match name {
            Name::OpenStreams => self.streams,
            Name::UnreadAnswers => self.unread,
        }
    }

    pub fn describe(&self) -> String {
        let Self { connections, streams, refused, reset, unread, trouble } = self;
        let text = format!(
            "{connections} connections, {streams} streams, {refused} refused, {reset} ended by the webhook, {unread} answers left unread"
        );
        match trouble {
            Some(trouble) => format!("{text}; last: {trouble}"),
            None => text,
        }
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            connections: of(&self.connections),
            streams: of(&self.streams),
            refused: of(&self.refused),
            reset: of(&self.reset),
            unread: of(&self.unread),
            trouble: self.trouble.lock().clone(),
        }
    }
}

impl Attackers {
    /// Starts the attacks on `target`, each at its time after `begin`. The webhook must allow `image`, so that its
    /// answers are large.
    pub fn begin(attacks: &[Attack], target: &Target, image: &str, begin: Instant) -> Result<Self, Error> {
        check(attacks)?;
        let tls = Tls { alpn: b"h2", resumption: false, identity: None, pace: target.pace };
        let endpoint = Endpoint::with(&target.url, &target.server_name, &target.ca_pem, tls)?;
        let from = endpoint.is_loopback().then_some(FROM);
        let mut kept = Vec::with_capacity(attacks.len());
        let mut planned = Vec::with_capacity(attacks.len());
        for attack in attacks {
            let (shared, script) = (Arc::new(Shared::default()), Script::new(attack.name, &endpoint, image));
            planned.push((attack.clone(), Arc::new(script), Arc::clone(&shared)));
            kept.push((attack.clone(), shared));
        }
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("attacks".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let mut connections = JoinSet::new();
                for (attack, script, shared) in planned {
                    let (from_time, to_time) = (begin + attack.at.0, begin + attack.at.0 + attack.lasts.0);
                    for _ in 0..attack.connections {
                        let (endpoint, script, shared) = (endpoint.clone(), Arc::clone(&script), Arc::clone(&shared));
                        connections.spawn(async move {
                            tokio::time::sleep_until(from_time.into()).await;
                            let attacking = keep_attacking(&endpoint, from, &script, &shared);
                            let _ = tokio::time::timeout_at(to_time.into(), attacking).await;
                        });
                    }
                }
                let all = async { while connections.join_next().await.is_some() {} };
                tokio::select! {
                    _ = stopped => {}
                    () = all => {}
                }
            });
        })?;
        Ok(Self { attacks: kept, stop: Some(stop), thread: Some(thread) })
    }

    /// Each attack with its counts so far, in the order in which the scenario lists the attacks.
    pub fn counts(&self) -> Vec<(Attack, Counts)> {
        self.attacks.iter().map(|(attack, shared)| (attack.clone(), shared.counts())).collect()
    }

    /// Ends all attacks and closes their connections.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread has ended already when all attacks are over.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
