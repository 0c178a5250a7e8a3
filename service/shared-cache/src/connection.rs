//! The one connection to Redis, and the task that makes it again.
//!
//! A question uses the connection that is there, or none: only this task waits for one to be made. Whoever answers late or wrongly loses the
//! connection, and is left alone for a while.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisResult, Value};
use rustls_pki_types::ServerName;
use service_core::logs::names;
use service_core::wire::{Trust, client_config};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::bounded::{Allowance, Bounded};
use crate::metrics::Metrics;
use crate::{OpenError, SharedCache, VALUE_BYTES_MAX};

/// Longest time for a connection to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A Redis that failed is left alone for so long, doubled each time.
const REST_MIN: Duration = Duration::from_millis(200);
const REST_MAX: Duration = Duration::from_secs(10);
/// What every answer may have beside its value.
const FRAME_BYTES: usize = 256;
/// What the beginning of a connection may bring: three short answers.
const GREETING_BYTES: usize = 4 << 10;
/// Answers that may be under way, bytes: some hundred large ones.
const ALLOWED_BYTES_MAX: usize = 4 << 20;

/// The connection.
pub struct Connection {
    settings: SharedCache,
    tls: Option<TlsConnector>,
    open: Mutex<Option<Open>>,
    /// The connection is gone.
    broken: Arc<Notify>,
    metrics: Arc<Metrics>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// One that is there. The task that moves its bytes ends with it.
#[derive(Clone)]
struct Open {
    redis: MultiplexedConnection,
    allowance: Allowance,
    serial: u64,
    _driver: Arc<AbortOnDropHandle<()>>,
}

/// What became of a question.
#[derive(Debug)]
pub enum Asked {
    /// There is no connection.
    Away,
    /// No answer in time, or one that is none.
    Failed,
    /// Nothing is kept under the name.
    Absent,
    /// What is kept under the name.
    Found(Vec<u8>),
}

impl Connection {
    /// Reads what files say and begins to connect.
    pub fn begin(settings: &SharedCache, metrics: Arc<Metrics>) -> Result<Arc<Self>, OpenError> {
        let wrong = |key: &'static str, what: String| OpenError { key, what };
        let tls = if settings.plain {
            None
        } else {
            let pem = settings.ca_file.as_deref().map(read).transpose().map_err(|what| wrong("caFile", what))?;
            let trust = pem.as_deref().map_or(Trust::System, |pem| Trust::Pem(pem.as_bytes()));
            let config = client_config(trust, None).map_err(|error| wrong("caFile", error.to_string()))?;
            name(settings).map_err(|what| wrong("serverName", what))?;
            Some(TlsConnector::from(Arc::new(config)))
        };
        login(settings).map_err(|what| wrong("passwordFile", what))?;
        let (open, broken, task) = (Mutex::new(None), Arc::new(Notify::new()), Mutex::new(None));
        let this = Arc::new(Self { settings: settings.clone(), tls, open, broken, metrics, task });
        let running = AbortOnDropHandle::new(tokio::spawn(follow(Arc::downgrade(&this))));
        *this.task.lock() = Some(running);
        Ok(this)
    }

    /// What is kept under a name.
    pub async fn value(&self, name: &str, deadline: Instant) -> Asked {
        let Some(open) = self.open.lock().clone() else { return Asked::Away };
        open.allowance.add(VALUE_BYTES_MAX + FRAME_BYTES);
        let mut ask = redis::cmd("GETRANGE");
        // No more than a value may have is ever sent by a Redis that does as it is told.
        ask.arg(name).arg(0).arg(VALUE_BYTES_MAX - 1);
        match self.answer(&open, &ask, deadline).await {
            Some(Value::BulkString(value)) if value.is_empty() => Asked::Absent,
            Some(Value::Nil) => Asked::Absent,
            Some(Value::BulkString(value)) => Asked::Found(value),
            Some(_) => {
                self.lose(&open, "it answered what is no value");
                Asked::Failed
            }
            None => Asked::Failed,
        }
    }

    /// Keeps a value for so long; answers what became of it.
    pub async fn keep(&self, name: &str, value: Vec<u8>, life: Duration) -> &'static str {
        let Some(open) = self.open.lock().clone() else { return "away" };
        open.allowance.add(FRAME_BYTES);
        let mut set = redis::cmd("SET");
        set.arg(name).arg(value).arg("PX").arg(u64::try_from(life.as_millis()).unwrap_or(u64::MAX >> 16).max(1));
        let kept = self.answer(&open, &set, Instant::now() + self.settings.timeout).await;
        if kept == Some(Value::Okay) { "kept" } else { "failed" }
    }

