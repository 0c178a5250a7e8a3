//! The instances of one validator: chooses the instance for an inquiry, and the next instance after a failure, and
//! tracks the state of each instance.
//!
//! This module owns weights, health and the limited queue of inquiries. If an instance fails in any way, the next
//! instance gets the inquiry while time remains. A repeated inquiry does no harm, because a ruling depends only on the
//! inquiry and the trusted keys. An inquiry waits a short time for an instance that restarts, but not for an instance
//! that stays unreachable.

mod metrics;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use parking_lot::{Mutex, RwLock};
use rand::RngExt as _;
use service_core::wire::{self, Limits, Protocol, Silence};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::answer::Breach;
use crate::link::{Files, Link, LinkError};
pub use metrics::{Metrics, Outcome};

/// Inquiries wait for an instance for this long after the last answer of any instance, because a restarted process
/// answers again within this time.
const RESTART: Duration = Duration::from_secs(5);
/// The first delay between attempts while no instance is reachable. The delay doubles with each attempt up to
/// [`WAIT_MAX`].
const WAIT: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_millis(250);
/// Maximum number of idle HTTP/1.1 connections of each instance.
const IDLE_MAX: usize = 8;

/// A function that makes the request from an instance's base path and the remaining time.
pub type Make<'a> = dyn Fn(&str, Duration) -> Request<Bytes> + Send + Sync + 'a;
/// A function that parses an answer and returns the generation of the instance's trusted keys, if the answer states it.
pub type Read<'a, T> = dyn Fn(&Response<Bytes>) -> Result<(T, Option<String>), Breach> + Send + Sync + 'a;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The validator's name, for metrics.
    pub name: String,
    /// The addresses of the instances, each with its weight.
    pub instances: Vec<(String, u32)>,
    pub files: Files,
    pub protocol: Protocol,
    pub open_max: usize,
    /// Maximum number of inquiries that may wait.
    pub queue_max: usize,
    /// Time limit of an inquiry to one instance.
    pub timeout: Duration,
    /// Whether instances answer GET on [`crate::VALIDATE`] with a description of themselves.
    pub describes_itself: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// No instance gave a ruling, so nothing is known about the image.
    #[error("{0}")]
    Unavailable(String),
    /// Other callers have used up a limit of this process or of the validator.
    #[error("{0}")]
    Busy(String),
    /// The inquiry was refused; another attempt would be refused too.
    #[error("{0}")]
    Refused(String),
}

pub struct Pool {
    settings: Settings,
    instances: Vec<Instance>,
    turn: AtomicU64,
    places: Semaphore,
    waiting: AtomicUsize,
    /// The time at which any instance last answered.
    good: Mutex<Instant>,
    generation: RwLock<Arc<str>>,
    metrics: Metrics,
    watch: Mutex<Option<AbortOnDropHandle<()>>>,
}

struct Instance {
    link: Link,
    weight: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Why the instance does not answer; `None` if it answers.
    down: Option<String>,
    /// The last known generation of the instance's trusted keys.
    generation: String,
}

/// Why one instance has given no ruling.
enum Trouble {
    /// The instance is unreachable, perhaps because it is restarting.
    Away(String),
    /// The instance already has as many open inquiries as it accepts.
    Full(String),
    /// The instance's answer is invalid.
    Wrong(String),
    /// The instance refuses the inquiry.
    Refused(String),
}

impl Pool {
    /// A pool of connections to all instances. From now on, the pool checks the certificate files and health of the
    /// instances. The caller must be inside a tokio runtime.
    pub fn open(settings: Settings, metrics: Metrics) -> Result<Arc<Self>, LinkError> {
        let limits = Limits { open_max: settings.open_max, idle_max: IDLE_MAX };
        let open = |(url, weight): &(String, u32)| {
            let link = Link::open(url, &settings.files, settings.protocol, limits)?;
            Ok(Instance { link, weight: u64::from(*weight), state: Mutex::default() })
        };
        let instances = settings.instances.iter().map(open).collect::<Result<Vec<_>, LinkError>>()?;
        let pool = Arc::new(Self {
            turn: AtomicU64::new(rand::rng().random()),
            places: Semaphore::new(settings.open_max),
            waiting: AtomicUsize::new(0),
            good: Mutex::new(Instant::now()),
            generation: RwLock::new("".into()),
            metrics,
            watch: Mutex::new(None),
            settings,
            instances,
        });
        let watch = tokio::spawn(watch::follow(Arc::downgrade(&pool)));
        *pool.watch.lock() = Some(AbortOnDropHandle::new(watch));
        Ok(pool)
    }

