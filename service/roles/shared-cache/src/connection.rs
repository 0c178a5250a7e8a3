//! The connection to Redis, and the task that opens it again after a failure.
//!
//! A lookup uses the open connection or fails: only this task waits for a new connection. After a late or invalid
//! answer, the connection is closed, and Redis gets no requests for a while.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use service_core::wire::{Trust, client_config};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use crate::exchange::{Asker, Exchange, Login, Stream};
use crate::metrics::Metrics;
use crate::resp::{self, Reply};
use crate::{OpenError, SharedCache, VALUE_BYTES_MAX};

/// Time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which Redis gets no requests after the first failure; the time doubles with each further failure.
const REST_MIN: Duration = Duration::from_millis(200);
const REST_MAX: Duration = Duration::from_secs(10);

pub struct Connection {
    settings: SharedCache,
    tls: Option<TlsConnector>,
    open: Mutex<Option<Open>>,
    broken: Arc<Notify>,
    metrics: Arc<Metrics>,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Clone)]
struct Open {
    asker: Asker,
    serial: u64,
    _driver: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
pub enum Lookup {
    Away,
    /// The answer was late or invalid.
    Failed,
    /// Redis has no value with the requested name.
    Absent,
    /// The value with the requested name.
    Found(Vec<u8>),
}

impl Connection {
    /// Reads the files of the settings and starts to connect.
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

    /// Looks up the value with the given name, by `deadline`.
    pub async fn value(&self, name: &str, deadline: Instant) -> Lookup {
        let Some(open) = self.open.lock().clone() else { return Lookup::Away };
        // A correct Redis never sends more than the largest value.
        let last = (VALUE_BYTES_MAX - 1).to_string();
        let ask = resp::command(&[b"GETRANGE", name.as_bytes(), b"0", last.as_bytes()]);
        match self.answer(&open, ask, VALUE_BYTES_MAX, deadline).await {
            Some(Reply::Value(value)) if value.is_empty() => Lookup::Absent,
            Some(Reply::Nil) => Lookup::Absent,
            Some(Reply::Value(value)) => Lookup::Found(value),
            Some(_) => {
                self.lose(open.serial, "it answered what is no value");
                Lookup::Failed
            }
            None => Lookup::Failed,
        }
    }

    /// Stores a value for the time `life`; returns the outcome as a metric label.
    pub async fn keep(&self, name: &str, value: &[u8], life: Duration) -> &'static str {
        let Some(open) = self.open.lock().clone() else { return "away" };
        let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX >> 16).max(1).to_string();
        let set = resp::command(&[b"SET", name.as_bytes(), value, b"PX", life.as_bytes()]);
        match self.answer(&open, set, 0, Instant::now() + self.settings.timeout).await {
            Some(Reply::Line(line)) if line == b"OK" => "kept",
            _ => "failed",
        }
    }

    /// The answer to a command, with a value of at most `most` bytes; `None` for an error reply, after which the
    /// connection stays open.
    async fn answer(&self, open: &Open, command: Vec<u8>, most: usize, deadline: Instant) -> Option<Reply> {
        let own = Instant::now() + self.settings.timeout;
        match timeout_at(deadline.min(own), open.asker.ask(command, most)).await {
            // Redis has no room, or forbids it; or the connection has ended, and its driver has logged why.
            Ok(Some(Reply::Error(_)) | None) => None,
            Ok(reply) => reply,
            // A caller with less time than the timeout shows nothing about the cache.
            Err(_) if deadline < own => None,
            Err(_) => {
                self.lose(open.serial, "it did not answer in time");
                None
            }
        }
    }

    /// Starts to use the new connection, which has the number `serial`.
    fn gain(self: &Arc<Self>, serial: u64, asker: Asker, exchange: Exchange) {
        // Held until everything is recorded, so that a connection that ends at once is lost after it was there.
        let mut current = self.open.lock();
        let driver = tokio::spawn(drive(Arc::downgrade(self), serial, exchange));
        *current = Some(Open { asker, serial, _driver: Arc::new(AbortOnDropHandle::new(driver)) });
        self.metrics.connected.set(1);
        tracing::info!(name: crate::events::SHARED_CACHE_FOUND, "the shared cache is there");
    }

    /// Closes the connection with the number `serial`, unless it is already closed.
    fn lose(&self, serial: u64, why: &str) {
        let mut current = self.open.lock();
        if current.as_ref().is_some_and(|current| current.serial == serial) {
            *current = None;
            self.metrics.connected.set(0);
            self.broken.notify_one();
            tracing::warn!(name: crate::events::SHARED_CACHE_LOST, error = %why, "the shared cache is not asked for a while");
        }
    }

    async fn connect(&self) -> Result<(Asker, Exchange), String> {
        let SharedCache { host, port, .. } = &self.settings;
        let tcp = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| error.to_string())?;
        let _ = tcp.set_nodelay(true);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => Box::new(tls.connect(name(&self.settings)?, tcp).await.map_err(|error| error.to_string())?),
        };
        // Read each time, so that a new password is used.
        let login = login(&self.settings)?;
        Exchange::greet(stream, &login).await.map_err(|ended| ended.to_string())
    }
}

/// Reads and writes a connection until it ends. The end of the connection is recorded before waiting callers notice it.
async fn drive(connection: Weak<Connection>, serial: u64, mut exchange: Exchange) {
    let ended = exchange.run().await;
    if let Some(this) = connection.upgrade() {
        this.lose(serial, &ended.to_string());
    }
    drop(exchange);
}

/// Opens a connection whenever no connection is open, until the cache is dropped.
async fn follow(connection: Weak<Connection>) {
    let (mut rest, mut serial, mut said) = (REST_MIN, 0u64, false);
    loop {
        let Some(this) = connection.upgrade() else { return };
        serial += 1;
        let made = timeout(CONNECT_TIMEOUT, this.connect()).await;
        let made = made.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        match made {
            Ok((asker, exchange)) => {
                let since = Instant::now();
                this.gain(serial, asker, exchange);
                said = false;
                let broken = Arc::clone(&this.broken);
                drop(this);
                broken.notified().await;
                // A connection that lasted was healthy.
                rest = if since.elapsed() > REST_MAX { REST_MIN } else { rest.saturating_mul(2).min(REST_MAX) };
            }
            Err(error) => {
                if !said {
                    tracing::warn!(name: crate::events::SHARED_CACHE_LOST, %error, "the shared cache cannot be reached");
                    said = true;
                }
                rest = rest.saturating_mul(2).min(REST_MAX);
                drop(this);
            }
        }
        sleep(rest).await;
    }
}

fn login(settings: &SharedCache) -> Result<Login, String> {
    let password = settings.password_file.as_deref().map(read).transpose()?;
    let password = password.map(|password| password.trim_end_matches(['\r', '\n']).to_owned());
    Ok(Login { user: settings.user.clone(), password })
}

fn name(settings: &SharedCache) -> Result<ServerName<'static>, String> {
    let name = settings.server_name.as_ref().unwrap_or(&settings.host);
    ServerName::try_from(name.clone()).map_err(|error| format!("`{name}`: {error}"))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
