//! A mock Redis for a run. Answers the two commands that the service's cache of verdicts needs, and misbehaves as
//! planned.
//!
//! Owns the socket, the stored values, and the record rows that prove each misbehaviour.

mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use reports::record::{FaultEvent, FaultRow};
use serde_json::{Value, json};
use tokio::io::BufStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::manifest::{CACHE_AWAY, CACHE_FORGES};
use crate::accept::accept;
use crate::clock::millis;
use crate::scenario::SharedCache;
use wire::{Asked, Reply};

const CONNECTIONS_MAX: usize = 64;
/// Maximum number of stored values; the oldest values are dropped.
const VALUES_MAX: usize = 10_000;
/// The key with which the subject authenticates its values, valid for one run.
pub(super) const KEY: &str = "a key that only this run has, and no other";
/// Expiry (`end`) of a forged value, a hundred years ahead. The service's layout is `1 | end | code | value`; the
/// forged code is invalid.
const FORGED_END_MS: u64 = 4_900_000_000_000;

/// The mock Redis with its planned misbehaviour.
pub(super) struct Redis {
    address: SocketAddr,
    settings: SharedCache,
    shared: Arc<Shared>,
    there: watch::Sender<bool>,
    away: bool,
    done: bool,
    _listens: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Shared {
    forges: bool,
    values: Mutex<Values>,
    cut: AtomicU64,
    forged: AtomicU64,
}

#[derive(Debug, Default)]
struct Values {
    by_name: BTreeMap<Vec<u8>, Vec<u8>>,
    order: VecDeque<Vec<u8>>,
}

impl Redis {
    /// Listens on a free port, if the scenario has a shared cache.
    pub(super) async fn open(settings: Option<SharedCache>) -> Result<Option<Self>> {
        let Some(settings) = settings else { return Ok(None) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to listen for the cache")?;
        let (address, shared) = (listener.local_addr()?, Shared { forges: settings.forges, ..Shared::default() });
        let (shared, there, mut listens) = (Arc::new(shared), watch::Sender::new(true), JoinSet::new());
        listens.spawn(answer(listener, Arc::clone(&shared), there.subscribe()));
        Ok(Some(Self { address, settings, shared, there, away: false, done: false, _listens: listens }))
    }

    /// The section `sharedCache` of the service's configuration.
    pub(super) fn section(address: SocketAddr, key_file: &std::path::Path) -> Value {
        json!({"address": address, "plain": true, "keyFile": key_file, "timeout": "1s"})
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn planned(&self) -> Vec<FaultRow> {
        let row = |name, detail: String| row(0, name, FaultEvent::Planned, 0, detail);
        let away = self.settings.away.map(|away| row(CACHE_AWAY, format!("for {}", away.lasts)));
        let forges = self.settings.forges.then(|| row(CACHE_FORGES, "all along".to_owned()));
        away.into_iter().chain(forges).collect()
    }

    /// Begins and ends the misbehaviour whose planned time has come.
    pub(super) fn tick(&mut self, now_ms: u64) -> Option<FaultRow> {
        let away = self.settings.away.filter(|_| !self.done)?;
        let (from, to) = (millis(away.at.0), millis(away.at.0 + away.lasts.0));
        if !self.away && now_ms >= from {
            self.away = true;
            self.there.send_replace(false);
            return Some(row(now_ms, CACHE_AWAY, FaultEvent::Started, 0, String::new()));
        }
        (self.away && now_ms >= to).then(|| self.back(now_ms))
    }

    /// Ends all misbehaviour when the load is over. Returns the last rows of the misbehaviour.
    pub(super) fn finish(&mut self, now_ms: u64) -> Vec<FaultRow> {
        let back = (self.away && !self.done).then(|| self.back(now_ms));
        let forged = self.shared.forged.load(Ordering::Relaxed);
        let forges = self.settings.forges.then(|| row(now_ms, CACHE_FORGES, FaultEvent::Ended, forged, String::new()));
        back.into_iter().chain(forges).collect()
    }

    fn back(&mut self, now_ms: u64) -> FaultRow {
        self.done = true;
        self.there.send_replace(true);
        let cut = self.shared.cut.load(Ordering::Relaxed);
        row(now_ms, CACHE_AWAY, FaultEvent::Ended, cut, String::new())
    }
}

fn row(t_ms: u64, name: &str, event: FaultEvent, hits: u64, detail: String) -> FaultRow {
    let detail = (!detail.is_empty()).then_some(detail);
    FaultRow { t_ms, id: name.to_owned(), name: name.to_owned(), event, hits, ok: None, detail }
}

async fn answer(listener: TcpListener, shared: Arc<Shared>, there: watch::Receiver<bool>) {
    let serves = |stream| {
        let (shared, mut there) = (Arc::clone(&shared), there.clone());
        async move {
            let gone = async {
                let _ = there.wait_for(|there| !there).await;
            };
            tokio::select! {
                biased;
                () = gone => drop(shared.cut.fetch_add(1, Ordering::Relaxed)),
                () = serve(stream, &shared) => {}
            }
        }
    };
    accept(listener, CONNECTIONS_MAX, serves).await;
}

/// Answers commands on one connection until the connection closes or brings an invalid command.
async fn serve(stream: TcpStream, shared: &Shared) {
    let mut stream = BufStream::new(stream);
    while let Ok(Some(asked)) = wire::read(&mut stream).await {
        if wire::write(&mut stream, &shared.answer(asked)).await.is_err() {
            return;
        }
    }
}

impl Shared {
    fn answer(&self, asked: Asked) -> Reply {
        match asked {
            Asked::Get(_) if self.forges => {
                self.forged.fetch_add(1, Ordering::Relaxed);
                let value = br#"{"verified":[{"name":"nobody","evidence":"forged"}]}"#;
                Reply::Value([&[1], &FORGED_END_MS.to_be_bytes()[..], &[0; 32], value].concat())
            }
            Asked::Get(name) => Reply::Value(self.values.lock().by_name.get(&name).cloned().unwrap_or_default()),
            Asked::Set(name, value) => {
                let mut values = self.values.lock();
                if values.by_name.insert(name.clone(), value).is_none() {
                    values.order.push_back(name);
                }
                if values.order.len() > VALUES_MAX
                    && let Some(oldest) = values.order.pop_front()
                {
                    values.by_name.remove(&oldest);
                }
                Reply::Done
            }
            Asked::Other(what) => Reply::Refused(what),
        }
    }
}
