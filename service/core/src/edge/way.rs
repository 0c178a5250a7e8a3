//! The steps that answer a call through a listener, for every role.
//!
//! Each role implements the steps of its calls as [`Calls`]; [`serve`] runs the steps in a fixed order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::request::Parts as Head;
use http::{Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::peer::Peer;
use super::unread::discard;

pub type Answer = Response<Full<Bytes>>;

pub type Handler = Arc<dyn Fn(Request<Incoming>, Arc<Peer>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// The reason why a body cannot be read to its end.
pub trait Broken: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display + Send {}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>> + std::fmt::Display + Send> Broken for E {}

/// The steps of a role's calls, which [`serve`] runs.
pub trait Calls: Send + Sync + Sized + 'static {
    /// Facts about a call, for its log line and metrics.
    type Call: Send + Sync + 'static;
    /// A permit for one call in work; released on drop.
    type Permit<'a>: Send;
    /// The request that the head of a call states.
    type Target<'a>: Send + Sync;
    type Body<'a>: Send + Sync;
    /// The reason for an answer other than success.
    type Refusal: Send + 'static;

    fn in_flight(&self) -> &Gauge;

    fn call(&self, head: &Head, peer: Arc<Peer>) -> Self::Call;

    /// Time limit of the call.
    fn budget(&self, head: &Head) -> Duration;

    /// Reads the request from the head and checks the rights of the caller.
    fn target<'a>(&self, call: &mut Self::Call, head: &'a Head) -> Result<Self::Target<'a>, Self::Refusal>;

    /// Takes a permit for the call. Without a free permit, the call is refused as overload.
    fn enter<'a>(&'a self, call: &'a Self::Call) -> Result<Self::Permit<'a>, Self::Refusal>;

    fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        call: &'a Self::Call,
        asked: (&Self::Target<'_>, &Head),
        body: &mut B,
        deadline: Instant,
    ) -> impl Future<Output = Result<Self::Body<'a>, Self::Refusal>> + Send;

    fn answer(
        &self,
        call: &Self::Call,
        asked: (Self::Target<'_>, &Head),
        body: Self::Body<'_>,
        deadline: Instant,
    ) -> impl Future<Output = Result<Answer, Self::Refusal>> + Send;

    /// The answer if a step panicked.
    fn panicked(&self, call: &Self::Call) -> Self::Refusal;

    fn status(refusal: &Self::Refusal) -> StatusCode;

    /// The last step: makes the answer to the call, counts it and logs it.
    fn ended(&self, call: Self::Call, result: Result<Answer, Self::Refusal>, took: Duration) -> Answer;
}

/// Answers one call of `peer` with the steps of `calls`. Every error of a call becomes an HTTP status.
#[expect(
    clippy::manual_async_fn,
    reason = "Send is said here: of the steps of one role rustc cannot tell it (rust-lang/rust#100013)"
)]
pub fn serve<C: Calls, B>(calls: Arc<C>, request: Request<B>, peer: Arc<Peer>) -> impl Future<Output = Answer> + Send
where
    B: Body<Data = Bytes, Error: Broken> + Send + Unpin + 'static,
{
    async move {
        // If the caller leaves, this future is dropped, and the gauge must still go down.
        let started = StdInstant::now();
        let work = Working::new(calls.in_flight());
        let (head, mut body) = request.into_parts();
        let mut call = calls.call(&head, peer);
        // The last safety net: after a panic, the caller still gets an answer and its connection stays. A panic leaves
        // no shared state half-done: locks are held for single steps, and permits return when dropped.
        let walked = AssertUnwindSafe(walk(&*calls, &mut call, &head, &mut body)).catch_unwind().await;
        let result = walked.unwrap_or_else(|_panic| Err(calls.panicked(&call)));
        // Reads the rest of a refused call's body, which now holds nothing. A client that waits for `100 Continue` has
        // not sent it.
        let status = result.as_ref().err().map(C::status);
        if status.is_some_and(|status| status != StatusCode::REQUEST_TIMEOUT)
            && !head.headers.contains_key(header::EXPECT)
        {
            discard(body).await;
        }
        drop(work);
        calls.ended(call, result, started.elapsed())
    }
}

/// Runs the steps that may refuse a call.
async fn walk<C: Calls, B>(calls: &C, call: &mut C::Call, head: &Head, body: &mut B) -> Result<Answer, C::Refusal>
where
    B: Body<Data = Bytes, Error: Broken> + Send + Unpin,
{
    let deadline = Instant::now() + calls.budget(head);
    let asked = calls.target(call, head)?;
    let _place = calls.enter(call)?;
    let held = calls.read(call, (&asked, head), body, deadline).await?;
    calls.answer(call, (asked, head), held, deadline).await
}

struct Working<'a>(&'a Gauge);

impl<'a> Working<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
