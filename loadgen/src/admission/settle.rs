//! Objects as validating webhooks get them: after the changes of the mutating webhooks.
//!
//! Only the mutating webhooks know how they change an object. Before the load, each object is therefore sent to the
//! mutating webhooks once, in the API server's order, and the result is sent to the validating webhooks. Reviews of
//! later changes and deletions use the object that results from the creation. A webhook without a valid answer leaves
//! the object unchanged, and the load then shows the failure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::Error;
use super::asking::Asking;
use super::load::Target;
use super::plan::Plan;
use super::review::Template;
use crate::failure::Failure;
use crate::seed::{self, UID_LEN};

/// The timeout of each request, which is the longest timeout of a webhook.
const LIMIT: Duration = Duration::from_secs(30);
/// Number of connections for the requests before the load, which are sent one after another.
const CONNECTIONS: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAnswer {
    /// The request: `Cache CREATE lh-7-0/cache-0000001`.
    pub about: String,
    /// Whether the request was allowed, or why the API server would not accept the answer.
    pub allowed: Result<bool, String>,
    pub message: String,
}

impl Plan {
    /// The plan in which validating webhooks get each object as the mutating webhooks leave it.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is not valid.
    pub async fn settled(self, target: &Target) -> Result<Self, Error> {
        let corpus = std::sync::Arc::clone(self.corpus());
        if corpus.sequences().next().is_none() {
            return Ok(self);
        }
        let asking = Asking::new(target, CONNECTIONS)?;
        let mut changed = Vec::new();
        // The stored form of each object that a webhook changed at its creation, by the first review of the creation.
        let mut created: BTreeMap<u32, Value> = BTreeMap::new();
        for sequence in corpus.sequences() {
            let Some(&first) = sequence.first() else { continue };
            let later = corpus.template(first).later.as_ref();
            let before = later.and_then(|later| Some((created.get(&later.created)?, &later.change)));
            let mut object = before.map(|(before, change)| {
                let mut object = before.clone();
                json_patch::merge(&mut object, change);
                object
            });
            let mut patched = false;
            for &number in sequence {
                let template = corpus.template(number);
                let old = before.map(|(before, _)| with_system_fields(before, &template.old()));
                let now = object.as_ref().map(|object| template.now(object, old.as_ref()));
                let shown = now.as_ref().unwrap_or(template);
                if template.mutating
                    && let Ok(verdict) = ask(&asking, &corpus.paths()[template.path], shown).await
                    && let Some(patch) = verdict.patch
                {
                    let mut after = shown.object();
                    if json_patch::patch(&mut after, &patch.0).is_ok() {
                        object = Some(after);
                        patched = true;
                    }
                }
                changed.extend(now.map(|template| (number, template)));
            }
            if let Some(object) = object.filter(|_| patched && later.is_none()) {
                created.insert(first, object);
            }
        }
        let corpus = corpus.with(changed);
        Ok(self.over(corpus))
    }

    /// The webhook's answer to the first review, which shows whether the load can work.
    ///
    /// # Errors
    ///
    /// Returns an error if the target is not valid, or the plan contains no request.
    pub async fn first_said(&self, target: &Target) -> Result<FirstAnswer, Error> {
        let asking = Asking::new(target, CONNECTIONS)?;
        let Some((_, request)) = self.clone().requests().next() else {
            return Err(Error::Config { key: "rate", problem: "makes no request".to_owned() });
        };
        let template = self.corpus().template(request.template);
        let answer = ask(&asking, &self.corpus().paths()[template.path], template).await;
        let (allowed, message) = match answer {
            Ok(verdict) => (Ok(verdict.allowed), verdict.message),
            Err(failure) => (Err(failure.text), String::new()),
        };
        Ok(FirstAnswer { about: template.label.clone(), allowed, message })
    }
}

impl Template {
    /// The review with the present and the earlier state of its object.
    fn now(&self, object: &Value, old: Option<&Value>) -> Self {
        let before = self.object();
        // A deletion shows only the old object.
        let object = (!before.is_null()).then(|| with_system_fields(object, &before));
        self.about(object.as_ref(), old)
    }
}

/// The object with the fields that the API server adds, as in the planned object. Before the mutating webhooks are
/// called, a new object lacks these system fields.
fn with_system_fields(object: &Value, planned: &Value) -> Value {
    let mut object = object.clone();
    for key in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
        if let Some(value) = planned["metadata"].get(key) {
            object["metadata"][key] = value.clone();
        }
    }
    object
}

/// The webhook's answer to the review of a template.
async fn ask(asking: &Asking, path: &str, template: &Template) -> Result<go_rules::admission::Verdict, Failure> {
    let uid: [u8; UID_LEN] = seed::uid(&mut seed::stream(0, "settle"));
    asking.send(path, template.with_uid(&uid), &uid, template.mutating, LIMIT).await
}
