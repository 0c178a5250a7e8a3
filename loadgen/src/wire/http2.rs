//! One HTTP/2 connection, one stream a call; dialled again when it is gone.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::exchange::{self, Body, Progress};
use super::{Answer, Endpoint, Failure};

/// Go's HTTP/2 client gives each stream 4 MiB; the default of 64 KiB would stall on large patches.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// A dead connection is noticed by these pings (Kubernetes: `HTTP2_READ_IDLE_TIMEOUT_SECONDS`, `HTTP2_PING_TIMEOUT_SECONDS`).
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
/// What HTTP/2 stacks assume before the server's SETTINGS frame has come (RFC 9113, section 6.5.2, recommends it).
const STREAMS_UNTIL_TOLD: usize = 100;
/// A request that was not written before its connection closed is moved to a new one so many times.
const TRIES: usize = 3;

type Connection = SendRequest<Body>;

/// The connection. It lives as long as this does.
#[derive(Debug)]
pub(crate) struct Http2 {
    endpoint: Endpoint,
    state: Mutex<State>,
    streams_max: Arc<AtomicUsize>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Connection>,
    dialling: bool,
    waiting: Vec<oneshot::Sender<Result<Connection, Failure>>>,
}

impl Http2 {
    pub(crate) fn new(endpoint: Endpoint) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            state: Mutex::new(State::default()),
            streams_max: Arc::new(AtomicUsize::new(STREAMS_UNTIL_TOLD)),
            tasks: Mutex::new(JoinSet::new()),
        })
    }

    /// How many streams the server allows at once, as far as is known. More would wait inside the connection, unseen.
    pub(crate) fn streams_max(&self) -> usize {
        self.streams_max.load(Ordering::Relaxed)
    }

    /// Sends and reads the whole answer. The caller sets the deadline by dropping the future.
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut request: Request<Body>,
        progress: &Progress,
    ) -> Result<Answer, Failure> {
        for _ in 0..TRIES {
            let mut connection = self.acquire().await?;
            progress.connected();
            match connection.try_send_request(request).await {
                Ok(response) => return exchange::read(response, progress).await,
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(exchange::broken(error.error())),
                },
            }
        }
        Err(Failure::http(format!("{TRIES} connections in a row were closed before the request could be written")))
    }

    async fn acquire(self: &Arc<Self>) -> Result<Connection, Failure> {
        let (ready, wait) = oneshot::channel();
        let dial = {
            let mut state = self.state.lock();
            if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.is_closed()) {
                return Ok(connection.clone());
            }
            state.connection = None;
            state.waiting.retain(|waiter| !waiter.is_closed());
            state.waiting.push(ready);
            !std::mem::replace(&mut state.dialling, true)
        };
        if dial {
            let this = Arc::clone(self);
            self.own(async move { this.dial().await });
        }
        let closed = || Failure::http("the client was closed".to_owned());
        wait.await.map_err(|_| closed())?
    }

    async fn dial(self: Arc<Self>) {
        let outcome = match self.endpoint.connect().await {
            Ok(stream) => http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_LIMIT)
                .handshake::<_, Body>(TokioIo::new(stream))
                .await
                .map_err(|error| exchange::broken(&error)),
            Err(failure) => Err(failure),
        };
        let outcome = outcome.map(|(connection, mut driver)| {
            let streams_max = Arc::clone(&self.streams_max);
            self.own(poll_fn(move |cx| {
                // An error of the connection reaches every call on it.
                let end = Pin::new(&mut driver).poll(cx).map(|_| ());
                // Polled whenever a frame arrives, so a change of the server's settings is seen at once.
                streams_max.store(driver.current_max_send_streams(), Ordering::Relaxed);
                end
            }));
            connection
        });
        let waiting = {
            let mut state = self.state.lock();
            state.dialling = false;
            state.connection = outcome.as_ref().ok().cloned();
            std::mem::take(&mut state.waiting)
        };
        for waiter in waiting {
            // A call that ran into its deadline no longer listens.
            let _ = waiter.send(outcome.clone());
        }
    }

    fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}
