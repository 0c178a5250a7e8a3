//! Single steps of a call, for the benchmarks.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer;
use super::interval::{Phases, Recorder, Times};
use super::oracle::{self, Expected, Judgement};
use super::plan::{Plan, Request};
use crate::wire::Answer;

pub(crate) struct Call {
    plan: Plan,
    request: Request,
    recorder: Recorder,
}

impl Call {
    /// The first request whose right answer has a patch, and that patch.
    pub(crate) fn first_with_patch(plan: &Plan) -> Option<(Self, Value)> {
        plan.clone().requests().find_map(|(_, request)| {
            let Expected::Allow { images } = &plan.corpus().template(request.template).expected else { return None };
            let writes = images.iter().filter(|field| field.written != field.right);
            let patch: Vec<Value> =
                writes.map(|field| json!({"op": "replace", "path": field.pointer, "value": field.right})).collect();
            let call = Self { plan: plan.clone(), request, recorder: Recorder::default() };
            (!patch.is_empty()).then(|| (call, patch.into()))
        })
    }

    pub(crate) fn uid(&self) -> String {
        String::from_utf8_lossy(&self.request.uid).into_owned()
    }

    pub(crate) fn splice(&self) -> usize {
        self.plan.corpus().template(self.request.template).with_uid(&self.request.uid).len()
    }

    pub(crate) fn judge(&self, answer: &Answer) -> bool {
        let template = self.plan.corpus().template(self.request.template);
        let judged =
            answer::check(answer.seen(), &self.request.uid).and_then(|verdict| oracle::judge(template, verdict));
        judged.is_ok_and(|judgement| judgement.allowed && judgement.wrong.is_none())
    }

    pub(crate) fn record(&mut self, response: Duration) {
        self.recorder.sent(response / 100);
        let phases = Phases { wait: response, ..Phases::default() };
        let times = Times { phases, service: response };
        self.recorder.answered(times, self.request.template, Judgement { allowed: true, wrong: None });
    }
}
