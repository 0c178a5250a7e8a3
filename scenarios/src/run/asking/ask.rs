//! The questions as the webhooks see them, and rounds of them.
//!
//! Owns the chain of a question: the API server first completes the object, the mutating webhooks change it one after
//! the other, the API server validates the result, and the validating webhooks see that.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::StreamExt as _;
use loadgen::admission::{Asking, Operation};
use serde_json::Value;

use super::bed::Bed;
use super::kinds::{Hook, NAMESPACE};
use crate::hunt::webhook::Question;
use crate::hunt::webhook::answer::{Answer, shortened};
use crate::hunt::webhook::compare::About;
use crate::hunt::webhook::question::{bare, stored};

/// Timeout of one question: kube-apiserver's default for a webhook.
const LIMIT: Duration = Duration::from_secs(10);
/// Statuses with which the API server refuses an invalid object.
const INVALID: [&str; 2] = ["400:", "422:"];
/// Longest time of the chains. The rest of the questions is not asked.
const CHAINS_MAX: Duration = Duration::from_secs(15);

/// One question to one webhook.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// The number of the webhook.
    pub(super) hook: usize,
    pub(super) about: About,
    pub(super) question: Question,
    path: String,
    mutating: bool,
    /// The object as the webhook sees it; null for a deletion.
    object: Value,
    old: Value,
}

/// All questions to all webhooks.
pub(super) struct Chained {
    pub(super) asks: Vec<Ask>,
    /// Patches whose result the API server refuses, with the reason.
    pub(super) refused: Vec<(About, String)>,
    /// Number of questions that were asked at all.
    pub(super) questions: usize,
}

impl Ask {
    /// The answer, and the object after it if the webhook changes the object.
    pub(super) async fn answer(&self, asking: &Asking) -> (Answer, Option<Value>) {
        self.answer_to(asking, false).await
    }

    async fn answer_to(&self, asking: &Asking, is_dry: bool) -> (Answer, Option<Value>) {
        let review = self.question.review(&self.object, &self.old, is_dry);
        let reviewed = asking.review(&self.path, &review, self.mutating, LIMIT).await;
        let after =
            reviewed.as_ref().ok().filter(|reviewed| reviewed.allowed).and_then(|reviewed| reviewed.after.clone());
        (Answer::of(reviewed, &self.object), after.and_then(Result::ok))
    }

    /// The object after the webhook's changes.
    pub(super) async fn result(&self, asking: &Asking) -> Option<Value> {
        self.answer(asking).await.1
    }

    /// The same question about another object.
    pub(super) fn about_object(&self, object: &Value) -> Self {
        Self { object: object.clone(), ..self.clone() }
    }

    /// The same question to another webhook.
    pub(super) fn by(&self, hook: &Hook) -> Self {
        Self { path: hook.path.clone(), mutating: hook.mutating, ..self.clone() }
    }
}

/// Asks the questions in order, this number at the same time. `None` for questions for which no time was left.
pub(super) async fn round(asking: &Asking, asks: &[&Ask], parallel: usize, limit: Duration) -> Vec<Option<Answer>> {
    let until = Instant::now() + limit;
    let each = asks.iter().map(|ask| async move {
        if Instant::now() >= until {
            return None;
        }
        Some(ask.answer(asking).await.0)
    });
    futures_util::stream::iter(each).buffered(parallel).collect().await
}

/// Completed objects and refusals of the API server, by object.
struct Opinions<'b, 'a> {
    bed: &'b Bed<'a>,
    known: HashMap<String, Result<Value, String>>,
}

impl Opinions<'_, '_> {
    /// The object as the API server completes it, or why the server refuses it.
    async fn of(&mut self, question: &Question, object: &Value) -> Result<Result<Value, String>> {
        let object = placed(question, bare(object.clone()));
        let collection = question.resource.collection(NAMESPACE);
        let key = format!("{collection} {object}");
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let opinion = self.bed.dry(&collection, &object).await?;
        self.known.insert(key, opinion.clone());
        Ok(opinion)
    }
}

impl Opinions<'_, '_> {
    /// The object as the first mutating webhook sees it, and whether the API server accepts it. Only mutating webhooks
    /// see an object that is not valid.
    async fn shown(&mut self, question: &Question) -> Result<(Value, bool)> {
        let raw = placed(question, question.object.clone());
        let Ok(completed) = self.of(question, &question.object).await? else { return Ok((raw, false)) };
        let completed = bare(completed);
        // The API server refuses an object with fields that it generates after the mutating webhooks, such as the
        // selector of a Job.
        let is_accepted = self.of(question, &completed).await?.is_ok();
        Ok((if is_accepted { completed } else { raw }, true))
    }

