//! `longhaul repro`: a documented bug on this machine, against the built-in service or any command.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use reports::judge::Verdict;
use serde_json::json;
use tokio::task::JoinSet;

use crate::out::out;
use crate::repro::{Outcome, Play, play};
use crate::scenario::{Http, Need, Outside, Own, Reach, Source, Witness, library, nearest};

const SERVICE: &str = "longhaul-service";
/// It follows one kind and writes nothing.
const SERVICE_CANNOT: [Need; 4] = [Need::ManyKinds, Need::HandlerWrites, Need::StreamingLists, Need::SlowHandler];
/// More runs at once only make each other late.
const JOBS_MAX: u16 = 64;

/// Arguments of `longhaul repro`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Arguments {
    /// The bug, as `--list` names it, or a scenario file.
    #[arg(required_unless_present_any = ["list", "all"], conflicts_with_all = ["list", "all"])]
    id: Option<String>,
    #[command(flatten)]
    outside: Outside,
    /// List the bugs: name, row in the catalogue, length, question.
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// Play all of them and print a table; the exit code is that of the worst.
    #[arg(long)]
    all: bool,
    /// With `--all`: so many at once. Each takes its own ports.
    #[arg(long, default_value_t = 1, requires = "all", value_parser = clap::value_parser!(u16).range(1..=i64::from(JOBS_MAX)))]
    jobs: u16,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// The folder for run records.
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Offer the client only this version of HTTP: 1, 2 or both. Otherwise what the scenario says.
    #[arg(long)]
    http: Option<Http>,
    /// How long the client gets after the last write, when that is more than the scenario gives: for clients whose own
    /// limits are longer.
    #[arg(long)]
    drain: Option<units::Span>,
    /// Leave the client its own limits for silence and between lists, where the scenario wants them short.
    #[arg(long)]
    own_clocks: bool,
    /// Let the client's own clock run so many times faster, by libfaketime, so that limits of minutes are over in seconds. `--drain` is then
    /// of that clock. Not for programs that are linked statically or written in Go.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// Files and folders with manifests that are applied first, such as the definition of `--resource`. May be given several times.
    #[arg(long, value_name = "PATH", requires = "command")]
    manifests: Vec<PathBuf>,
    /// Write objects of this kind instead of the scenario's, for a controller that watches its own: `caches.cache.example.com/v1`. They are made
    /// of the schema in its definition, see `--manifests`.
    #[arg(long, value_name = "RESOURCE", requires = "command")]
    resource: Option<String>,
    /// A YAML file that says what objects of `--resource` look like, as `script.template`.
    #[arg(long, value_name = "FILE", requires = "resource")]
    template: Option<PathBuf>,
    /// How the client proves what it saw, where that is not by posting it: `status`, `'finalizer, name: example.com/cleanup'`, … Limits that it
    /// cannot decide are not judged.
    #[arg(long, value_name = "WITNESS", requires = "command", value_parser = Own::witness)]
    witness: Option<Witness>,
    /// The service to test, instead of the one beside `longhaul`.
    #[arg(long)]
    service: Option<PathBuf>,
    /// What the client cannot do, so that bugs of clients that do it are passed over as not applicable.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ABILITY")]
    cannot: Vec<Need>,
    /// No live line.
    #[arg(long, short)]
    quiet: bool,
    /// The client: a command that reads `$KUBECONFIG`, watches `$LONGHAUL_WATCH` and posts what it sees to
    /// `$LONGHAUL_WITNESS_URL`; see `--resource` and `--witness` for one that does neither. Without it the built-in service.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Lists, or plays one bug or all of them.
pub(super) fn repro(arguments: &Arguments) -> ExitCode {
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => super::fail(reports::exit::USAGE, &error),
    }
}

fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.list {
        list(arguments.json)?;
        return Ok(reports::exit::PASS);
    }
    let sources = match &arguments.id {
        Some(id) => vec![find(id, arguments.outside.reach())?],
        None => library::bugs().map_err(|error| anyhow::anyhow!("{error}"))?,
    };
    let plays = sources.into_iter().map(|source| planned(arguments, source)).collect::<Result<VecDeque<_>>>()?;
    let runtime = super::runtime()?;
    let code = runtime.block_on(async {
        if !arguments.all {
            return Box::pin(one(plays, arguments)).await;
        }
        // A run's own task stays on this thread; its servers and load have the others.
        tokio::task::LocalSet::new().run_until(Box::pin(all(plays, arguments))).await
    });
    // Nothing of a finished run may keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    code
}

/// A bug of the library by its name, or a file.
fn find(id: &str, reach: Reach) -> Result<Source> {
    let known: Vec<&str> = library::bug_names().collect();
    if known.contains(&id) || id.contains(['/', '.']) || library::text(id).is_some() {
        return Source::read_within(id, reach).map_err(|error| anyhow::anyhow!("{error}"));
    }
    let near = nearest(id, &known).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
    bail!("there is no bug `{id}` in the library{near} `longhaul repro --list` names all {}", known.len())
}

