//! Operations on all objects: creation before the load, and the clean-up after it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::super::Error;
use super::super::api::query;
use super::super::companions;
use super::super::interval::Effect;
use super::super::namespaces;
use super::super::operations::{Kind, Operation};
use super::super::version::LABEL;
use super::{Event, Worker};
use crate::failure::Failure;
use crate::open_loop::Workload as _;

/// Maximum number of requests in flight during creation and clean-up, and the number of tries of each request.
const BULK_AT_ONCE: usize = 32;
const BULK_TRIES: u32 = 4;
const BULK_RETRY: Duration = Duration::from_millis(250);
/// How long finalizers may hold objects after all objects were deleted.
const GONE_LIMIT: Duration = Duration::from_secs(30);
const GONE_POLL: Duration = Duration::from_millis(200);
/// How many other draws a refused object of a generated template gets.
const DRAWS: u64 = 8;
/// The revision of the first other draw, which no planned operation reaches.
const FIRST_DRAW: u64 = 1 << 40;
/// Texts of a refusal of the object itself: because of a schema or a rule, or by a webhook that the scenario does not name.
const INVALID: [&str; 2] = ["HTTP 422", "denied the request"];
/// The number of the object that dry runs change.
const FIRST: u64 = 0;

/// The outcome of an operation on many objects.
#[derive(Default)]
struct Filled {
    /// The objects on which every try failed.
    failures: Vec<(u64, Failure)>,
    /// The objects that a webhook refused.
    refused: Vec<u64>,
    /// The text of the first refusal that is not a webhook's answer.
    invalid: Option<String>,
}

impl Filled {
    /// Counts failures that are refusals of the object itself as refused.
    fn part(&mut self) {
        let is_invalid = |failure: &Failure| INVALID.iter().any(|text| failure.text.contains(text));
        for (object, failure) in self.failures.extract_if(.., |(_, failure)| is_invalid(failure)) {
            self.refused.push(object);
            self.invalid.get_or_insert(failure.text);
        }
    }
}

impl Worker {
    /// Creates the first objects, and tries the writes of the plan in a dry run.
    pub(super) async fn fill(&mut self) -> Result<(), Error> {
        let (plan, config) = (&self.operator.plan, self.operator.plan.config());
        if !plan.is_namespaced() {
            let made = companions::make(&self.operator.client, &config.with, None, &plan.tag()).await;
            made.map_err(|failure| Error::Fill { problem: failure.text })?;
        }
        let (population, is_made) = (u64::from(config.population), config.made);
        let objects: Vec<u64> = (0..population).collect();
        let mut filled = self.bulk(Kind::Create, objects).await;
        if is_made {
            filled = self.draw_again(filled).await;
        }
        if let Some((object, failure)) = filled.failures.into_iter().next() {
            let (namespace, name) = self.operator.plan.place(object);
            return Err(Error::Fill { problem: format!("{namespace}/{name}: {}", failure.text) });
        }
        if is_made {
            let refused: BTreeSet<u64> = filled.refused.into_iter().collect();
            let Some(first) = (0..population).find(|object| !refused.contains(object)) else {
                let text = self.shared.heard.lock().refused().or(filled.invalid).unwrap_or_default();
                let problem = format!(
                    "{text}. It was made from the definition, which says less than a webhook knows: write a `template`"
                );
                return Err(Error::Fill { problem });
            };
            if !refused.is_empty() {
                tracing::warn!(
                    refused = refused.len(),
                    of = population,
                    "some of the first objects were refused each time; the run goes on without them. The objects were made \
                     from the definition, which says less than a webhook knows: write a `template`"
                );
            }
            let unchanging = self.operator.refused_changes(first).await?;
            self.operator.plan.keep_rehearsed(&unchanging);
            return self.operator.rehearse(first).await;
        }
        self.operator.rehearse_denials().await?;
        // If webhooks refuse the creation of objects, changes cannot be rehearsed either; the refusal is judged as a
        // wrong answer.
        if self.shared.heard.lock().has_denied() { Ok(()) } else { self.operator.rehearse(FIRST).await }
    }

    /// Creates refused objects with other values for the same placeholders, a limited number of times. Objects that are
    /// refused each time count as refused.
    async fn draw_again(&mut self, mut filled: Filled) -> Filled {
        filled.part();
        for draw in 0..DRAWS {
            if filled.refused.is_empty() {
                break;
            }
            let mut again = self.bulk_once(Kind::Create, std::mem::take(&mut filled.refused), FIRST_DRAW + draw).await;
            again.part();
            filled.failures.extend(again.failures);
            filled.refused = again.refused;
            filled.invalid = filled.invalid.or(again.invalid);
        }
        filled
    }

