//! Operations on all objects: creation before the load, and the clean-up after it.

use std::time::{Duration, Instant};

use super::super::Error;
use super::super::api::query;
use super::super::companions;
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

impl Worker {
    /// Creates the first objects, and tries the writes of the plan in a dry run.
    pub(super) async fn fill(&mut self) -> Result<(), Error> {
        let (plan, config) = (&self.operator.plan, self.operator.plan.config());
        if !plan.is_namespaced() {
            let made = companions::make(&self.operator.client, &config.with, None, &plan.tag()).await;
            made.map_err(|failure| Error::Fill { problem: failure.text })?;
        }
        let population = u64::from(config.population);
        let objects = (0..population).collect();
        let failures = self.bulk(Kind::Create, objects).await;
        if let Some((object, failure)) = failures.into_iter().next() {
            let (namespace, name) = self.operator.plan.place(object);
            return Err(Error::Fill { problem: format!("{namespace}/{name}: {}", failure.text) });
        }
        if self.operator.plan.config().made
            && let Some(text) = self.shared.heard.lock().refused()
        {
            let problem = format!(
                "{text}. It was made from the definition, which says less than a webhook knows: write a `template`"
            );
            return Err(Error::Fill { problem });
        }
        self.operator.rehearse_denials().await?;
        // If webhooks refuse the creation of objects, changes cannot be rehearsed either; the refusal is judged as a
        // wrong answer.
        if self.shared.heard.lock().has_denied() { Ok(()) } else { self.operator.rehearse().await }
    }

    /// Deletes all objects, waits for finalizers, then deletes the namespaces.
    pub(super) async fn empty(&mut self) -> Result<u64, Error> {
        // Objects that are already being deleted are waited for below.
        let objects: Vec<u64> = self.slots.iter().filter(|(_, slot)| !slot.ends).map(|(object, _)| *object).collect();
        let count = objects.len() as u64;
        let numbers = self.namespaces.numbers();
        let failures = self.bulk(Kind::Delete, objects).await;
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
        if !self.operator.plan.is_namespaced() {
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

    /// Runs the same operation on many objects with bounded concurrency, and returns the objects on which every try
    /// failed.
    async fn bulk(&mut self, kind: Kind, mut objects: Vec<u64>) -> Vec<(u64, Failure)> {
        let mut failures = Vec::new();
        for attempt in 0..BULK_TRIES {
            if attempt > 0 {
                tokio::time::sleep(BULK_RETRY * attempt).await;
            }
            failures = self.bulk_once(kind, objects).await;
            objects = failures.iter().map(|&(object, _)| object).collect();
            if objects.is_empty() {
                break;
            }
        }
        failures
    }

    async fn bulk_once(&mut self, kind: Kind, objects: Vec<u64>) -> Vec<(u64, Failure)> {
        let mut failures = Vec::new();
        let mut objects = objects.into_iter();
        loop {
            while self.tasks.len() < BULK_AT_ONCE
                && let Some(object) = objects.next()
            {
                self.begin(None, Operation { kind, object, revision: 0 });
            }
            match self.tasks.join_next().await {
                None => return failures,
                Some(Ok(Event::Operation(finished))) => {
                    if let Err(failure) = &finished.result {
                        failures.push((finished.operation.object, failure.clone()));
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
