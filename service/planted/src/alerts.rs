//! Alert sinks with planted bugs: they drop, repeat or add alerts.
//!
//! The falsified sink gets each review's answer and alerts. If an answer changes or refuses an object but no alert was
//! sent, the review was a dry run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::Value;
use service_core::alert::{Alert, AlertSink};
use service_core::edge::Handler;
use tokio::time::Instant;

use super::Bug;
use super::answers::whole;

/// The bug affects one of this many alerts.
const EVERY: u64 = 10;
/// Maximum number of reviews that are remembered: all open reviews and some earlier reviews.
const TOLD_MAX: usize = 4096;
/// Maximum number of alerts that wait in full length for the bug `alerts-by-number`.
const WHOLE_MAX: usize = 10_000;
/// Time limit for sending an additional alert, for which no caller waits.
const GRACE: Duration = Duration::from_secs(10);

pub struct Spoilt {
    inner: Arc<dyn AlertSink>,
    bug: Bug,
    count: AtomicU64,
    told: Mutex<VecDeque<String>>,
    whole: Mutex<VecDeque<Alert>>,
}

impl Spoilt {
    /// A sink that passes alerts to `inner`, changed by `bug`.
    pub fn before(inner: Arc<dyn AlertSink>, bug: Bug) -> Arc<Self> {
        Arc::new(Self { inner, bug, count: AtomicU64::new(0), told: Mutex::default(), whole: Mutex::default() })
    }

    pub fn is_about(bug: Bug) -> bool {
        matches!(bug, Bug::AlertLost | Bug::AlertTwice | Bug::AlertOnDryRun | Bug::AlertsByNumber)
    }

    /// A handler that passes reviews to `handler` and sends an alert for each answer to a dry run.
    pub fn tells_dry_runs(self: Arc<Self>, handler: Handler) -> Handler {
        if self.bug != Bug::AlertOnDryRun {
            return handler;
        }
        Arc::new(move |request, peer| {
            let (answered, this) = (handler(request, peer), Arc::clone(&self));
            async move {
                let answer = whole(answered.await).await;
                if let Some(alert) = this.untold(answer.body()) {
                    let _ = this.inner.tell(alert, Instant::now() + GRACE).await;
                }
                answer.map(Full::new)
            }
            .boxed()
        })
    }

    /// An alert for a review that sent no alert.
    fn untold(&self, body: &[u8]) -> Option<Alert> {
        let review: Value = serde_json::from_slice(body).ok()?;
        let response = &review["response"];
        let (uid, admitted) = (response["uid"].as_str()?, response["allowed"].as_bool()?);
        let decides = !admitted || !response["patch"].is_null();
        (decides && !self.told.lock().iter().any(|told| told == uid)).then(|| Alert {
            admitted,
            message: "a dry run".into(),
            kind: String::new(),
            namespace: String::new(),
            name: String::new(),
            request_id: uid.to_owned(),
            images: Vec::new(),
            more_images: 0,
        })
    }
}

/// The alert at its size before images were left out. Each image that was left out counts as long as the last named
/// image.
fn uncut(alert: &Alert) -> Alert {
    let mut whole = alert.clone();
    if let Some(last) = alert.images.last() {
        whole.images.extend(std::iter::repeat_n(last.clone(), alert.more_images));
    }
    whole
}

impl AlertSink for Spoilt {
    fn tell(&self, alert: Alert, deadline: Instant) -> BoxFuture<'static, Result<(), String>> {
        let is_turn = self.count.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY);
        match self.bug {
            Bug::AlertLost if is_turn => return std::future::ready(Ok(())).boxed(),
            Bug::AlertTwice if is_turn => {
                let (first, second) = (self.inner.tell(alert.clone(), deadline), self.inner.tell(alert, deadline));
                return async move { first.await.and(second.await) }.boxed();
            }
            Bug::AlertOnDryRun => {
                let mut told = self.told.lock();
                if told.len() == TOLD_MAX {
                    told.pop_front();
                }
                told.push_back(alert.request_id.clone());
            }
            Bug::AlertsByNumber => {
                let mut whole = self.whole.lock();
                if whole.len() == WHOLE_MAX {
                    whole.pop_front();
                }
                whole.push_back(uncut(&alert));
            }
            _ => {}
        }
        self.inner.tell(alert, deadline)
    }

    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()> {
        self.inner.stop(grace)
    }
}
