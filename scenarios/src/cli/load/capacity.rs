//! `longhaul load --capacity`: the highest rate at which a webhook meets its limits.

use std::time::Duration;

use anyhow::Result;
use reports::judge::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Rate, Span};

use super::{Arguments, opened, senders, traffic, watch};
use crate::load::capacity::{
    self, CONFIRMATION_LONGER, CONFIRMATIONS_MAX, Context, Culprit, LENGTHENED_MAX, Next, Outcome, STAGES_MAX, Search,
    Stage, Tried,
};
use crate::load::limits::{Limits, Percent};
use crate::load::measure::{Ended, Watch};
use crate::load::workers::Workers;

/// The name and version of the schema of `--json`.
const SCHEMA: &str = "longhaul-capacity/v1";
/// Pause after each rate, in which an overloaded webhook recovers.
const SETTLE: Duration = Duration::from_secs(1);
/// Longest duration of a search. Workers with a deadline, such as Pods of a Job, may run for this time.
const LONGEST: Duration = Duration::from_hours(6);
/// Default of `--rate`: the first rate of the search, in requests per second.
const DEFAULT_START: f64 = 500.0;
/// Default time of the measurement at each rate.
const DEFAULT_TRIED: Span = Span::from_secs(10);
/// Default limit of the share of failed requests, because fast errors are no capacity.
const DEFAULT_ERRORS: Percent = Percent(0.1);

/// The result as `--json` writes it: one JSON object with a versioned schema.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema: &'static str,
    url: &'a str,
    limits: String,
    /// The confirmed rate, in requests per second.
    capacity_per_second: Option<f64>,
    /// Whether the load generator was the limit, so that the webhook may be able to do more.
    generator_bound: bool,
    seed: u64,
    /// Number of sending processes.
    workers: usize,
    text: &'a str,
    verdict: Verdict,
    exit_code: u8,
    stages: &'a [Stage],
}

/// Searches for the highest rate that meets the limits. Passes if a rate is found, and fails if no rate meets the
/// limits.
pub(super) async fn search(arguments: &Arguments) -> Result<Verdict> {
    let (start, tried_for) = (start(arguments), tried_for(arguments));
    let mut limits = arguments.limits;
    anyhow::ensure!(
        limits.p50.is_some() || limits.p99.is_some() || limits.p999.is_some() || limits.errors.is_some(),
        "--capacity needs a limit, because it looks for the highest rate within the limits: add for example --p99 20ms"
    );
    limits.errors.get_or_insert(DEFAULT_ERRORS);
    anyhow::ensure!(!tried_for.0.is_zero(), "--for is 0s: write how long each rate is tried, for example 10s");
    anyhow::ensure!(start.as_per_second() > 0.0, "--rate is 0: write the rate that is tried first, for example 100/s");
    let (to, traffic) = (&arguments.to, &arguments.traffic);
    let first = traffic::job_of(to, traffic, start, None, tried_for.0)?;
    let most = loadgen::admission::HIGHEST_RATE * f64::from(first.config.threads);
    let highest = arguments.curve.highest.map_or(most, |rate| rate.as_per_second().min(most));
    anyhow::ensure!(highest >= start.as_per_second(), "--highest is below --rate ({start}): write a higher one");
    arguments.senders.check()?;
    arguments.output.check()?;
    traffic::check(&first, &first.plan()?, to).await?;
    let mut watch = watch(&arguments.output)?;
    let mut workers = opened(&arguments.senders, LONGEST, &mut watch).await?;
    if !arguments.output.quiet {
        crate::out::err!("{}", bound(arguments, &limits, first.config.timeout.0));
        crate::out::err!("{}", capacity::heads());
    }
    let mut search = Search::new(start.as_per_second(), highest);
    let found = stages(arguments, &limits, &mut search, (&mut workers, &mut watch)).await?;
    watch.live.end();
    let count = workers.as_ref().map_or(1, Workers::count);
    let verdict = tell(arguments, &limits, &found, (first.seed, count));
    let Some(why) = &watch.log_ended else { return Ok(verdict) };
    crate::out::err!("longhaul: {why}");
    Ok(verdict.max(Verdict::Inconclusive))
}

fn start(arguments: &Arguments) -> Rate {
    arguments.curve.rate.unwrap_or(Rate::per_second(DEFAULT_START))
}

fn tried_for(arguments: &Arguments) -> Span {
    arguments.curve.length.unwrap_or(DEFAULT_TRIED)
}

/// The result of the search, and its measurements.
struct Found {
    end: End,
    stages: Vec<Stage>,
}

enum End {
    Found(Outcome),
    /// The measurements have too few answers to decide; the text gives the reason.
    Undecided(String),
    /// The last measurement cannot be trusted; the text gives the reason.
    Broken(String),
}

