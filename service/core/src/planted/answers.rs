//! Calls whose answers a planted bug spoils, or which it makes dearer.
//!
//! It stands around the calls of a role and knows of them what their caller sees: a review that is denied says so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::request::Parts as Head;
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Bug;
use super::growth::{Moment, at};
use super::slower::{linger, longer};
use crate::edge::{Answer, Broken, Calls, Peer};

/// Calls with a bug.
pub struct Answers<C> {
    calls: Arc<C>,
    bug: Option<Bug>,
}

impl<C: Calls> Answers<C> {
    /// `calls` with `bug`, or as they are.
    pub fn new(calls: Arc<C>, bug: Option<Bug>) -> Arc<Self> {
        Arc::new(Self { calls, bug })
    }

    async fn spoilt(&self, answer: Answer) -> Answer {
        let (head, body) = answer.into_parts();
        let Ok(body) = body.collect().await;
        let mut body = body.to_bytes();
        at(self.bug, Moment::Review { denied: is_denial(&body) });
        linger(self.bug).await;
        let spoilt = match (self.bug, longer(self.bug)) {
            (Some(Bug::WrongAllow), _) if is_denial(&body) => changed(&body, |response| {
                response.retain(|key, _| key == "uid");
                response.insert("allowed".into(), true.into());
            }),
            (_, Some(text)) => changed(&body, |response| {
                let notes = response.entry("auditAnnotations").or_insert_with(|| Map::new().into());
                notes["planted"] = text.into();
            }),
            _ => None,
        };
        if let Some(spoilt) = spoilt {
            body = spoilt;
        }
        Answer::from_parts(head, Full::new(body))
    }
}

/// Whether a review says no. It is written by this service, without spaces.
fn is_denial(body: &[u8]) -> bool {
    const NO: &[u8] = br#","allowed":false"#;
    body.windows(NO.len()).any(|part| part == NO)
}

/// The review with another response; none when it has none, because it failed.
fn changed(body: &[u8], change: impl FnOnce(&mut Map<String, Value>)) -> Option<Bytes> {
    let mut review: Value = serde_json::from_slice(body).ok()?;
    change(review.get_mut("response")?.as_object_mut()?);
    serde_json::to_vec(&review).ok().map(Bytes::from)
}

impl<C: Calls> Calls for Answers<C> {
    type Call = C::Call;
    type Place<'a> = C::Place<'a>;
    type Asked<'a> = C::Asked<'a>;
    type Held<'a> = C::Held<'a>;
    type Refusal = C::Refusal;

    fn in_flight(&self) -> &Gauge {
        self.calls.in_flight()
    }

    fn call(&self, head: &Head, peer: Arc<Peer>) -> Self::Call {
        self.calls.call(head, peer)
    }

    fn budget(&self, head: &Head) -> Duration {
        self.calls.budget(head)
    }

    fn asked<'a>(&self, call: &mut Self::Call, head: &'a Head) -> Result<Self::Asked<'a>, Self::Refusal> {
        self.calls.asked(call, head)
    }

    fn enter<'a>(&'a self, call: &'a Self::Call) -> Result<Self::Place<'a>, Self::Refusal> {
        self.calls.enter(call)
    }

    async fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        call: &'a Self::Call,
        asked: (&Self::Asked<'_>, &Head),
        body: &mut B,
        deadline: Instant,
    ) -> Result<Self::Held<'a>, Self::Refusal> {
        self.calls.read(call, asked, body, deadline).await
    }

    async fn answer(
        &self,
        call: &Self::Call,
        asked: (Self::Asked<'_>, &Head),
        body: Self::Held<'_>,
        deadline: Instant,
    ) -> Result<Answer, Self::Refusal> {
        let answer = self.calls.answer(call, asked, body, deadline).await?;
        Ok(if self.bug.is_some() { self.spoilt(answer).await } else { answer })
    }

    fn panicked(&self, call: &Self::Call) -> Self::Refusal {
        self.calls.panicked(call)
    }

    fn status(refusal: &Self::Refusal) -> StatusCode {
        C::status(refusal)
    }

    fn ended(&self, call: Self::Call, result: Result<Answer, Self::Refusal>, took: Duration) -> Answer {
        self.calls.ended(call, result, took)
    }
}