    /// A text that changes when the known trusted keys of any instance change.
    pub fn generation(&self) -> Arc<str> {
        Arc::clone(&self.generation.read())
    }

    /// Sends `request` to an instance; parses the answer, which may have at most `cap_bytes`, with `read`.
    pub async fn ask<T>(
        &self,
        request: &Make<'_>,
        read: &Read<'_, T>,
        cap_bytes: usize,
        deadline: Instant,
    ) -> Result<T, Unanswered> {
        let (outcome, answer) = match self.place(deadline).await {
            Err(why) => (Outcome::Crowded, Err(why)),
            Ok(_place) => self.exchange(request, read, cap_bytes, deadline).await,
        };
        self.metrics.count(&self.settings.name, outcome);
        answer
    }

    /// Waits until the limit of open inquiries allows one more inquiry.
    async fn place(&self, deadline: Instant) -> Result<tokio::sync::SemaphorePermit<'_>, Unanswered> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let late = |what: String| Unanswered::Busy(what);
        let waiting = Waiting::new(&self.waiting);
        if waiting.number > self.settings.queue_max {
            return Err(late(format!("{} questions wait already", self.settings.queue_max)));
        }
        match timeout_at(deadline, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(late("no place among the questions under way before the deadline".to_owned())),
        }
    }

    async fn exchange<T>(
        &self,
        request: &Make<'_>,
        read: &Read<'_, T>,
        cap_bytes: usize,
        deadline: Instant,
    ) -> (Outcome, Result<T, Unanswered>) {
        let (mut wait, mut first) = (WAIT, true);
        loop {
            let order = self.order();
            let (mut away, mut full, mut last) = (true, false, None);
            for (at, index) in order.iter().enumerate() {
                let instance = &self.instances[*index];
                // The first instance must leave time for the next one.
                let left = deadline.saturating_duration_since(Instant::now());
                let share = left / u32::try_from(order.len() - at).unwrap_or(1).min(2);
                let until = Instant::now() + share.min(self.settings.timeout);
                match self.ask_one(instance, request, read, cap_bytes, until).await {
                    Ok(answer) => {
                        return (if first { Outcome::Answered } else { Outcome::Elsewhere }, Ok(answer));
                    }
                    Err(trouble) => {
                        away &= matches!(trouble, Trouble::Away(_) | Trouble::Full(_));
                        full |= matches!(trouble, Trouble::Full(_));
                        last = Some((instance.link.authority(), trouble));
                    }
                }
                first = false;
                if Instant::now() >= deadline {
                    break;
                }
            }
            // Waits for an instance that was there a moment ago.
            let next = Instant::now() + wait.mul_f64(rand::rng().random_range(0.5..1.5));
            if !away || next >= deadline || self.good.lock().elapsed() >= RESTART {
                return self.nobody(last, full);
            }
            let _listening = Silence::listen().filter(|_| !full);
            sleep_until(next).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// The error after no instance has answered; `full` states whether an instance was at its limit.
    fn nobody<T>(&self, last: Option<(String, Trouble)>, full: bool) -> (Outcome, Result<T, Unanswered>) {
        let name = &self.settings.name;
        match last {
            None => {
                (Outcome::Unavailable, Err(Unanswered::Unavailable(format!("the validator `{name}` has no instance"))))
            }
            Some((authority, Trouble::Refused(why))) => {
                let what = format!("the validator `{name}` at {authority} refuses the question: {why}");
                (Outcome::Refused, Err(Unanswered::Refused(what)))
            }
            Some((authority, Trouble::Wrong(why))) => {
                let what = format!("the validator `{name}` at {authority} cannot be understood: {why}");
                (Outcome::Wrong, Err(Unanswered::Unavailable(what)))
            }
            Some((authority, Trouble::Away(why) | Trouble::Full(why))) => {
                let what = format!("the validator `{name}` at {authority} does not answer: {why}");
                let why = if full { Unanswered::Busy(what) } else { Unanswered::Unavailable(what) };
                (Outcome::Unavailable, Err(why))
            }
        }
    }

    async fn ask_one<T>(
        &self,
        instance: &Instance,
        request: &Make<'_>,
        read: &Read<'_, T>,
        cap_bytes: usize,
        until: Instant,
    ) -> Result<T, Trouble> {
        let left = until.saturating_duration_since(Instant::now());
        let answer = instance.link.client().fetch(request(instance.link.base(), left), cap_bytes, until).await;
        let trouble = match answer {
            Ok(answer) => match read(&answer) {
                Ok((answer, generation)) => {
                    self.up(instance, generation);
                    return Ok(answer);
                }
                Err(breach) if breach.is_of_question() => return Err(Trouble::Refused(breach.to_string())),
                // An instance that drains or is full counts as absent for the moment.
                Err(breach @ Breach::Status { status, .. }) if status.is_server_error() => {
                    Trouble::Away(breach.to_string())
                }
                Err(breach @ Breach::Status { status: StatusCode::TOO_MANY_REQUESTS, .. }) => {
                    Trouble::Full(breach.to_string())
                }
                Err(breach) => Trouble::Wrong(breach.to_string()),
            },
            Err(wire::Error::TooLarge { cap_bytes }) => {
                Trouble::Wrong(format!("its answer is larger than {cap_bytes} bytes"))
            }
            Err(wire::Error::Deadline { .. }) => Trouble::Away(format!("no answer within {} ms", left.as_millis())),
            Err(error) => Trouble::Away(wire::chain(&error)),
        };
        let (Trouble::Away(why) | Trouble::Full(why) | Trouble::Wrong(why) | Trouble::Refused(why)) = &trouble;
        instance.state.lock().down = Some(why.clone());
        Err(trouble)
    }

    /// The instances in the order of use: an instance that answers, chosen by weight; other instances that answer;
    /// instances that do not answer.
    fn order(&self) -> Vec<usize> {
        let up: Vec<bool> = self.instances.iter().map(|instance| instance.state.lock().down.is_none()).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let weights: Vec<u64> =
            self.instances.iter().zip(&up).map(|(one, up)| if *up { one.weight } else { 0 }).collect();
        order(&weights, &up, turn)
    }

    fn up(&self, instance: &Instance, generation: Option<String>) {
        *self.good.lock() = Instant::now();
        let mut state = instance.state.lock();
        state.down = None;
        let Some(generation) = generation.filter(|generation| *generation != state.generation) else { return };
        state.generation = generation;
        drop(state);
        let mut all: Vec<String> =
            self.instances.iter().map(|instance| instance.state.lock().generation.clone()).collect();
        all.sort_unstable();
        all.dedup();
        *self.generation.write() = all.join(" ").into();
    }
}

struct Waiting<'a> {
    count: &'a AtomicUsize,
    number: usize,
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        Self { count, number: count.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The indices of instances in the order of use. Over successive values of `turn`, each instance comes first as often
/// as its weight demands.
fn order(weights: &[u64], up: &[bool], turn: u64) -> Vec<usize> {
    let total: u64 = weights.iter().sum();
    let mut at = if total == 0 { 0 } else { turn % total };
    let mut first = 0;
    for (index, weight) in weights.iter().enumerate() {
        if at < *weight {
            first = index;
            break;
        }
        at -= weight;
    }
    let around = (0..weights.len()).map(|step| (first + step) % weights.len());
    let (mut answering, away): (Vec<_>, Vec<_>) = around.partition(|index| up[*index]);
    answering.extend(away);
    answering
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_among_those_that_answer_and_the_others_come_last() {
        let firsts =
            |weights: &[u64], up: &[bool]| -> Vec<usize> { (0..8).map(|turn| order(weights, up, turn)[0]).collect() };
        assert_eq!(firsts(&[3, 1], &[true, true]), [0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(firsts(&[0, 1], &[false, true]), [1; 8]);
        assert_eq!(order(&[0, 1, 1], &[false, true, true], 1), [2, 1, 0]);
        assert_eq!(order(&[0, 0], &[false, false], 7), [0, 1], "somebody is asked all the same");
    }
}
