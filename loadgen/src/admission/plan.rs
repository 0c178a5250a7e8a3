//! [`Plan`]: all requests of admission load, decided before the load starts. Pure: no I/O.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::Error;
use super::answers::Answers;
use super::config::{self, Config, Replayed};
use super::corpus::Corpus;
use super::expected::Expected;
use super::image::Image;
use super::review::Template;
use super::truth::Truth;
use crate::arrivals::{Schedule, Stream};
use crate::seed::{self, UID_LEN};

/// Number of arrivals, with their payloads, that the fingerprint of a plan contains. All later arrivals follow from the
/// same random streams.
const FINGERPRINTED_ARRIVALS: usize = 65_536;

/// A plan of admission load. A clone is cheap; the same arguments give the same plan, byte for byte.
#[derive(Debug, Clone)]
pub struct Plan {
    config: Config,
    seed: u64,
    schedule: Schedule,
    corpus: Arc<Corpus>,
    /// The number of the first recorded review in the corpus.
    recorded_at: u32,
    share: Share,
}

/// Every n-th request of the plan, from a start number on.
#[derive(Debug, Clone, Copy)]
struct Share {
    number: u64,
    of: u64,
}

impl Plan {
    /// Makes the payloads and fixes the random streams. `images` are the images of the subject's registry.
    pub fn build(config: &Config, seed: u64, length: Duration, images: &[Image]) -> Result<Self, Error> {
        if config.objects.is_empty() {
            config::check_images(images)?;
        }
        Self::of(config, seed, length, |config| Corpus::build(&config.mix, config.size, seed, images))
    }

    /// A plan for an unknown webhook: its images are invented, and every answer that kube-apiserver accepts is right.
    pub fn for_any_webhook(config: &Config, seed: u64, length: Duration) -> Result<Self, Error> {
        Self::of(config, seed, length, |config| Corpus::for_any_webhook(&config.mix, config.size, seed))
    }

    /// A plan that sends only one template.
    pub(super) fn of_one(config: &Config, seed: u64, length: Duration, template: Template) -> Result<Self, Error> {
        Self::of(config, seed, length, |config| Corpus::only(&config.mix, template))
    }

    fn of(config: &Config, seed: u64, length: Duration, corpus: impl FnOnce(&Config) -> Corpus) -> Result<Self, Error> {
        config.check()?;
        let corpus = |config: &Config| {
            if config.objects.is_empty() { corpus(config) } else { Corpus::own(&config.objects, seed) }
        };
        let (schedule, replayed) = config.schedule_and_reviews(seed, length)?;
        let (corpus, recorded_at) = match replayed {
            None => (corpus(config), 0),
            Some(Replayed { reviews, has_open }) => {
                let mut corpus = if has_open { corpus(config) } else { Corpus::empty() };
                let recorded_at = corpus.add(reviews);
                (corpus, recorded_at)
            }
        };
        let share = Share { number: 0, of: 1 };
        Ok(Self { config: config.clone(), seed, schedule, corpus: Arc::new(corpus), recorded_at, share })
    }

    /// The requests of the plan that the `number`-th of several generators sends, counted from 0: every `of`-th
    /// request. The requests of all generators together are the plan, and each generator has the plan's fingerprint.
    /// `of` is at least 1 and `number` below it.
    #[must_use]
    pub fn share(mut self, number: u32, of: u32) -> Self {
        let of = u64::from(of.max(1));
        self.share = Share { number: u64::from(number).min(of - 1), of };
        self
    }

