//! A mock Redis for a run. Answers the two commands that the service's cache of verdicts needs, and misbehaves while a
//! fault asks for it.
//!
//! Owns the socket, the stored values, and the numbers of cut connections and forged answers.

mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::BufStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accept::accept;
use crate::scenario::SharedCache;
use wire::{Command, Reply};

const CONNECTIONS_MAX: usize = 64;
/// Maximum number of stored values; the oldest values are dropped.
const VALUES_MAX: usize = 10_000;
/// The key with which the subject authenticates its values, valid for one run.
pub(super) const KEY: &str = "a key that only this run has, and no other";
/// Expiry (`end`) of a forged value, a hundred years ahead. The service's layout is `1 | end | code | value`; the
/// forged code is invalid.
const FORGED_END_MS: u64 = 4_900_000_000_000;

/// The mock Redis. It listens until this value is dropped.
pub(super) struct Redis {
    address: SocketAddr,
    cache: Arc<Cache>,
    _listens: JoinSet<()>,
}

/// The stored values, and the present misbehaviour.
#[derive(Debug)]
pub(super) struct Cache {
    there: watch::Sender<bool>,
    forges: AtomicBool,
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
        let Some(SharedCache {}) = settings else { return Ok(None) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to listen for the cache")?;
        let (address, mut listens) = (listener.local_addr()?, JoinSet::new());
        let cache = Arc::new(Cache {
            there: watch::Sender::new(true),
            forges: AtomicBool::new(false),
            values: Mutex::default(),
            cut: AtomicU64::new(0),
            forged: AtomicU64::new(0),
        });
        listens.spawn(answer(listener, Arc::clone(&cache)));
        Ok(Some(Self { address, cache, _listens: listens }))
    }

    /// The section `sharedCache` of the service's configuration.
    pub(super) fn section(address: SocketAddr, key_file: &std::path::Path) -> Value {
        json!({"address": address, "plain": true, "keyFile": key_file, "timeout": "1s"})
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.cache)
    }
}

impl Cache {
    /// Cuts every connection, including new ones, until the cache is set to be there again.
    pub(super) fn set_there(&self, is_there: bool) {
        self.there.send_replace(is_there);
    }

    /// Number of connections that were cut.
    pub(super) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Answers every read with a forged verdict, until forging ends.
    pub(super) fn set_forges(&self, forges: bool) {
        self.forges.store(forges, Ordering::Relaxed);
    }

    /// Number of reads that got a forged verdict.
    pub(super) fn forged(&self) -> u64 {
        self.forged.load(Ordering::Relaxed)
    }
}

async fn answer(listener: TcpListener, cache: Arc<Cache>) {
    let serves = |stream| {
        let (cache, mut there) = (Arc::clone(&cache), cache.there.subscribe());
        async move {
            let gone = async {
                let _ = there.wait_for(|there| !there).await;
            };
            tokio::select! {
                biased;
                () = gone => drop(cache.cut.fetch_add(1, Ordering::Relaxed)),
                () = serve(stream, &cache) => {}
            }
        }
    };
    accept(listener, CONNECTIONS_MAX, serves).await;
}

/// Answers commands on one connection until the connection closes or brings an invalid command.
async fn serve(stream: TcpStream, cache: &Cache) {
    let mut stream = BufStream::new(stream);
    while let Ok(Some(asked)) = wire::read(&mut stream).await {
        if wire::write(&mut stream, &cache.answer(asked)).await.is_err() {
            return;
        }
    }
}

impl Cache {
    fn answer(&self, asked: Command) -> Reply {
        match asked {
            Command::Get(_) if self.forges.load(Ordering::Relaxed) => {
                self.forged.fetch_add(1, Ordering::Relaxed);
                let value = br#"{"verified":[{"name":"nobody","evidence":"forged"}]}"#;
                Reply::Value([&[1], &FORGED_END_MS.to_be_bytes()[..], &[0; 32], value].concat())
            }
            Command::Get(name) => Reply::Value(self.values.lock().by_name.get(&name).cloned().unwrap_or_default()),
            Command::Set(name, value) => {
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
            Command::Other(what) => Reply::Refused(what),
        }
    }
}