    /// The answer to a command. One that says no is none, and no reason to give the connection up.
    async fn answer(&self, open: &Open, command: &redis::Cmd, deadline: Instant) -> Option<Value> {
        let mut redis = open.redis.clone();
        let own = Instant::now() + self.settings.timeout;
        let asked: Result<RedisResult<Value>, _> =
            timeout_at(deadline.min(own), redis.send_packed_command(command)).await;
        match asked {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error))
                if error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error() =>
            {
                self.lose(open, &error.to_string());
                None
            }
            // No room, or not allowed.
            Ok(Err(_)) => None,
            // A caller with less time than the cache has says nothing about the cache.
            Err(_) if deadline < own => None,
            Err(_) => {
                self.lose(open, "it did not answer in time");
                None
            }
        }
    }

    /// Gives up a connection, once.
    fn lose(&self, open: &Open, why: &str) {
        let mut current = self.open.lock();
        if current.as_ref().is_some_and(|current| current.serial == open.serial) {
            *current = None;
            self.metrics.connected.set(0);
            self.broken.notify_one();
            tracing::warn!(name: names::SHARED_CACHE_LOST, error = %why, "the shared cache is not asked for a while");
        }
    }

    async fn connect(&self, serial: u64) -> Result<Open, String> {
        let SharedCache { host, port, .. } = &self.settings;
        let tcp = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| error.to_string())?;
        let _ = tcp.set_nodelay(true);
        match &self.tls {
            None => self.greet(tcp, serial).await,
            Some(tls) => {
                let stream = tls.connect(name(&self.settings)?, tcp).await.map_err(|error| error.to_string())?;
                self.greet(stream, serial).await
            }
        }
    }

    async fn greet<S>(&self, stream: S, serial: u64) -> Result<Open, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let allowance = Allowance::new(GREETING_BYTES, ALLOWED_BYTES_MAX);
        let stream = Bounded::new(stream, allowance.clone());
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        // Read each time, so that another password is followed.
        let login = login(&self.settings)?;
        let made = MultiplexedConnection::new_with_config(&login, stream, config).await;
        let (redis, driver) = made.map_err(|error| error.to_string())?;
        let driver = Arc::new(AbortOnDropHandle::new(tokio::spawn(driver.map(drop))));
        Ok(Open { redis, allowance, serial, _driver: driver })
    }
}

/// Makes the connection whenever there is none, until nobody uses it.
async fn follow(connection: Weak<Connection>) {
    let (mut rest, mut serial, mut said) = (REST_MIN, 0u64, false);
    loop {
        let Some(this) = connection.upgrade() else { return };
        serial += 1;
        let made = timeout(CONNECT_TIMEOUT, this.connect(serial)).await;
        let made = made.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        match made {
            Ok(open) => {
                let since = Instant::now();
                *this.open.lock() = Some(open);
                this.metrics.connected.set(1);
                tracing::info!(name: names::SHARED_CACHE_FOUND, "the shared cache is there");
                said = false;
                let broken = Arc::clone(&this.broken);
                drop(this);
                broken.notified().await;
                // One that lasted was well.
                rest = if since.elapsed() > REST_MAX { REST_MIN } else { rest.saturating_mul(2).min(REST_MAX) };
            }
            Err(error) => {
                if !said {
                    tracing::warn!(name: names::SHARED_CACHE_LOST, %error, "the shared cache cannot be reached");
                    said = true;
                }
                rest = rest.saturating_mul(2).min(REST_MAX);
                drop(this);
            }
        }
        sleep(rest).await;
    }
}

fn login(settings: &SharedCache) -> Result<RedisConnectionInfo, String> {
    let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(user) = &settings.user {
        login = login.set_username(user);
    }
    if let Some(path) = &settings.password_file {
        login = login.set_password(read(path)?.trim_end_matches(['\r', '\n']));
    }
    Ok(login)
}

fn name(settings: &SharedCache) -> Result<ServerName<'static>, String> {
    let name = settings.server_name.as_ref().unwrap_or(&settings.host);
    ServerName::try_from(name.clone()).map_err(|error| format!("`{name}`: {error}"))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