async fn stages(
    arguments: &Arguments,
    limits: &Limits,
    search: &mut Search,
    (workers, watch): (&mut Option<Workers>, &mut Watch),
) -> Result<Found> {
    let context = Context { limits, max_in_flight: arguments.traffic.max_in_flight() };
    let mut stages = Vec::new();
    loop {
        let (rate, confirmation) = match search.next() {
            Next::Try(rate) => (rate, false),
            Next::Confirm(rate) => (rate, true),
            Next::End(outcome) => return Ok(Found { end: End::Found(outcome), stages }),
        };
        let mut length = capacity::length(rate, tried_for(arguments), limits);
        if confirmation {
            length.0 *= CONFIRMATION_LONGER;
        }
        let job = traffic::job_of(&arguments.to, &arguments.traffic, Rate::per_second(rate), None, length.0)?;
        let plan = job.plan()?;
        let fingerprint = plan.fingerprint();
        let measured = senders::measure(&job, plan, workers.as_mut(), watch).await?;
        watch.log_offset += measured.lasted + SETTLE;
        match measured.ended {
            Ended::Whole => {}
            Ended::Interrupted(signal) => {
                return Ok(Found { end: End::Broken(format!("{signal} ended the search early")), stages });
            }
            Ended::Broken(why) | Ended::Lost(why) => return Ok(Found { end: End::Broken(why), stages }),
        }
        let tried = Tried { rate, length, confirmation, fingerprint };
        let stage = capacity::stage(tried, &measured.total, &context);
        if !arguments.output.quiet {
            watch.live.say(&capacity::line(&stage));
        }
        let met = stage.met;
        let undecided = stage.why.clone().filter(|_| stage.undecided);
        stages.push(stage);
        if let Some(why) = undecided {
            // Lower rates would have even fewer answers. Higher rates that broke the limits say nothing about this one.
            let remedy = "give --for more time, or --rate a higher one";
            return Ok(Found { end: End::Undecided(format!("not known: {why}; {remedy}")), stages });
        }
        search.record(met);
        tokio::time::sleep(SETTLE).await;
    }
}

/// The text that is printed before the search, with the longest time that the search can take.
fn bound(arguments: &Arguments, limits: &Limits, timeout: Duration) -> String {
    let each = tried_for(arguments).0;
    let longest = each * LENGTHENED_MAX;
    let beside = SETTLE + timeout + Duration::from_secs(1);
    let most = (longest + beside) * STAGES_MAX + (longest * CONFIRMATION_LONGER + beside) * CONFIRMATIONS_MAX;
    let usual = each * 10 + each * CONFIRMATION_LONGER;
    format!(
        "looking for the highest rate with {}: usually about {} min, at most {} min ({STAGES_MAX} rates and \
         {CONFIRMATIONS_MAX} confirmations)",
        limits.describe(),
        usual.as_secs().div_ceil(60),
        most.as_secs().div_ceil(60)
    )
}

fn tell(arguments: &Arguments, limits: &Limits, found: &Found, (seed, workers): (u64, usize)) -> Verdict {
    let last = found.stages.iter().rev().find(|stage| !stage.met && !stage.undecided);
    let generator_bound = last.is_some_and(|stage| stage.culprit == Some(Culprit::Generator));
    let broke = last.map(|stage| {
        let (rate, why) = (Rate::per_second(stage.rate_per_second), stage.why.as_deref().unwrap_or_default());
        format!("at {rate}: {why}")
    });
    let broke = broke.unwrap_or_default();
    let remedy = "add --threads or --workers, or use an idle machine; the webhook may be able to do more";
    let (capacity, verdict, text) = match found.end {
        End::Found(Outcome::Confirmed(rate)) if generator_bound => {
            let text =
                format!("at least {}, then the generator reached its own limit ({broke}): {remedy}", per_second(rate));
            (Some(rate), Verdict::Inconclusive, text)
        }
        End::Found(Outcome::Confirmed(rate)) => {
            (Some(rate), Verdict::Pass, format!("{}, confirmed; what broke first, {broke}", per_second(rate)))
        }
        End::Found(Outcome::AtLeast(rate)) => {
            let text = format!("at least {}, the highest rate that may be tried (--highest)", per_second(rate));
            (Some(rate), Verdict::Pass, text)
        }
        End::Found(Outcome::None) if generator_bound => {
            (None, Verdict::Inconclusive, format!("not known, the generator reached its own limit ({broke}): {remedy}"))
        }
        End::Found(Outcome::None) => (None, Verdict::Fail, format!("none: no rate met the limits ({broke})")),
        End::Found(Outcome::Unconfirmed) => {
            let text = format!("not known: rates that met the limits did not when they were tried longer ({broke})");
            (None, Verdict::Inconclusive, text)
        }
        End::Undecided(ref why) if broke.is_empty() => (None, Verdict::Inconclusive, why.clone()),
        End::Undecided(ref why) => (None, Verdict::Inconclusive, format!("{why}. What broke, {broke}")),
        End::Broken(ref why) => (None, Verdict::Invalid, why.clone()),
    };
    let limits = limits.describe();
    let report = Report {
        schema: SCHEMA,
        url: arguments.to.url(),
        limits: limits.clone(),
        capacity_per_second: capacity,
        generator_bound,
        seed,
        workers,
        text: &text,
        verdict,
        exit_code: verdict.exit_code(),
        stages: &found.stages,
    };
    let mut said = Vec::new();
    if arguments.output.quiet {
        said.push(capacity::heads());
        said.extend(found.stages.iter().map(capacity::line));
    }
    said.push(format!("capacity with {limits}: {text}"));
    said.push(format!("seed {seed}"));
    // The last plan is the one that decided.
    said.extend(found.stages.last().map(|last| format!("fingerprint {}", last.fingerprint)));
    said.push(format!("verdict: {}", verdict.word()));
    arguments.output.finish(&report, &said.join("\n"), verdict)
}

fn per_second(rate: f64) -> String {
    Rate::per_second(rate).to_string()
}

#[cfg(test)]
mod tests {
    /// The checked-in schema of `longhaul load --capacity --json` equals the generated schema.
    #[test]
    fn the_checked_in_schema_is_current() {
        crate::load::schema::is_checked_in::<super::Report<'_>>("capacity");
    }
}
