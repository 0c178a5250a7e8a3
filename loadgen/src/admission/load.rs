//! [`Load`]: a plan under way. Owns the pacing thread, the worker thread and the recorder.
//!
//! The worker is a current-thread runtime on its own thread, so that nothing the harness does can delay a call. It takes
//! no decision about *when*: what the pacing thread hands over is sent at once or counted as overflow.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::config::Client;
use super::corpus::Corpus;
use super::interval::{Interval, Recorder, Times};
use super::oracle::{self, Judgement};
use super::plan::{self, Plan};
use super::{Error, answer};
use crate::pace::{Counts, Due, Pacer};
use crate::wire::{Answer, Body, Endpoint, EndpointError, Failure, Http1, Http2, Progress};

/// `MaxIdleConnsPerHost` of kube-apiserver's webhook clients.
const IDLE_MAX: usize = 25;
/// Requests that the pacing thread may hand over before the worker takes one. More would only be late.
const QUEUE: usize = 1024;

/// The webhook under load.
#[derive(Debug, Clone)]
pub struct Target {
    /// `https://127.0.0.1:8443/mutate`.
    pub url: String,
    /// What its certificate must be for, as `<service>.<namespace>.svc`; empty: the host of the URL.
    pub server_name: String,
    /// The CA certificates that signed it, as PEM.
    pub ca_pem: String,
}

/// Load under way. Dropping it stops it at once.
#[derive(Debug)]
pub struct Load {
    pacer: Pacer,
    worker: Option<std::thread::JoinHandle<()>>,
    shared: Arc<Shared>,
    drain_until: watch::Sender<Option<Instant>>,
    done: Option<oneshot::Receiver<()>>,
}

impl Load {
    /// Starts the threads. The first request goes out at `begin`; when that is past, what is overdue goes out at once
    /// and counts as late.
    pub fn start(plan: Plan, target: &Target, begin: Instant) -> Result<Self, Error> {
        let caller = Arc::new(Caller::new(&plan, target)?);
        let in_flight_max = plan.config().max_in_flight as usize;
        let shared = Arc::new(Shared::default());
        let (out, queue) = mpsc::channel(QUEUE);
        let (drain_until, drain) = watch::channel(None);
        let (finished, done) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let worker = Worker { caller, shared: Arc::clone(&shared), calls: JoinSet::new(), in_flight_max };
        let thread = std::thread::Builder::new().name("admission-worker".to_owned()).spawn(move || {
            runtime.block_on(worker.run(queue, drain));
            let _ = finished.send(());
        })?;
        let pacer = Pacer::start("admission-pacer", begin, plan.requests(), out, Arc::clone(&shared.counts))?;
        Ok(Self { pacer, worker: Some(thread), shared, drain_until, done: Some(done) })
    }

    /// What was counted and measured since the last call. Cheap: recorders are swapped.
    pub fn take(&self) -> Interval {
        self.shared.take()
    }

    /// Requests so far whose time has come and that were not taken by [`Load::take`] yet.
    pub fn planned_now(&self) -> u64 {
        self.shared.counts.planned.load(Ordering::Relaxed)
    }

    /// Plans no further request, lets calls end for so long, cuts off the rest (they count as `abandoned`), and returns
    /// what was counted since the last [`Load::take`].
    pub async fn stop(mut self, drain: Duration) -> Interval {
        self.pacer.stop();
        self.drain_until.send_replace(Some(Instant::now() + drain));
        if let Some(done) = self.done.take() {
            // An error means that the worker panicked, which the panic hook has printed.
            let _ = done.await;
        }
        self.join();
        self.shared.take()
    }

    fn join(&mut self) {
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.pacer.stop();
        self.drain_until.send_replace(Some(Instant::now()));
        self.join();
    }
}

#[derive(Debug, Default)]
struct Shared {
    counts: Arc<Counts>,
    recorder: Mutex<Recorder>,
}

impl Shared {
    fn take(&self) -> Interval {
        // Made before the lock is taken: filling 750 KiB with zeros is longer than a call may wait.
        let fresh = Recorder::default();
        let full = std::mem::replace(&mut *self.recorder.lock(), fresh);
        full.finish(self.counts.take())
    }
}

