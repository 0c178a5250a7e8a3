//! The output for documented bugs: the events of one run, or the table of all bugs.

use std::collections::VecDeque;

use anyhow::{Context as _, Result};
use reports::judge::Verdict;
use tokio::task::JoinSet;

use super::{Arguments, play_of};
use crate::out::out;
use crate::repro::{Outcome, play};
use crate::run::Options;

/// Runs one documented bug and prints the events of the run.
pub(super) async fn one(options: Options, arguments: &Arguments) -> Result<Verdict> {
    let how = play_of(arguments, &options.source);
    let outcome = Box::pin(play(options, &how)).await?;
    if arguments.json {
        out!("{}", crate::cli::json(&outcome)?);
    } else {
        tell(&outcome);
    }
    Ok(outcome.verdict)
}

/// Prints the events of the run, the verdict, and the paths of the reports.
fn tell(outcome: &Outcome) {
    let row = outcome.row.as_ref().map(|row| format!(" (row {row})")).unwrap_or_default();
    out!("{}{row}: {}", outcome.id, outcome.question);
    out!("client: {}\n", outcome.client.join(" "));
    for (index, line) in outcome.story.iter().enumerate() {
        out!("{:>3}. {line}", index + 1);
    }
    out!("");
    for line in not_hit(&outcome.not_hit) {
        out!("{line}");
    }
    let times: Vec<String> = [("asked again", outcome.noticed_ms), ("saw a later change", outcome.observed_ms)]
        .into_iter()
        .filter_map(|(what, ms)| Some(format!("{what} {} after the first hit", reports::words::millis(ms?))))
        .collect();
    if !times.is_empty() {
        out!("time to notice: the client {}", times.join(", "));
    }
    out!("verdict: {} – {}", outcome.says(), outcome.reason);
    if outcome.lacks.is_empty() {
        out!("record: {}", outcome.record.display());
    }
}

/// One line for each fault that hit nothing, in the order in which the faults begin. A fault that recurs every few
/// seconds has only one line.
fn not_hit(faults: &[String]) -> Vec<String> {
    let mut times: Vec<(&str, usize)> = Vec::new();
    for fault in faults {
        match times.iter_mut().find(|(name, _)| name == fault) {
            Some((_, times)) => *times += 1,
            None => times.push((fault, 1)),
        }
    }
    let line = |(fault, times): (&str, usize)| {
        let often = if times > 1 { format!(" ({times} times)") } else { String::new() };
        format!(
            "not hit: while {fault} was active, this client sent no request and held no watch that it applies to{often}"
        )
    };
    times.into_iter().map(line).collect()
}

/// Runs all documented bugs, several at once, and prints the table in the order of the catalogue. Returns the worst
/// verdict.
pub(super) async fn all(mut bugs: VecDeque<Options>, arguments: &Arguments) -> Result<Verdict> {
    let order: Vec<String> = bugs.iter().map(|bug| bug.source.scenario.name.clone()).collect();
    let mut running = JoinSet::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut interrupted, mut not_started) = (false, false);
    loop {
        while running.len() < usize::from(arguments.jobs)
            && !interrupted
            && let Some(next) = bugs.pop_front()
        {
            let (id, how) = (next.source.scenario.name.clone(), play_of(arguments, &next.source));
            running.spawn_local(async move { (id, Box::pin(play(next, &how)).await) });
        }
        let Some(done) = running.join_next().await else { break };
        let (id, outcome) = done.context(crate::cli::Broken("a run ended with a panic"))?;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                crate::out::err!("{id:32} not started: {error:#}");
                not_started = true;
                continue;
            }
        };
        interrupted |= outcome.interrupted;
        if !arguments.quiet {
            crate::out::err!("{:32} {:>6.1}s  {}", outcome.id, outcome.seconds, outcome.says());
        }
        outcomes.push(outcome);
    }
    outcomes.sort_by_key(|outcome| order.iter().position(|id| *id == outcome.id));
    if arguments.json {
        out!("{}", crate::cli::json(&outcomes)?);
    } else {
        table(&outcomes);
    }
    // A bug that does not apply to this client says nothing about it.
    let verdicts = outcomes.iter().filter(|outcome| outcome.lacks.is_empty()).map(|outcome| outcome.verdict);
    Ok(verdicts.chain(not_started.then_some(Verdict::Inconclusive)).max().unwrap_or(Verdict::Inconclusive))
}

fn table(outcomes: &[Outcome]) {
    out!("{:32} {:>4} {:>7}  verdict", "bug", "row", "length");
    for outcome in outcomes {
        let row = outcome.row.as_deref().unwrap_or_default();
        out!("{:32} {row:>4} {:>6.1}s  {}", outcome.id, outcome.seconds, outcome.says());
    }
}

#[cfg(test)]
mod tests {
    use super::not_hit;

    #[test]
    fn a_fault_that_is_drawn_again_and_again_is_one_line() {
        let lines = not_hit(&["watch-reset", "watch-end", "watch-reset"].map(String::from));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("while watch-reset was active, ") && lines[0].ends_with(" (2 times)"), "{lines:?}");
        assert!(lines[1].contains("while watch-end was active, "), "{lines:?}");
    }
}
