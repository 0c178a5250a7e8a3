//! The answers of webhooks for a churned kind, as the API server shows them: allowed, refused, or no answer.
//!
//! Owns the interpretation of these answers, and their counts. An answer of the API server that no webhook can have
//! influenced is ignored.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::api::Reply;
use super::samples::Expect;
use crate::examples::{self, Examples};
use crate::histogram;

/// The API server's texts of a refusal, with any status of the webhook (k8s.io/apiserver, `webhookerrors.ToStatusErr`).
const REFUSED: [&str; 2] = ["admission webhook \"", "denied the request"];
/// The beginning of the API server's message if a webhook gave no valid answer.
const FAILED: &str = "failed calling webhook";
/// The API server's message if a webhook patches an operation that cannot be patched. No failure policy allows such a
/// patch (k8s.io/apiserver, dispatcher of mutating webhooks).
const PATCHED_NOTHING: &str = "attempted to modify the object, which is not supported for this operation";

/// The writes for which the registered webhooks are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Covers {
    pub create: bool,
    /// Whether webhooks are called for changes of the object itself.
    pub update: bool,
    pub delete: bool,
}

/// The outcomes of writes for which webhooks were called. Histograms contain microseconds, from the request to the API
/// server's answer.
#[derive(Debug, Clone)]
pub struct Answers {
    /// Number of writes that were allowed.
    pub allowed: u64,
    /// Number of writes that a webhook refused.
    pub denied: u64,
    /// Writes without a valid webhook answer that the failure policy refused.
    pub failed: u64,
    /// Writes that were allowed or refused although the opposite was right.
    pub wrong_verdicts: u64,
    /// Number of writes among `wrong_verdicts` that were allowed.
    pub wrong_allows: u64,
    /// The duration of allowed writes.
    pub response_allowed: Histogram<u64>,
    /// The duration of refused writes.
    pub response_denied: Histogram<u64>,
    /// The duration of writes that failed.
    pub response_error: Histogram<u64>,
    /// Texts of failures and wrong answers: at most five, all different.
    pub examples: Vec<String>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            allowed: 0,
            denied: 0,
            failed: 0,
            wrong_verdicts: 0,
            wrong_allows: 0,
            response_allowed: histogram::empty(),
            response_denied: histogram::empty(),
            response_error: histogram::empty(),
            examples: Vec::new(),
        }
    }
}

impl Answers {
    /// Whether no webhook was called.
    pub fn is_empty(&self) -> bool {
        self.allowed + self.denied + self.failed == 0
    }

    pub fn add(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.failed += other.failed;
        self.wrong_verdicts += other.wrong_verdicts;
        self.wrong_allows += other.wrong_allows;
        histogram::add(&mut self.response_allowed, &other.response_allowed);
        histogram::add(&mut self.response_denied, &other.response_denied);
        histogram::add(&mut self.response_error, &other.response_error);
        examples::merge(&mut self.examples, &other.examples);
    }
}

/// The decision of webhooks that an answer of the API server shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Denied(String),
    Failed(String),
    /// The answer shows no influence of a webhook.
    Nothing,
}

pub(super) fn verdict(reply: &Reply) -> Verdict {
    if reply.status.is_success() {
        return Verdict::Allowed;
    }
    let message = reply.message();
    if message.contains(FAILED) || message.contains(PATCHED_NOTHING) {
        Verdict::Failed(message)
    } else if REFUSED.iter().all(|text| message.contains(text)) {
        Verdict::Denied(message)
    } else {
        Verdict::Nothing
    }
}

/// Collects the webhooks' answers. The operator adds answers; `take` swaps the collector for another.
#[derive(Debug, Default)]
pub(super) struct Collector {
    answers: Answers,
    examples: Examples,
    /// The text of the first denial of an object whose right answer is unknown.
    refused: Option<String>,
}

