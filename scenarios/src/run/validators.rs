//! The validators of the subject: their addresses, and their planned restarts and delays during the load.
//!
//! Owns the addresses, the proxies that delay answers, the state of restarts, and the record rows that prove each
//! restart and delay. The main task of the run owns the processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use loadgen::admission::Truth;
use mock_faults::{Fault, FaultId, Name};
use mock_proxy::Proxy;
use reports::record::{FaultEvent, FaultRow};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use units::Span;

use super::ports::free_port;
use crate::clock::millis;
use crate::scenario::{Other, Scenario, ValidatorDelay, ValidatorRestarts};
use crate::subject::{Log, Processes};

/// Name of validators' restarts in the rows of `faults.jsonl`.
pub(super) const RESTARTS: &str = "validator-restart";
pub(super) const DELAY: &str = "validator-delay";

/// Interval of checks whether a validator has ended or listens.
const POLL: Duration = Duration::from_millis(20);
/// The index of the first validator among the subject's processes; index 0 is the process with the webhook.
const FIRST: usize = 1;
/// The identity of the only fault in each proxy.
const PROXIED: FaultId = FaultId(0);
/// The fault number that reports late validators to the load, which then accepts refusals of any image; no fault of a
/// scenario has this number.
const TOLD_BY: u32 = u32::MAX - 1;

pub(super) struct Validators {
    others: Vec<Other>,
    proxies: Vec<Proxy>,
    restarts: Option<ValidatorRestarts>,
    begun: u32,
    done: u32,
    step: Step,
    delay: Option<ValidatorDelay>,
    is_late: bool,
    /// The time after which no delayed answer is in flight.
    well_ms: Option<u64>,
    /// Longest time of a review. If a validator answers later than this, a refusal does not count as wrong.
    patience: Duration,
    start_timeout: Duration,
}

enum Step {
    Quiet,
    /// The validator with this index was asked to end.
    Leaving(usize),
    Away {
        index: usize,
        until: Instant,
    },
    /// The validator was started again and does not listen yet.
    Coming(AbortOnDropHandle<Result<()>>),
}

