//! A pool of HTTP/1.1 connections that behaves like the one inside kube-apiserver (Go's `net/http.Transport`).
//!
//! If no connection is idle, a new connection is dialled. The call takes the new connection or a returned one,
//! whichever comes first. Of all idle connections, a call takes the most recently used. A limited number of idle
//! connections is kept for 90 s; further connections are closed when their calls end. If an idle connection was closed
//! before a byte of a request was written, the request moves to another connection. A written request is never sent
//! twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::exchange::{self, Body, Progress};
use super::{Answer, Endpoint};
use crate::failure::Failure;

/// How long an idle connection is kept: `IdleConnTimeout` of Go's default transport, which kube-apiserver uses.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// How often a request moves from a closed idle connection to another connection.
const TRIES: usize = 4;

type Connection = SendRequest<Body>;

/// The pool of connections; dropping the value closes them.
#[derive(Debug)]
pub(crate) struct Http1 {
    endpoint: Endpoint,
    idle_max: usize,
    dials_max: usize,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct State {
    /// The idle connections, least recently used first.
    idle: VecDeque<(Instant, Connection)>,
    waiting: VecDeque<(u64, oneshot::Sender<Result<Connection, Failure>>)>,
    next_waiter: u64,
    dials: usize,
}

impl Http1 {
    /// Keeps at most `idle_max` idle connections (with 0 each call gets a new connection), and never dials more than
    /// `dials_max` at the same time.
    pub(crate) fn new(endpoint: Endpoint, idle_max: usize, dials_max: usize) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            idle_max,
            dials_max,
            state: Mutex::new(State::default()),
            tasks: Mutex::new(JoinSet::new()),
        })
    }

    /// Sends a request and reads the whole answer. The caller ends the call at its deadline by dropping the future.
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut request: Request<Body>,
        progress: &Progress,
    ) -> Result<Answer, Failure> {
        for _ in 0..TRIES {
            let mut connection = self.acquire().await?;
            progress.connected();
            match connection.try_send_request(request).await {
                Ok(response) => {
                    let answer = exchange::read(response, progress).await?;
                    self.give_back(connection);
                    return Ok(answer);
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(exchange::broken(error.error())),
                },
            }
        }
        Err(Failure::http(format!("{TRIES} connections in a row were closed before the request could be written")))
    }

    async fn acquire(self: &Arc<Self>) -> Result<Connection, Failure> {
        if let Some(connection) = self.take_idle() {
            return Ok(connection);
        }
        let (ready, wait) = oneshot::channel();
        let (id, dial) = {
            let mut state = self.state.lock();
            // Calls that timed out leave their entry behind.
            state.waiting.retain(|(_, waiter)| !waiter.is_closed());
            let id = state.next_waiter;
            state.next_waiter += 1;
            state.waiting.push_back((id, ready));
            let dial = state.dials < self.dials_max;
            state.dials += usize::from(dial);
            (id, dial)
        };
        if dial {
            let pool = Arc::clone(self);
            self.own(async move { pool.dial(id).await });
        }
        let closed = || Failure::http("the pool was closed".to_owned());
        wait.await.map_err(|_| closed())?
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut state = self.state.lock();
        while state.idle.front().is_some_and(|(since, _)| since.elapsed() >= IDLE_LIMIT) {
            state.idle.pop_front();
        }
        while let Some((_, connection)) = state.idle.pop_back() {
            if connection.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Dials a connection for a waiting call. If the waiting call was served meanwhile, the connection goes to the call
    /// that has waited longest.
    async fn dial(self: Arc<Self>, id: u64) {
        let outcome = match self.endpoint.connect().await {
            Ok(stream) => {
                http1::handshake::<_, Body>(TokioIo::new(stream)).await.map_err(|error| exchange::broken(&error))
            }
            Err(failure) => Err(failure),
        };
        self.state.lock().dials -= 1;
        match outcome {
            Ok((connection, driver)) => {
                self.own(async move {
                    // An error of the connection reaches the call that uses it; an idle one may just close.
                    let _ = driver.await;
                });
                self.hand_out(connection);
            }
            Err(failure) => self.refuse(id, failure),
        }
    }

    /// Waits until the connection can take another request, then gives it to a call. A connection whose answer has
    /// `Connection: close` ends.
    fn give_back(self: &Arc<Self>, mut connection: Connection) {
        if self.idle_max == 0 {
            return;
        }
        if connection.is_ready() {
            self.hand_out(connection);
            return;
        }
        let pool = Arc::clone(self);
        self.own(async move {
            if connection.ready().await.is_ok() {
                pool.hand_out(connection);
            }
        });
    }

    fn hand_out(&self, mut connection: Connection) {
        let mut state = self.state.lock();
        while let Some((_, waiter)) = state.waiting.pop_front() {
            let Err(Ok(unused)) = waiter.send(Ok(connection)) else { return };
            connection = unused;
        }
        if state.idle.len() < self.idle_max {
            state.idle.push_back((Instant::now(), connection));
        }
    }

    /// Fails the call for which a connection was dialled. If that call was served meanwhile, the call that has waited
    /// longest fails instead.
    fn refuse(&self, id: u64, failure: Failure) {
        let mut state = self.state.lock();
        let at = state.waiting.iter().position(|(waiter, _)| *waiter == id).unwrap_or(0);
        if let Some((_, waiter)) = state.waiting.remove(at) {
            let _ = waiter.send(Err(failure));
        }
    }

    fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}
