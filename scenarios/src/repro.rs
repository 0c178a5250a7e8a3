//! `longhaul soak bugs/NAME`: runs one documented bug against one client, and reports the events of the run.
//!
//! Changes a library scenario for another subject, and selects the facts for the output. The run is a usual soak, and
//! all output comes from the run record.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use reports::judge::{self, Judgement, Verdict, Word};
use reports::record::{EndReason, Events, Record};
use serde::Serialize;
use units::Span;

use crate::run::{self, Options};
use crate::scenario::{Command, Http, Need, Repro, Scenario, Source, SubjectKind};

mod happening;
mod notice;
mod story;

use notice::Notice;
pub(crate) use story::story;

/// The environment variable with the client's list interval in seconds. A client may ignore this variable.
const RELIST_VARIABLE: &str = "LONGHAUL_RELIST_S";
/// The resource that the built-in service watches.
const SERVICE_FOLLOWS: &str = "packages.longhaul.dev";
/// A budget only for the built-in service: the service must send a new request within this time after any fault. The
/// service's pauses between attempts grow to 30 s, but no documented bug refuses requests long enough for such pauses.
const SERVICE_BLIND_MAX: Span = Span::from_secs(15);
/// Maximum number of file descriptors of the built-in service. The highest number in any documented bug was 24, with eight
/// connections of its workers.
const SERVICE_DESCRIPTORS_MAX: u64 = 32;
/// The environment variable with the seconds for which the handler works on every other modification of an object.
const HANDLER_VARIABLE: &str = "LONGHAUL_HANDLER_S";
/// The timeouts and intervals of the built-in service, by their names below `watch` in its settings.
const CLOCKS: [&str; 3] = ["serverTimeout", "silenceLimit", "relistInterval"];
const PLANTED: &str = "planted-client";

/// The client that replaces the subject of a scenario, and the client's settings. Default: the scenario's own subject.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Play {
    /// Offer the client only this version of HTTP: 1, 2 or both. Default: the scenario's setting.
    #[arg(long)]
    pub(crate) http: Option<Http>,
    /// The minimum time that the client gets after the last write. Meant for clients with timeouts that are longer than
    /// the scenario's drain. With `--clock-rate`, this is time on the client's clock.
    #[arg(long)]
    pub(crate) drain: Option<Span>,
    /// Keep the client's own timeouts for silent watches and its own interval between lists, instead of the scenario's shorter settings.
    #[arg(long)]
    pub(crate) own_clocks: bool,
    /// Features that the client lacks. Bugs that need a missing feature are skipped as not applicable.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ABILITY")]
    pub(crate) cannot: Vec<Need>,
    /// The client: a command that reads `$KUBECONFIG`, watches `$LONGHAUL_WATCH` and posts its observations to
    /// `$LONGHAUL_WITNESS_URL`. For a client that does not use `$LONGHAUL_WATCH` and `$LONGHAUL_WITNESS_URL`, give
    /// `--resource` and `--witness`. Default: the scenario's own subject.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

impl Play {
    /// Whether any flag changes the subject of a scenario.
    pub(crate) fn is_some(&self) -> bool {
        !self.command.is_empty() || self.http.is_some() || self.drain.is_some() || self.own_clocks
    }

    /// The flags as arguments for the end of a command line.
    pub(crate) fn repeated(&self) -> String {
        let http = self.http.map(|http| format!(" --http {}", http.as_str())).unwrap_or_default();
        let drain = self.drain.map(|drain| format!(" --drain {drain}")).unwrap_or_default();
        let clocks = if self.own_clocks { " --own-clocks" } else { "" };
        let command = crate::secrets::arguments(&self.command);
        let words = command.iter().map(|word| format!(" {}", crate::quoted(word)));
        let separator = (!self.command.is_empty()).then(|| " --".to_owned());
        let command: String = separator.into_iter().chain(words).collect();
        format!("{http}{drain}{clocks}{command}")
    }
}