impl Collector {
    /// Adds an answer of the API server. `what` names the write, for messages. Without `expect` the right answer is
    /// unknown.
    pub(super) fn note(
        &mut self,
        what: impl FnOnce() -> String,
        expect: Option<Expect>,
        said: &Verdict,
        took: Duration,
    ) {
        let answers = &mut self.answers;
        match said {
            Verdict::Allowed => {
                answers.allowed += 1;
                histogram::record(&mut answers.response_allowed, took);
                if expect == Some(Expect::Denied) {
                    answers.wrong_verdicts += 1;
                    answers.wrong_allows += 1;
                    self.examples.note("wrong allow", || format!("{} was allowed, but has `expect: denied`", what()));
                }
            }
            Verdict::Denied(message) => {
                answers.denied += 1;
                histogram::record(&mut answers.response_denied, took);
                if expect.is_none() {
                    self.refused.get_or_insert_with(|| format!("{} was denied; the answer: {message}", what()));
                } else if expect == Some(Expect::Allowed) {
                    answers.wrong_verdicts += 1;
                    let why = || format!("{} was denied, but has no `expect: denied`; the answer: {message}", what());
                    self.examples.note("wrong verdict", why);
                }
            }
            Verdict::Failed(message) => {
                answers.failed += 1;
                histogram::record(&mut answers.response_error, took);
                self.examples.note("http error", || format!("{}: {message}", what()));
            }
            Verdict::Nothing => {}
        }
    }

    /// The text of the first denial of an object whose right answer is unknown.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.clone()
    }

    /// Whether a write was refused.
    pub(super) fn has_denied(&self) -> bool {
        self.answers.denied > 0
    }

    pub(super) fn finish(self) -> Answers {
        Answers { examples: self.examples.into_texts(), ..self.answers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, message: &str) -> Reply {
        let body = serde_json::json!({"kind": "Status", "message": message}).to_string();
        Reply { status: http::StatusCode::from_u16(status).unwrap(), body: body.into() }
    }

    #[test]
    fn what_a_webhook_said_is_told_from_what_the_server_said() {
        assert_eq!(verdict(&reply(201, "")), Verdict::Allowed);
        let denial = "admission webhook \"vcache.kb.io\" denied the request: size";
        assert_eq!(verdict(&reply(403, denial)), Verdict::Denied(denial.to_owned()));
        let failure = "Internal error occurred: failed calling webhook \"vcache.kb.io\": failed to call webhook: EOF";
        assert!(matches!(verdict(&reply(500, failure)), Verdict::Failed(_)));
        // A webhook may give its denial any status from 400 on: controller-runtime's `Errored(500, …)` is one.
        assert_eq!(verdict(&reply(500, denial)), Verdict::Denied(denial.to_owned()));
        let patched = "Internal error occurred: admission webhook \"m.kb.io\" attempted to modify the object, which is not supported for this \
                       operation";
        assert_eq!(verdict(&reply(500, patched)), Verdict::Failed(patched.to_owned()));
        assert_eq!(verdict(&reply(400, "admission webhook \"m.kb.io\" does not support dry run")), Verdict::Nothing);
        assert_eq!(verdict(&reply(422, "Cache \"a\" is invalid: spec.size: Invalid value")), Verdict::Nothing);
        assert_eq!(verdict(&reply(409, "already exists")), Verdict::Nothing);
    }

    #[test]
    fn wrong_is_what_is_not_expected() {
        let mut heard = Collector::default();
        let ms = Duration::from_millis(3);
        heard.note(|| "CREATE good".to_owned(), Some(Expect::Allowed), &Verdict::Allowed, ms);
        heard.note(|| "CREATE bad.yaml".to_owned(), Some(Expect::Denied), &Verdict::Denied("no".to_owned()), ms);
        heard.note(|| "CREATE bad.yaml".to_owned(), Some(Expect::Denied), &Verdict::Allowed, ms);
        heard.note(|| "CREATE good".to_owned(), Some(Expect::Allowed), &Verdict::Denied("no".to_owned()), ms);
        heard.note(|| "CREATE bad.yaml".to_owned(), Some(Expect::Denied), &Verdict::Failed("EOF".to_owned()), ms);
        heard.note(|| "CREATE made".to_owned(), None, &Verdict::Denied("spec: Required value".to_owned()), ms);
        assert_eq!(heard.refused().as_deref(), Some("CREATE made was denied; the answer: spec: Required value"));
        let answers = heard.finish();
        assert_eq!((answers.allowed, answers.denied, answers.failed), (2, 3, 1));
        assert_eq!((answers.wrong_verdicts, answers.wrong_allows), (2, 1));
        assert_eq!(
            answers.examples,
            [
                "wrong allow: CREATE bad.yaml was allowed, but has `expect: denied`",
                "wrong verdict: CREATE good was denied, but has no `expect: denied`; the answer: no",
                "http error: CREATE bad.yaml: EOF",
            ]
        );
    }
}