impl Validators {
    /// Chooses addresses, and starts proxies for validators whose answers will be delayed.
    pub(super) async fn open(scenario: &Scenario) -> Result<Self> {
        let upkeep = scenario.subject.upkeep();
        let (mut others, mut proxies) = (Vec::new(), Vec::new());
        for _ in 0..upkeep.validators {
            let listens = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)?));
            let mut asked = listens;
            if upkeep.validator_delay.is_some() {
                let config = mock_proxy::Config { seed: scenario.seed, ..mock_proxy::Config::new(listens) };
                let proxy = Proxy::start(config).await.context("failed to stand before a validator")?;
                asked = proxy.address();
                proxies.push(proxy);
            }
            others.push(Other { listens, asked });
        }
        Ok(Self {
            others,
            proxies,
            restarts: upkeep.validator_restarts,
            begun: 0,
            done: 0,
            step: Step::Quiet,
            delay: upkeep.validator_delay,
            is_late: false,
            well_ms: None,
            patience: scenario.admission.as_ref().map_or(Duration::ZERO, |load| load.timeout.0),
            start_timeout: scenario.subject.start_timeout.0,
        })
    }

    /// The listening address and the public address of each validator.
    pub(super) fn others(&self) -> &[Other] {
        &self.others
    }

    /// The record rows with the planned restarts and delays.
    pub(super) fn planned(&self) -> Vec<FaultRow> {
        let restarts = self.restarts.map(|restarts| row(0, RESTARTS, FaultEvent::Planned, 0, replaced(&restarts)));
        let delay = self.delay.map(|delay| row(0, DELAY, FaultEvent::Planned, 0, delayed(&delay)));
        restarts.into_iter().chain(delay).collect()
    }

    /// Performs the actions whose planned time is at or before `now_ms`. Returns the record rows of these actions.
    pub(super) async fn tick(
        &mut self,
        now_ms: u64,
        subject: &mut Processes,
        log: &Log,
        truth: Option<&Arc<Truth>>,
    ) -> Result<Vec<FaultRow>> {
        let mut rows = Vec::new();
        rows.extend(self.hold_up(now_ms, truth)?);
        rows.extend(self.replace(now_ms, subject, log).await?);
        Ok(rows)
    }

    /// Ends restarts and delays, because the load is over; no further action begins.
    pub(super) fn finish(&mut self, now_ms: u64, truth: Option<&Arc<Truth>>) -> Result<Vec<FaultRow>> {
        let mut rows = Vec::new();
        if self.is_late {
            rows.extend(self.in_time(now_ms));
        }
        if let Some(truth) = truth.filter(|_| self.well_ms.take().is_some()) {
            truth.well(TOLD_BY);
        }
        if let Some(restarts) = self.restarts.take() {
            let (done, count) = (self.done, restarts.count);
            anyhow::ensure!(
                done == count,
                "only {done} of {count} validators were back when load ended: make `phases.steady` longer, or `validatorRestarts.away` shorter"
            );
            rows.push(row(now_ms, RESTARTS, FaultEvent::Ended, done.into(), String::new()));
        }
        Ok(rows)
    }

    /// Begins or ends the time in which validators' answers are delayed.
    fn hold_up(&mut self, now_ms: u64, truth: Option<&Arc<Truth>>) -> Result<Option<FaultRow>> {
        if let Some(truth) = truth.filter(|_| self.well_ms.take_if(|well_ms| now_ms >= *well_ms).is_some()) {
            truth.well(TOLD_BY);
        }
        let Some(delay) = self.delay else { return Ok(None) };
        if self.is_late {
            let is_over = now_ms >= millis(delay.at.0 + delay.lasts.0);
            return Ok(is_over.then(|| self.in_time(now_ms)).flatten());
        }
        if now_ms < millis(delay.at.0) {
            return Ok(None);
        }
        self.is_late = true;
        if let Some(truth) = truth.filter(|_| delay.by.0 >= self.patience) {
            truth.sick(TOLD_BY, None);
        }
        let fault = Fault::armed(Name::NetLatency).set("delay", Span(delay.by.0 / 2));
        for proxy in &self.proxies {
            proxy.faults().begin(PROXIED, &fault).context("a validator's answers could not be held up")?;
        }
        Ok(Some(row(now_ms, DELAY, FaultEvent::Started, 0, String::new())))
    }

    /// Ends the delay of new answers. Answers that are already delayed, and answers behind them, arrive at their
    /// planned time.
    fn in_time(&mut self, now_ms: u64) -> Option<FaultRow> {
        let delay = self.delay.take()?;
        self.is_late = false;
        self.well_ms = Some(now_ms + millis(delay.by.0 / 2));
        let hits = self.proxies.iter().map(|proxy| proxy.faults().hits(PROXIED)).sum();
        for proxy in &self.proxies {
            proxy.faults().end(PROXIED);
        }
        Some(row(now_ms, DELAY, FaultEvent::Ended, hits, String::new()))
    }

    /// Performs the next action of a validator's restart.
    async fn replace(&mut self, now_ms: u64, subject: &mut Processes, log: &Log) -> Result<Option<FaultRow>> {
        let Some(restarts) = self.restarts else { return Ok(None) };
        match &mut self.step {
            Step::Quiet if restarts.due(self.begun).is_some_and(|due| now_ms >= millis(due)) => {
                let index = FIRST + usize::try_from(self.begun)? % self.others.len();
                subject.send_away(index);
                self.step = Step::Leaving(index);
                self.begun += 1;
                let is_first = self.begun == 1;
                Ok(is_first.then(|| row(now_ms, RESTARTS, FaultEvent::Started, 0, String::new())))
            }
            Step::Leaving(index) if subject.is_away(*index) => {
                self.step = Step::Away { index: *index, until: Instant::now() + restarts.away.0 };
                Ok(None)
            }
            Step::Away { index, until } if Instant::now() >= *until => {
                let index = *index;
                subject.call_back(index, log).context("failed to start a validator again")?;
                let deadline = Instant::now() + self.start_timeout;
                let comes = listens(self.others[index - FIRST].listens, deadline);
                self.step = Step::Coming(AbortOnDropHandle::new(tokio::spawn(comes)));
                Ok(None)
            }
            Step::Coming(comes) if comes.is_finished() => {
                comes.await.context("the wait for a validator broke")??;
                self.step = Step::Quiet;
                self.done += 1;
                let detail = "a validator was replaced".to_owned();
                Ok(Some(row(now_ms, RESTARTS, FaultEvent::Hit, self.done.into(), detail)))
            }
            _ => Ok(None),
        }
    }
}

/// A text about the planned restarts.
pub(super) fn replaced(restarts: &ValidatorRestarts) -> String {
    let ValidatorRestarts { count, every, away, .. } = restarts;
    format!("{count} times a validator is replaced, one every {every}, each gone for {away}")
}

/// A text about the planned delays.
pub(super) fn delayed(delay: &ValidatorDelay) -> String {
    format!("for {} validators answer {} later", delay.lasts, delay.by)
}

async fn listens(address: SocketAddr, deadline: Instant) -> Result<()> {
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() >= deadline {
            bail!("a validator that was started again does not listen at {address}: look into subject.log");
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn row(t_ms: u64, name: &str, event: FaultEvent, hits: u64, detail: String) -> FaultRow {
    let detail = (!detail.is_empty()).then_some(detail);
    FaultRow { t_ms, id: name.to_owned(), name: name.to_owned(), event, hits, ok: None, detail }
}