fn planned(arguments: &Arguments, mut source: Source) -> Result<Play> {
    let service = match (source.scenario.subject.kind().is_service(), &arguments.service) {
        (true, None) if arguments.command.is_empty() => {
            let remedy = "build it first: `cargo xtask repro` does that, or name one with --service";
            Some(crate::subject::sibling(SERVICE).with_context(|| remedy.to_owned())?)
        }
        (_, named) => named.clone(),
    };
    let own = Own {
        manifests: arguments.manifests.clone(),
        resource: arguments.resource.clone(),
        template: arguments.template.clone(),
        witness: arguments.witness.clone(),
    };
    if !own.is_none() {
        let unseen = source.own(&own).map_err(|error| anyhow::anyhow!("{error}"))?;
        if !unseen.is_empty() && !arguments.all {
            let witness = source.scenario.subject.witness.name();
            crate::out::err!(
                "longhaul: not judged, because the witness `{witness}` does not tell it: {}",
                unseen.join(", ")
            );
        }
    }
    let (http, drain, out) = (arguments.http, arguments.drain, arguments.out.clone());
    let quiet = arguments.quiet || arguments.json || arguments.all;
    let ours = arguments.command.is_empty() && source.scenario.subject.kind().is_service();
    let cannot = if ours { SERVICE_CANNOT.to_vec() } else { arguments.cannot.clone() };
    let (command, own_clocks) = (arguments.command.clone(), arguments.own_clocks);
    let clock_rate = arguments.clock_rate;
    let mut checked = source.clone();
    checked.hurry(None, clock_rate).map_err(|error| anyhow::anyhow!("{error}"))?;
    let asked = arguments.id.clone().unwrap_or_else(|| source.scenario.name.clone());
    let (named_service, outside) = (arguments.service.is_some(), arguments.outside);
    Ok(Play {
        source,
        command,
        http,
        drain,
        own_clocks,
        clock_rate,
        out,
        service,
        named_service,
        asked,
        own,
        outside,
        cannot,
        quiet,
    })
}

fn list(json: bool) -> Result<()> {
    let bugs = library::bugs().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut all = Vec::new();
    for Source { scenario, .. } in &bugs {
        let row = scenario.repro.as_ref().map(|repro| repro.row.0.clone()).unwrap_or_default();
        let length = units::Span(scenario.phases.total());
        let question = scenario.description.trim();
        if !json {
            out!("{:32} {row:>4} {:>6}  {question}", scenario.name, length.to_string());
        }
        let repro = serde_json::to_value(&scenario.repro)?;
        all.push(json!({"id": scenario.name, "row": row, "seconds": length.0.as_secs_f64(), "question": question, "repro": repro}));
    }
    if json {
        out!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(())
}

async fn one(mut plays: VecDeque<Play>, arguments: &Arguments) -> Result<u8> {
    let outcome = Box::pin(play(plays.pop_front().context("nothing to play")?)).await?;
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        tell(&outcome);
    }
    Ok(outcome.exit_code)
}

/// The story, the verdict, and where to read on.
fn tell(outcome: &Outcome) {
    let row = outcome.row.as_ref().map(|row| format!(" (row {row})")).unwrap_or_default();
    out!("{}{row}: {}", outcome.id, outcome.question);
    out!("client: {}\n", outcome.client.join(" "));
    for (index, line) in outcome.story.iter().enumerate() {
        out!("{:>3}. {line}", index + 1);
    }
    out!("");
    for fault in &outcome.not_hit {
        out!("not hit: while it was active no request and no watch of this client gave {fault} anything to act on");
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

/// Plays all, so many at once, and prints the table in the order of the catalogue.
async fn all(mut plays: VecDeque<Play>, arguments: &Arguments) -> Result<u8> {
    let order: Vec<String> = plays.iter().map(|play| play.source.scenario.name.clone()).collect();
    let mut running = JoinSet::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut interrupted, mut not_started) = (false, false);
    loop {
        while running.len() < usize::from(arguments.jobs)
            && !interrupted
            && let Some(next) = plays.pop_front()
        {
            let id = next.source.scenario.name.clone();
            running.spawn_local(async move { (id, Box::pin(play(next)).await) });
        }
        let Some(done) = running.join_next().await else { break };
        let (id, outcome) = done.context("a run ended with a panic")?;
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
        out!("{}", serde_json::to_string_pretty(&outcomes)?);
    } else {
        table(&outcomes);
    }
    // A bug that is not one of this client says nothing about it.
    let verdicts = outcomes.iter().filter(|outcome| outcome.lacks.is_empty()).map(|outcome| outcome.verdict);
    let worst = verdicts.chain(not_started.then_some(Verdict::Inconclusive)).max().unwrap_or(Verdict::Inconclusive);
    Ok(worst.exit_code())
}

fn table(outcomes: &[Outcome]) {
    out!("{:32} {:>4} {:>7}  verdict", "bug", "row", "length");
    for outcome in outcomes {
        let row = outcome.row.as_deref().unwrap_or_default();
        out!("{:32} {row:>4} {:>6.1}s  {}", outcome.id, outcome.seconds, outcome.says());
    }
}
