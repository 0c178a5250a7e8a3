//! What the benchmarks need of the inside. Not part of the API.

use std::time::Duration;

use base64::Engine as _;
use serde_json::json;

use crate::admission::bench as admission;
use crate::wire::Answer;

/// A plan for any webhook whose every body is the same, exactly so many bytes long; `None` when there is none.
pub fn plan_of_one(
    config: &crate::admission::Config,
    seed: u64,
    length: Duration,
    bytes: usize,
) -> Result<Option<crate::admission::Plan>, crate::admission::Error> {
    admission::plan_of_one(config, seed, length, bytes)
}

/// One call's worth of work outside the sockets.
pub struct Call {
    call: admission::Call,
    answer: Answer,
}

impl Call {
    /// Takes the first request of the plan that needs a patch.
    pub fn of(plan: &crate::admission::Plan) -> Option<Self> {
        let (call, patch) = admission::Call::first_with_patch(plan)?;
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": call.uid(), "allowed": true, "patchType": "JSONPatch", "patch": patch
        }});
        let answer = Answer { status: http::StatusCode::OK, content_type: None, body: body.to_string().into() };
        Some(Self { call, answer })
    }

    /// The body with the uid in it; returns its length in bytes.
    pub fn splice(&self) -> usize {
        self.call.splice()
    }

    /// Reads the right answer and compares it with the oracle; `true` when it is right.
    pub fn judge(&self) -> bool {
        self.call.judge(&self.answer)
    }

    /// Records one answered call.
    pub fn record(&mut self, response: Duration) {
        self.call.record(response);
    }
}