    /// Deletes all objects, waits for finalizers, then deletes the namespaces.
    pub(super) async fn empty(&mut self) -> Result<u64, Error> {
        // Objects that are already being deleted are waited for below.
        let objects: Vec<u64> = self.slots.iter().filter(|(_, slot)| !slot.ends).map(|(object, _)| *object).collect();
        let count = objects.len() as u64;
        let numbers = self.namespaces.numbers();
        let failures = self.bulk(Kind::Delete, objects).await.failures;
        let canary = if self.canaries > 0 { self.operator.remove_canary().await } else { Ok(()) };
        let left = match failures.into_iter().next() {
            Some((_, failure)) => Err(failure.text),
            None => canary.map_err(|failure| failure.text),
        };
        let left = match left {
            Ok(()) => self.gone().await,
            Err(text) => Err(text),
        };
        let mut names: Vec<String> = numbers.iter().map(|&number| self.operator.plan.namespace_name(number)).collect();
        if self.canaries > 0 {
            names.push(self.operator.plan.canary_place().0);
        }
        if !self.operator.plan.is_namespaced() || self.operator.plan.has_lasting_namespace() {
            names.clear();
        }
        for name in names {
            namespaces::delete(&self.operator.client, &name)
                .await
                .map_err(|failure| Error::Left { problem: failure.text })?;
        }
        while self.ended().await {}
        let plan = &self.operator.plan;
        companions::remove(&self.operator.client, &plan.config().with, plan.is_namespaced(), &plan.tag())
            .await
            .map_err(|failure| Error::Left { problem: failure.text })?;
        left.map(|()| count).map_err(|problem| Error::Left { problem })
    }

    /// Runs the same operation on many objects with bounded concurrency, and again on the objects on which it failed.
    async fn bulk(&mut self, kind: Kind, mut objects: Vec<u64>) -> Filled {
        let mut all = Filled::default();
        for attempt in 0..BULK_TRIES {
            if attempt > 0 {
                tokio::time::sleep(BULK_RETRY * attempt).await;
            }
            let once = self.bulk_once(kind, objects, 0).await;
            all.refused.extend(once.refused);
            all.failures = once.failures;
            objects = all.failures.iter().map(|&(object, _)| object).collect();
            if objects.is_empty() {
                break;
            }
        }
        all
    }

    async fn bulk_once(&mut self, kind: Kind, objects: Vec<u64>, revision: u64) -> Filled {
        let mut filled = Filled::default();
        let mut objects = objects.into_iter();
        loop {
            while self.tasks.len() < BULK_AT_ONCE
                && let Some(object) = objects.next()
            {
                self.begin(None, Operation { kind, object, revision });
            }
            match self.tasks.join_next().await {
                None => return filled,
                Some(Ok(Event::Operation(finished))) => {
                    match &finished.result {
                        Err(failure) => filled.failures.push((finished.operation.object, failure.clone())),
                        Ok(done) if done.effect == Effect::Refused => filled.refused.push(finished.operation.object),
                        Ok(_) => {}
                    }
                    self.finish(finished);
                }
                Some(event) => self.handle(event),
            }
        }
    }

    /// Polls until no object or dependent with the run's label exists.
    async fn gone(&self) -> Result<(), String> {
        let limit = Instant::now() + GONE_LIMIT;
        let plan = &self.operator.plan;
        let label = query(&format!("{LABEL}={}", plan.tag()));
        for resource in std::iter::once(plan.resource()).chain(plan.child_resource()) {
            let path = format!("{}?labelSelector={label}&limit=1", resource.path());
            // A request that fails for a moment is repeated.
            while let Err(left) = self.none_of(&path).await {
                if Instant::now() >= limit {
                    return Err(left);
                }
                tokio::time::sleep(GONE_POLL).await;
            }
        }
        Ok(())
    }

    async fn none_of(&self, path: &str) -> Result<(), String> {
        match self.operator.client.first_of(path).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(format!(
                "{}/{} is still there {} s after its deletion; finalizers: {}",
                object["metadata"]["namespace"].as_str().unwrap_or_default(),
                object["metadata"]["name"].as_str().unwrap_or_default(),
                GONE_LIMIT.as_secs(),
                object["metadata"]["finalizers"],
            )),
            Err(failure) => Err(failure.text),
        }
    }
}
