//! The current pipeline of reviews, which is replaced as a whole when the configuration changes.
//!
//! The webhook's endpoint and other callers in this process share one [`Current`].

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use service_core::judge::{About, Inquiry, Judge, Ruling};
use tokio::time::Instant;

use super::decide::Hook;
use super::pipeline::{Full, Pipeline};
use super::review;

pub struct Current(RwLock<Arc<Pipeline>>);

impl Current {
    pub fn new(pipeline: Pipeline) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(pipeline))))
    }

    /// Uses `pipeline` for reviews that start from now on.
    pub fn replace(&self, pipeline: Pipeline) {
        *self.0.write() = Arc::new(pipeline);
    }

    /// The current pipeline. A review uses the same pipeline to its end.
    pub fn pipeline(&self) -> Arc<Pipeline> {
        Arc::clone(&self.0.read())
    }

    /// Answers the `AdmissionReview` in `body` (JSON) with JSON, by `deadline`.
    pub async fn review(&self, hook: Hook, body: &Bytes, deadline: Instant) -> Result<Vec<u8>, Unanswered> {
        let (api_version, ask) = review::parse(body).map_err(|error| Unanswered::Malformed(error.to_string()))?;
        let pipeline = self.pipeline();
        let decision = AssertUnwindSafe(pipeline.review(hook, &ask, deadline)).catch_unwind();
        let decision =
            decision.await.unwrap_or_else(|_panic| Ok(pipeline.defect(&ask))).map_err(|Full| Unanswered::Full)?;
        let decision = pipeline.alerted(hook, &ask, decision, deadline).await;
        review::answer(&api_version, &ask.uid, decision).map_err(Unanswered::Failed)
    }
}

/// A judge of single images that uses the current pipeline.
pub struct CurrentJudge(pub Arc<Current>);

impl Judge for CurrentJudge {
    fn about(&self) -> About {
        self.0.pipeline().about()
    }

    fn judge(&self, inquiry: Inquiry, deadline: Instant) -> BoxFuture<'static, Ruling> {
        let pipeline = self.0.pipeline();
        async move { pipeline.judge(inquiry, deadline).await }.boxed()
    }

    fn judge_by_policy(&self, image: String, deadline: Instant) -> BoxFuture<'static, Ruling> {
        let pipeline = self.0.pipeline();
        async move { pipeline.judge_by_policy(&image, deadline).await }.boxed()
    }
}

/// Why a review has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error("{0}")]
    Malformed(String),
    /// At the moment, no memory is free for the image lookups of the review.
    #[error("too many images are asked about at one time")]
    Full,
    /// The review failed for this reason, and the webhook's `failurePolicy` must decide.
    #[error("{0}")]
    Failed(String),
}