struct Worker {
    caller: Arc<Caller>,
    shared: Arc<Shared>,
    calls: JoinSet<()>,
    in_flight_max: usize,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::Receiver<Due<plan::Request>>, mut drain: watch::Receiver<Option<Instant>>) {
        loop {
            tokio::select! {
                biased;
                due = queue.recv() => match due {
                    Some(due) => self.begin(due),
                    None => break,
                },
                Some(_) = self.calls.join_next() => {}
            }
        }
        let over = async {
            let until = drain.wait_for(Option::is_some).await.ok().and_then(|until| *until);
            tokio::time::sleep_until(until.unwrap_or_else(Instant::now).into()).await;
        };
        let ended = async { while self.calls.join_next().await.is_some() {} };
        tokio::select! {
            () = ended => {}
            () = over => {}
        }
        // Each call that is cut off counts itself.
        self.calls.shutdown().await;
    }

    fn begin(&mut self, due: Due<plan::Request>) {
        while self.calls.try_join_next().is_some() {}
        if self.calls.len() >= self.in_flight_max.min(self.caller.streams_max()) {
            self.shared.counts.overflow_one();
            return;
        }
        let call =
            Call { caller: Arc::clone(&self.caller), shared: Arc::clone(&self.shared), due, stage: Stage::Handed };
        self.calls.spawn(call.run());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Handed,
    Begun,
    Over,
}

/// One call. However it ends, it is counted exactly once.
struct Call {
    caller: Arc<Caller>,
    shared: Arc<Shared>,
    due: Due<plan::Request>,
    stage: Stage,
}

impl Call {
    async fn run(mut self) {
        let begun = Instant::now();
        self.stage = Stage::Begun;
        let planned = self.due.planned;
        self.shared.recorder.lock().sent(begun.saturating_duration_since(planned));
        let outcome = self.caller.call(&self.due.item).await;
        let end = Instant::now();
        self.stage = Stage::Over;
        let times = Times { response: end.saturating_duration_since(planned), service: end - begun };
        let judged = outcome.and_then(|answer| self.caller.judge(&self.due.item, &answer));
        let mut recorder = self.shared.recorder.lock();
        match judged {
            Ok(judgement) => recorder.answered(times, judgement),
            Err(failure) => recorder.failed(times, failure),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        match self.stage {
            Stage::Handed => self.shared.counts.overflow_one(),
            Stage::Begun => self.shared.recorder.lock().abandoned(1),
            Stage::Over => {}
        }
    }
}

/// Knows how to put a request on the wire and what its answer is worth.
struct Caller {
    corpus: Arc<Corpus>,
    transport: Transport,
    uri: Uri,
    headers: HeaderMap,
    timeout: Duration,
}

enum Transport {
    Http1(Arc<Http1>),
    Http2(Arc<Http2>),
}

impl Caller {
    fn new(plan: &Plan, target: &Target) -> Result<Self, Error> {
        let config = plan.config();
        let alpn: &[u8] = if config.client == Client::Http2 { b"h2" } else { b"http/1.1" };
        let endpoint = Endpoint::new(&target.url, &target.server_name, &target.ca_pem, alpn)?;
        let path = format!("{}?timeout={}s", endpoint.path, config.timeout.0.as_secs());
        let bad = |why: String| Error::from(EndpointError::Url { url: target.url.clone(), why });
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
        let uri = if config.client == Client::Http2 {
            format!("https://{}{path}", endpoint.authority)
        } else {
            let host = HeaderValue::from_str(&endpoint.authority).map_err(|error| bad(error.to_string()))?;
            headers.insert(HOST, host);
            path
        };
        let uri = uri.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
        let dials_max = config.max_in_flight as usize;
        let transport = match config.client {
            Client::Apiserver => Transport::Http1(Http1::new(endpoint, IDLE_MAX, dials_max)),
            Client::NoReuse => Transport::Http1(Http1::new(endpoint, 0, dials_max)),
            Client::Http2 => Transport::Http2(Http2::new(endpoint)),
        };
        Ok(Self { corpus: Arc::clone(plan.corpus()), transport, uri, headers, timeout: config.timeout.0 })
    }

    fn streams_max(&self) -> usize {
        match &self.transport {
            Transport::Http1(_) => usize::MAX,
            Transport::Http2(client) => client.streams_max(),
        }
    }

    async fn call(&self, call: &plan::Request) -> Result<Answer, Failure> {
        let mut request = Request::new(Body::new(self.corpus.template(call.template).with_uid(&call.uid)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let progress = Progress::default();
        let exchange = async {
            match &self.transport {
                Transport::Http1(client) => client.call(request, &progress).await,
                Transport::Http2(client) => client.call(request, &progress).await,
            }
        };
        let outcome = tokio::time::timeout(self.timeout, exchange).await;
        outcome.unwrap_or_else(|_| Err(progress.timeout(self.timeout)))
    }

    fn judge(&self, call: &plan::Request, answer: &Answer) -> Result<Judgement, Failure> {
        oracle::judge(self.corpus.template(call.template), answer::check(answer, &call.uid)?)
    }
}
