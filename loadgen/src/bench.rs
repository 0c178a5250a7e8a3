//! What the benchmarks need of the inside. Not part of the API.

use std::time::Duration;

use base64::Engine as _;
use serde_json::json;

use crate::admission::bench as admission;
use crate::socket::http2::{Head, bench::Frames};
use crate::wire::Answer;

/// A plan for any webhook whose every body is the same, exactly so many bytes long, at least some hundred.
pub fn plan_of_one(
    config: &crate::admission::Config,
    seed: u64,
    length: Duration,
    bytes: usize,
) -> Result<crate::admission::Plan, crate::admission::Error> {
    admission::plan_of_one(config, seed, length, bytes)
}

/// A plan whose every request creates the same Pod, with one container for each image. `checked`: every image must come back
/// with its digest; otherwise any valid answer is right.
pub fn plan_of_pod(
    config: &crate::admission::Config,
    seed: u64,
    length: Duration,
    images: &[crate::admission::Image],
    checked: bool,
) -> Result<crate::admission::Plan, crate::admission::Error> {
    admission::plan_of_pod(config, seed, length, images, checked)
}

/// One call's worth of work outside the sockets.
pub struct Call {
    steps: admission::Call,
    answer: Answer,
    frames: Frames,
}

/// The stream of requests alone: when each is due and which review it is.
pub fn requests(plan: &crate::admission::Plan) -> impl Iterator<Item = (Duration, u32)> + use<> {
    admission::requests(plan)
}

impl Call {
    /// Takes the first request of the plan whose right answer has a patch.
    pub fn to_patch(plan: &crate::admission::Plan) -> Option<Self> {
        let (call, patch) = admission::Call::first(plan, true)?;
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        let response = json!({"uid": call.uid(), "allowed": true, "patchType": "JSONPatch", "patch": patch});
        Some(Self::answered(call, &response))
    }

    /// Takes the first request of the plan with images that are right as they are.
    pub fn to_leave(plan: &crate::admission::Plan) -> Option<Self> {
        let (call, _) = admission::Call::first(plan, false)?;
        let response = json!({"uid": call.uid(), "allowed": true});
        Some(Self::answered(call, &response))
    }

    fn answered(call: admission::Call, response: &serde_json::Value) -> Self {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let answer = Answer { status: http::StatusCode::OK, content_type: None, body: body.to_string().into() };
        let head = Head::new([
            (":authority", "127.0.0.1:8443"),
            (":path", "/mutate?timeout=10s"),
            ("user-agent", "kube-apiserver-admission"),
            ("accept", "application/json, */*"),
            ("content-type", "application/json"),
            ("accept-encoding", "gzip"),
        ]);
        Self { steps: call, answer, frames: Frames::new(head) }
    }

    /// The body with the uid in it, in the parts that are handed to the connection; nothing is copied.
    pub fn splice(&self) -> [&[u8]; 3] {
        self.steps.splice()
    }

    /// Reads the right answer and compares it with the oracle; `true` when it is right.
    pub fn judge(&self) -> bool {
        self.steps.judge(&self.answer)
    }

    /// Puts the call into HTTP/2's frames and takes the answer out of its; `true` when it arrives.
    pub fn frames(&mut self) -> bool {
        self.frames.call(self.steps.splice(), &self.answer.body)
    }

    /// Records one answered call.
    pub fn record(&mut self, response: Duration) {
        self.steps.record(response);
    }
}