/// The result of running one scenario. `--json` prints this result; a field never changes its meaning.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(crate) id: String,
    /// The row in the catalogue of bugs; `None` for other scenarios.
    pub(crate) row: Option<String>,
    pub(crate) question: String,
    pub(crate) client: Vec<String>,
    pub(crate) verdict: Verdict,
    pub(crate) exit_code: u8,
    /// The kinds of mistakes that the client made, each once.
    pub(crate) words: Vec<Word>,
    /// Faults without hits. The run does not show how the client handles faults without hits.
    pub(crate) not_hit: Vec<String>,
    /// Features that the client lacks and without which the bug cannot occur. If the list is not empty, nothing was
    /// run.
    pub(crate) lacks: Vec<Need>,
    /// Time from the first hit of a fault until the client's next list or watch of a judged resource, in milliseconds.
    pub(crate) noticed_ms: Option<u64>,
    /// Time from the first hit of a fault until the first observation of a version committed after the hit, in
    /// milliseconds.
    pub(crate) observed_ms: Option<u64>,
    /// The reason for the verdict, in one sentence.
    pub(crate) reason: String,
    /// The events of the run, one line each.
    pub(crate) story: Vec<String>,
    /// Duration of the run in seconds, with start and end.
    pub(crate) seconds: f64,
    /// The folder of the run record; empty if nothing was run.
    pub(crate) record: PathBuf,
    #[serde(skip)]
    pub(crate) interrupted: bool,
}

/// Runs one scenario with the client. On error, nothing was started.
pub(crate) async fn play(mut options: Options, play: &Play) -> Result<Outcome> {
    let began = Instant::now();
    if let Some(outcome) = not_applicable(&options.source.scenario, play) {
        return Ok(outcome);
    }
    options.source = aimed(options.source, play);
    options.keep_events = true;
    let row = options.source.scenario.repro.as_ref().map(|repro| repro.row.0.clone());
    let directory = Box::pin(run::record(options)).await?;
    // Judging a long record takes a while, and with `--jobs` this thread also runs the timers of other runs.
    let judged = tokio::task::spawn_blocking(move || {
        let events = Events::open(&directory).context("failed to read the events of the run")?;
        // The story is written before the reports, which show it. If the disk is too full for it, the verdict stays.
        let told = Record::open(&directory).map(|record| story(&record, &events));
        let _ = told.and_then(|lines| reports::record::tell_story(&directory, &lines));
        let (record, judgement) = run::judge_record(&directory)?;
        anyhow::Ok(outcome(&record, &judgement, &events, &directory))
    });
    let mut outcome = judged.await.context("the judge ended with a panic")??;
    outcome.row = row;
    outcome.seconds = began.elapsed().as_secs_f64();
    Ok(outcome)
}

fn outcome(record: &Record, judgement: &Judgement, events: &Events, directory: &Path) -> Outcome {
    let manifest = &record.manifest;
    let notice = Notice::of(record, events);
    let not_hit: Vec<String> = judge::never_hit(record).into_iter().map(|fault| fault.name.clone()).collect();
    // A bug consists of all its faults. If one of them had no hits, the client was not shown to be free of the bug.
    let shown = judgement.verdict != Verdict::Pass || not_hit.is_empty();
    let verdict = if shown { judgement.verdict } else { Verdict::Inconclusive };
    Outcome {
        id: manifest.name.clone(),
        row: None,
        question: manifest.question.clone(),
        client: manifest.subject.command.clone(),
        verdict,
        exit_code: verdict.exit_code(),
        words: judgement.words.clone(),
        not_hit,
        lacks: Vec::new(),
        noticed_ms: notice.and_then(|notice| notice.asked_ms),
        observed_ms: notice.and_then(|notice| notice.observed_ms),
        reason: judgement.reason.clone(),
        story: story(record, events),
        seconds: 0.0,
        record: directory.to_owned(),
        interrupted: record.end.as_ref().is_some_and(|end| matches!(end.reason, EndReason::Interrupted { .. })),
    }
}

/// The result "not applicable", if the client lacks a feature that the bug needs; nothing is run.
fn not_applicable(scenario: &Scenario, play: &Play) -> Option<Outcome> {
    let repro = scenario.repro.as_ref()?;
    let lacks: Vec<Need> = repro.needs.iter().filter(|need| play.cannot.contains(need)).copied().collect();
    if lacks.is_empty() {
        return None;
    }
    let does: Vec<&str> = lacks.iter().map(|need| need.sentence()).collect();
    Some(Outcome {
        id: scenario.name.clone(),
        row: Some(repro.row.0.clone()),
        question: scenario.description.trim().to_owned(),
        client: crate::secrets::arguments(&play.command),
        verdict: Verdict::Inconclusive,
        exit_code: Verdict::Inconclusive.exit_code(),
        words: Vec::new(),
        not_hit: Vec::new(),
        reason: format!("not applicable: the bug is one of a client that {}.", does.join(" and ")),
        lacks,
        noticed_ms: None,
        observed_ms: None,
        story: Vec::new(),
        seconds: 0.0,
        record: PathBuf::new(),
        interrupted: false,
    })
}

