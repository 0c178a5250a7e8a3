//! The client `http2`: one connection, one stream a call. Owns its worker thread, and its pacing thread in an open loop.
//!
//! The worker is a current-thread runtime on its own thread, so that nothing the harness does can delay a call. It takes
//! no decision about *when*: what the pacing thread hands over is sent at once or counted as overflow.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::config::Config;
use super::corpus::Corpus;
use super::generator::{ACCEPTED, AGENT, JSON};
use super::interval::{Phases, Times};
use super::load::Shared;
use super::oracle::{self, Judgement};
use super::{Error, answer, plan};
use crate::pace::{Due, Pacer};
use crate::wire::{Answer, Body, Endpoint, EndpointError, Failure, Http2, Progress};

/// Requests that the pacing thread may hand over before the worker takes one. More would only be late.
const QUEUE: usize = 1024;

/// Streams under way.
#[derive(Debug)]
pub(super) struct Streams {
    /// `None` in a closed loop.
    pacer: Option<Pacer>,
    drain_until: watch::Sender<Option<Instant>>,
}

impl Streams {
    /// Starts the threads; `finished` hears when the worker is over. Without a `begin` it is a closed loop: as many calls
    /// as may be in flight, and the next request whenever one is over.
    pub(super) fn start(
        number: usize,
        (config, endpoint, corpus, in_flight_max): (&Config, Endpoint, Arc<Corpus>, usize),
        (share, begin): (impl Iterator<Item = (Duration, plan::Request)> + Send + 'static, Option<Instant>),
        shared: Arc<Shared>,
        finished: oneshot::Sender<()>,
    ) -> Result<(Self, JoinHandle<()>), Error> {
        let caller = Arc::new(Caller::new(config, endpoint, corpus)?);
        let (drain_until, drain) = watch::channel(None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counts = Arc::clone(&shared.counts);
        let worker = Worker { caller, shared, calls: JoinSet::new(), in_flight_max };
        let builder = std::thread::Builder::new().name(format!("admission-{number}"));
        let Some(begin) = begin else {
            let thread = builder.spawn(move || {
                runtime.block_on(worker.run_closed_loop(share, drain));
                let _ = finished.send(());
            })?;
            return Ok((Self { pacer: None, drain_until }, thread));
        };
        let (out, queue) = mpsc::channel(QUEUE);
        let thread = builder.spawn(move || {
            runtime.block_on(worker.run(queue, drain));
            let _ = finished.send(());
        })?;
        let pacer = Pacer::start(&format!("admission-pacer-{number}"), begin, share, out, counts)?;
        Ok((Self { pacer: Some(pacer), drain_until }, thread))
    }

    /// Plans no further request and cuts off what is not over by then.
    pub(super) fn stop(&self, until: Instant) {
        if let Some(pacer) = &self.pacer {
            pacer.stop();
        }
        self.drain_until.send_replace(Some(until));
    }
}

struct Worker {
    caller: Arc<Caller>,
    shared: Arc<Shared>,
    calls: JoinSet<()>,
    in_flight_max: usize,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::Receiver<Due<plan::Request>>, drain: watch::Receiver<Option<Instant>>) {
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
        self.drain(drain).await;
    }

    async fn run_closed_loop(
        mut self,
        mut share: impl Iterator<Item = (Duration, plan::Request)>,
        mut drain: watch::Receiver<Option<Instant>>,
    ) {
        while drain.borrow().is_none() {
            while self.calls.len() < self.in_flight_max
                && let Some((_, item)) = share.next()
            {
                self.shared.counts.planned_one();
                self.begin(Due { planned: Instant::now(), item });
            }
            tokio::select! {
                ended = self.calls.join_next() => if ended.is_none() { break },
                _ = drain.changed() => {}
            }
        }
        self.drain(drain).await;
    }

    /// Lets calls end in the time that they are given.
    async fn drain(mut self, mut drain: watch::Receiver<Option<Instant>>) {
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
        if self.calls.len() >= self.in_flight_max.min(self.caller.client.streams_max()) {
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
        let queue = begun.saturating_duration_since(self.due.planned);
        self.shared.recorder.lock().sent(queue);
        let outcome = self.caller.call(&self.due.item).await;
        let service = begun.elapsed();
        self.stage = Stage::Over;
        let times = Times { phases: Phases { queue, wait: service, ..Phases::default() }, service };
        let judged = outcome.and_then(|answer| self.caller.judge(&self.due.item, &answer));
        let mut recorder = self.shared.recorder.lock();
        match judged {
            Ok(judgement) => recorder.answered(times, self.due.item.template, judgement),
            Err(failure) => recorder.failed(times, self.due.item.template, failure),
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
    client: Arc<Http2>,
    uri: Uri,
    headers: HeaderMap,
    timeout: Duration,
}

impl Caller {
    fn new(config: &Config, endpoint: Endpoint, corpus: Arc<Corpus>) -> Result<Self, Error> {
        let url = format!("https://{}{}?timeout={}s", endpoint.authority, endpoint.path, config.timeout.0.as_secs());
        let bad = |error: http::uri::InvalidUri| EndpointError::Url { url: url.clone(), why: error.to_string() };
        let uri = url.parse().map_err(bad)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(Self { corpus, client: Http2::new(endpoint), uri, headers, timeout: config.timeout.0 })
    }

    async fn call(&self, call: &plan::Request) -> Result<Answer, Failure> {
        let mut request = Request::new(Body::new(self.corpus.template(call.template).with_uid(&call.uid)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let progress = Progress::default();
        let outcome = tokio::time::timeout(self.timeout, self.client.call(request, &progress)).await;
        outcome.unwrap_or_else(|_| Err(progress.timeout(self.timeout)))
    }

    fn judge(&self, call: &plan::Request, answer: &Answer) -> Result<Judgement, Failure> {
        oracle::judge(self.corpus.template(call.template), answer::check(answer.seen(), &call.uid)?)
    }
}