    /// The refusal of the last object, with the first webhook after which the object is refused.
    async fn refusal(&mut self, question: &Question, steps: &[(About, Value)]) -> Result<Option<(About, String)>> {
        let Some((_, last)) = steps.last() else { return Ok(None) };
        let refused = self.of(question, last).await?.err();
        // Other errors are not about the contents of the object.
        if !refused.is_some_and(|why| INVALID.iter().any(|status| why.starts_with(status))) {
            return Ok(None);
        }
        for (about, object) in steps {
            if let Err(why) = self.of(question, object).await? {
                return Ok(Some((about.clone(), shortened(&why))));
            }
        }
        Ok(None)
    }
}

/// The object in the namespace of the play.
fn placed(question: &Question, mut object: Value) -> Value {
    let resource = &question.resource;
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.as_str().into();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        if resource.is_namespaced {
            metadata.insert("namespace".to_owned(), NAMESPACE.into());
        } else {
            metadata.remove("namespace");
        }
    }
    object
}

/// Asks each question for the first time, as a dry run, and follows it through all webhooks.
pub(super) async fn chain(bed: &Bed<'_>, asking: &Asking, hooks: &[Hook], questions: &[Question]) -> Result<Chained> {
    let mut opinions = Opinions { bed, known: HashMap::new() };
    let mut chained = Chained { asks: Vec::new(), refused: Vec::new(), questions: 0 };
    let until = Instant::now() + CHAINS_MAX;
    for question in questions {
        if Instant::now() >= until {
            break;
        }
        let before = chained.asks.len();
        one(&mut opinions, asking, hooks, question, &mut chained).await?;
        chained.questions += usize::from(chained.asks.len() > before);
    }
    Ok(chained)
}

async fn one(
    opinions: &mut Opinions<'_, '_>,
    asking: &Asking,
    hooks: &[Hook],
    question: &Question,
    chained: &mut Chained,
) -> Result<()> {
    let is_stored = question.operation != Operation::Create;
    let old = if is_stored {
        match opinions.of(question, &question.old).await? {
            Ok(old) => stored(&old, 1),
            Err(_) => return Ok(()),
        }
    } else {
        Value::Null
    };
    let is_deletion = question.operation == Operation::Delete;
    let (mut object, mut is_valid) = if is_deletion { (Value::Null, true) } else { opinions.shown(question).await? };
    if is_stored && !is_deletion {
        object = stored(&object, 1);
    }
    // The objects after each mutating webhook that changed something.
    let mut steps: Vec<(About, Value)> = Vec::new();
    let mut is_checked = false;
    for (number, hook) in hooks.iter().enumerate().filter(|(_, hook)| hook.covers(question)) {
        if !hook.mutating {
            if !is_checked {
                is_checked = true;
                if !steps.is_empty() {
                    let refused = opinions.refusal(question, &steps).await?;
                    let was_valid = std::mem::replace(&mut is_valid, refused.is_none());
                    chained.refused.extend(refused.filter(|_| was_valid));
                }
            }
            // Validating webhooks see only valid objects.
            if !is_valid {
                return Ok(());
            }
            if question.operation == Operation::Create {
                object = stored(&object, 0);
            }
        }
        let ask = ask(number, hook, question, chained.asks.len(), &object, &old);
        let (answer, after) = ask.answer_to(asking, hook.answers_dry_runs).await;
        let about = ask.about.clone();
        chained.asks.push(ask);
        match (&answer, after) {
            // The API server asks no further webhook after a denial or a failure.
            (Answer::Given(given), _) if !given.allowed => return Ok(()),
            (Answer::Failed(_), _) => return Ok(()),
            (_, Some(after)) if hook.mutating => {
                object = after;
                steps.push((about, object.clone()));
            }
            _ => {}
        }
    }
    if !is_checked && is_valid && !steps.is_empty() {
        chained.refused.extend(opinions.refusal(question, &steps).await?);
    }
    Ok(())
}

fn ask(number: usize, hook: &Hook, question: &Question, order: usize, object: &Value, old: &Value) -> Ask {
    let some = if object.is_null() { old } else { object };
    let about = About {
        number: order,
        webhook: hook.path.clone(),
        question: question.describe(),
        kind: question.resource.kind.clone(),
        name: some["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    Ask {
        hook: number,
        about,
        question: question.clone(),
        path: hook.path.clone(),
        mutating: hook.mutating,
        object: object.clone(),
        old: old.clone(),
    }
}