    /// Writes the plan to a file, so that [`Config::replay`] can send it again. Each review is written once, before its
    /// first request.
    pub fn record(&self, out: &mut impl io::Write) -> io::Result<()> {
        let mut known = vec![false; self.corpus.templates().len()];
        for (at, request) in self.clone().requests() {
            let number = request.template as usize;
            let at_us = at.as_micros();
            if std::mem::replace(&mut known[number], true) {
                writeln!(out, r#"{{"atUs":{at_us},"review":"{number}"}}"#)?;
            } else {
                write!(out, r#"{{"atUs":{at_us},"review":"{number}","body":"#)?;
                out.write_all(self.corpus.template(request.template).bytes())?;
                out.write_all(b"}\n")?;
            }
        }
        Ok(())
    }

    /// The number of requests over the whole run that this generator sends.
    pub fn total(&self) -> u64 {
        let Share { number, of } = self.share;
        self.schedule.total().saturating_sub(number).div_ceil(of)
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub fn length(&self) -> Duration {
        self.schedule.length()
    }

    /// The facts that change right answers; callers report changes during the load.
    pub fn truth(&self) -> Arc<Truth> {
        Arc::clone(self.corpus.truth())
    }

    /// Sets the observer of every answer; only the first call has an effect.
    pub fn tell(&self, answers: Arc<dyn Answers>) {
        let _ = self.corpus.answers().set(answers);
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// SHA-256, in hex, over the first arrivals and their payloads. Equal fingerprints mean equal load; a plan and its
    /// recording have the same one. In the fingerprint, payloads count in the order of their first use. Uids are drawn
    /// anew in each run and do not count.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut known: Vec<Option<u64>> = vec![None; self.corpus.templates().len()];
        let mut used = 0_u64;
        hash.update(self.schedule.total().to_le_bytes());
        for (at, request) in self.clone().whole().take(FINGERPRINTED_ARRIVALS) {
            hash.update(u64::try_from(at.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
            let place = &mut known[request.template as usize];
            if place.is_none() {
                let bytes = self.corpus.template(request.template).bytes();
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
                used += 1;
            }
            hash.update(place.get_or_insert(used).to_le_bytes());
        }
        hex::encode(hash.finalize())
    }

    pub fn describe(&self) -> String {
        let config = &self.config;
        let client = config.client.describe();
        let templates = self.corpus.templates();
        let bytes: usize = templates.iter().map(|template| template.bytes().len()).sum();
        let largest = templates.iter().map(|template| template.bytes().len()).max().unwrap_or(0);
        let right = if templates.iter().all(|template| template.expected == Expected::Any) {
            "any valid answer is right".to_owned()
        } else {
            format!(
                "{} of them must be denied",
                templates.iter().filter(|template| template.expected.is_deny()).count()
            )
        };
        let mut text = format!(
            "admission: {}, sent {client}\n\
             admission: timeout {}, at most {} calls in flight\n\
             admission: {} payloads of {:.1} KiB on average, {:.1} KiB at most; {right}\n",
            self.schedule.summary(),
            config.timeout,
            config.max_in_flight,
            templates.len(),
            bytes as f64 / templates.len().max(1) as f64 / 1024.0,
            largest as f64 / 1024.0,
        );
        // A recording may bring every review.
        let draws = !self.corpus.actions().is_empty();
        for own in &config.objects {
            let called = own.called.as_deref().map(|called| format!(" ({called})")).unwrap_or_default();
            let _ = writeln!(text, "admission: objects {}{called}", own.resource);
        }
        let total = config.mix.total().max(1) as f64;
        for (action, weight) in config.mix.weights().into_iter().filter(|&(_, weight)| weight > 0 && draws) {
            let variants = self.corpus.actions().iter().find(|(known, _)| *known == action).map_or(&[][..], |(_, v)| v);
            let reviews: usize = variants.iter().map(Vec::len).sum();
            let each = reviews as f64 / variants.len().max(1) as f64;
            let share = f64::from(weight) / total * 100.0;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "admission: {share:.0} % of actions are {}, {each:.1} requests each", action.key());
        }
        let _ = writeln!(text, "admission: fingerprint {}", self.fingerprint());
        text
    }

    /// The requests of this generator with their planned times, made one after another.
    pub(super) fn requests(self) -> impl Iterator<Item = (Duration, Request)> + Send + use<> {
        let Share { number, of } = self.share;
        let usize_of = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.whole().skip(usize_of(number)).step_by(usize_of(of))
    }

    fn whole(self) -> Requests {
        Requests {
            times: self.schedule.stream(),
            actions: seed::stream(self.seed, "actions"),
            uids: seed::stream(self.seed, "uids"),
            plan: self,
            pending: VecDeque::new(),
        }
    }

    /// The planned times and bodies of the first requests.
    pub fn preview(&self, requests: usize) -> Vec<(Duration, Bytes)> {
        let body = |request: Request| self.corpus.template(request.template).with_uid(&request.uid);
        self.clone().requests().take(requests).map(|(at, request)| (at, body(request))).collect()
    }

    /// The same plan with another corpus that has the same sequences.
    pub(super) fn over(self, corpus: Corpus) -> Self {
        Self { corpus: Arc::new(corpus), ..self }
    }

    pub(super) fn corpus(&self) -> &Arc<Corpus> {
        &self.corpus
    }
}

/// One call: its payload and its uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub template: u32,
    pub uid: [u8; UID_LEN],
}

/// The stream of requests. The stream stores at most the remaining requests of one action.
struct Requests {
    times: Stream,
    actions: ChaCha8Rng,
    uids: ChaCha8Rng,
    plan: Plan,
    pending: VecDeque<u32>,
}

impl Requests {
    /// The time of the next request, and its template.
    fn draw(&mut self) -> Option<(Duration, u32)> {
        let (at, review) = self.times.next()?;
        if let Some(number) = review {
            return Some((at, self.plan.recorded_at + number));
        }
        if self.pending.is_empty()
            && let Some(sequence) = self.plan.corpus.draw_own(&mut self.actions)
        {
            self.pending.extend(sequence);
        }
        if self.pending.is_empty() {
            let action = self.plan.config.mix.draw(&mut self.actions)?;
            self.pending.extend(self.plan.corpus.draw(action, &mut self.actions));
        }
        Some((at, self.pending.pop_front()?))
    }
}

impl Iterator for Requests {
    type Item = (Duration, Request);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, template) = self.draw()?;
        Some((at, Request { template, uid: seed::uid(&mut self.uids) }))
    }

    /// Skips `passed` requests without making their texts, and returns the next request. Each of several threads skips
    /// the requests of the other threads.
    fn nth(&mut self, passed: usize) -> Option<Self::Item> {
        for _ in 0..passed {
            self.draw()?;
            seed::pass_uid(&mut self.uids);
        }
        self.next()
    }
}

#[cfg(test)]
mod tests;