/// The scenario, changed so that the client is its subject.
fn aimed(mut source: Source, play: &Play) -> Source {
    let scenario = &mut source.scenario;
    let only = scenario.repro.as_ref().and_then(|repro| match repro.http_versions[..] {
        [1] => Some(Http::One),
        [2] => Some(Http::Two),
        _ => None,
    });
    if let Some(http) = play.http.or(only) {
        scenario.control_plane.http = http;
    }
    if let Some(drain) = play.drain {
        let real = drain.0 / scenario.subject.upkeep().clock_rate.unwrap_or(1).max(1);
        scenario.phases.drain = scenario.phases.drain.max(Span(real));
    }
    let subject = &mut scenario.subject;
    if play.own_clocks
        && let Some(service) = subject.service_mut()
        && let Some(watch) = service.settings.as_mut().and_then(|settings| settings.get_mut("watch")?.as_object_mut())
    {
        watch.retain(|key, _| !CLOCKS.contains(&key.as_str()));
    }
    if !play.command.is_empty() {
        let (upkeep, was) = (subject.upkeep(), subject.command().cloned().unwrap_or_default());
        let mut client = Command {
            run: command(&play.command, scenario.repro.as_ref()),
            processes: Vec::new(),
            cwd: None,
            restart: None,
            back_off: None,
            clock_rate: upkeep.clock_rate,
            serves: None,
            stop_timeout: upkeep.stop_timeout,
            ..was
        };
        let clocks = scenario.repro.as_ref().map(|repro| repro.clocks.clone()).unwrap_or_default();
        let relist = clocks.relist.filter(|_| !play.own_clocks);
        for (variable, clock) in [(RELIST_VARIABLE, relist), (HANDLER_VARIABLE, clocks.handler)] {
            client.env.extend(clock.map(|clock| (variable.to_owned(), clock.0.as_secs_f64().to_string())));
        }
        subject.kind = SubjectKind::Command(client);
        scenario.admission = None;
        scenario.budgets.admission = None;
    } else if let Some(service) = subject.service_mut() {
        if scenario.control_plane.http == Http::Two {
            // The service gets the HTTP version as a setting; it does not negotiate.
            let settings = service.settings.get_or_insert_default();
            let watch = settings.entry("watch").or_insert_with(|| serde_json::json!({}));
            watch["transport"] = "http2".into();
        }
        if scenario.repro.is_some() {
            promise(scenario);
        }
    }
    source
}

/// Adds budgets that only the built-in service must meet in each documented bug. One promise of the service needs no
/// budget, because every run judges it: no request without progress repeats more than twice a second.
fn promise(scenario: &mut Scenario) {
    // The service watches one kind; a bug's writes to other kinds are for clients that watch several.
    let follows_all = scenario.judged_resources().iter().all(|(name, _)| name == SERVICE_FOLLOWS);
    let budgets = &mut scenario.budgets;
    if follows_all {
        budgets.requests.get_or_insert_default().blind.get_or_insert(SERVICE_BLIND_MAX);
    }
    budgets.descriptors.get_or_insert_default().ceiling.get_or_insert(SERVICE_DESCRIPTORS_MAX);
}

/// The client's command. The client with planted bugs also gets the arguments in the scenario of the bug.
fn command(command: &[String], repro: Option<&Repro>) -> Vec<String> {
    let mut command = command.to_vec();
    let planted = command.first().is_some_and(|program| Path::new(program).file_name() == Some(PLANTED.as_ref()));
    if let (true, Some(repro)) = (planted, repro) {
        let relist = repro.clocks.relist.map(|relist| ["--relist".to_owned(), relist.to_string()]);
        // These come before the other arguments, which take precedence.
        command.splice(1..1, repro.planted_arguments.iter().cloned().chain(relist.into_iter().flatten()));
    }
    command
}

impl Outcome {
    /// The text in the table of bugs: the client's mistakes, or the reason why there is no result.
    pub(crate) fn says(&self) -> String {
        let words = self.words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(", ");
        match self.verdict {
            _ if !self.lacks.is_empty() => "not applicable".to_owned(),
            _ if self.interrupted => "interrupted".to_owned(),
            // The observations are still worth a look, but the run cannot be trusted.
            Verdict::Invalid if !words.is_empty() => format!("invalid ({words})"),
            _ if !words.is_empty() => words,
            Verdict::Pass => "passed".to_owned(),
            _ if !self.not_hit.is_empty() => format!("not hit ({})", self.not_hit.join(", ")),
            verdict => verdict.word().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
