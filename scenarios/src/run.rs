//! A run: from a checked scenario to a judged record.
//!
//! `run` starts the control plane and the subject and passes both to the [`conductor`]. `run` always closes the record,
//! and the record is then judged. Verdicts come from the record alone.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use reports::judge::{self, Judgement};
use reports::record::{End, EndReason, Record, Writer};
use reports::render::{self, Colour};

use crate::out::out;
use crate::scenario::Source;

mod account;
mod alerts;
mod arrival;
mod asking;
mod attach;
mod attacks;
mod audit;
mod audited;
mod calls;
mod canary;
mod claims;
mod clocks;
mod conductor;
mod conversion;
mod crashes;
mod deploy;
mod drift;
mod end_state;
mod endpoint;
mod entry;
mod events;
mod evidence;
mod failing;
mod feed;
mod field_managers;
mod foreign;
mod front;
mod growth;
mod hanging;
mod install;
mod interval;
mod keys;
mod kills;
mod listen;
mod live;
mod load;
mod load_workers;
mod manifest;
mod manifests;
mod mounted;
mod pacing;
mod payloads;
mod plan;
mod plane;
mod ports;
mod quiet;
mod ready;
mod redis;
mod registration;
mod requests;
mod restored;
mod siblings;
mod sink;
mod sized;
mod start;
mod testbed;
mod timeline;
mod trouble;
mod unowned;
mod validators;
mod wake;
mod window;
mod world;

pub(crate) use asking::ask;
pub(crate) use conversion::{conversion_path, converting, empty_conversion};
pub(crate) use endpoint::Endpoint;
pub(crate) use install::Api;
pub(crate) use keys::Trusted;
pub(crate) use manifest::{begins, describe};
pub(crate) use mounted::Mounted;
pub(crate) use payloads::{Fingerprint, fingerprint};
pub(crate) use plan::describe as plan_of;
pub(crate) use plane::token;
pub(crate) use ports::free_port;
pub(crate) use sized::Sized;
pub(crate) use testbed::{Events, Testbed, While};
pub(crate) use window::{Addresses, address};

pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) runs: PathBuf,
    /// The folder of the record, if the command line names one.
    pub(crate) run_dir: Option<PathBuf>,
    /// The name of a planted bug to switch on in the subject.
    pub(crate) plant: Option<String>,
    /// The binary of the built-in service, for scenarios that test it.
    pub(crate) service: Option<PathBuf>,
    pub(crate) keep_events: bool,
    pub(crate) quiet: bool,
    /// Faults that this run leaves out, with the reason.
    pub(crate) left_out: Option<String>,
    /// Whether to count the bytes between the subject and the control plane, which needs a proxy between both.
    pub(crate) counts_bytes: bool,
    pub(crate) repeat: String,
    /// Addresses of the HTML page and the metrics during the run.
    pub(crate) window: Addresses,
    /// The file for the audit of the run, which a hunt reads.
    pub(crate) audit: Option<PathBuf>,
}

impl Options {
    /// A quiet run of `source` whose record goes to a new folder in `runs`. `repeat` is the command that repeats the
    /// run. The only place that lists the defaults of all options.
    pub(crate) fn new(source: Source, runs: PathBuf, repeat: String) -> Self {
        Self {
            source,
            runs,
            run_dir: None,
            plant: None,
            service: None,
            keep_events: false,
            quiet: true,
            left_out: None,
            counts_bytes: false,
            repeat,
            window: Addresses::default(),
            audit: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Runs a scenario and judges it. On error, nothing was started; later problems end in a judged record.
pub(crate) async fn run(options: Options, format: Format) -> Result<Judgement> {
    conclude(&Box::pin(record(options)).await?, format)
}

/// The run was interrupted before the subject was started.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by {signal} before the subject was started: there is no record, and no process was left running")]
pub(crate) struct Interrupted {
    signal: &'static str,
}

/// Runs a scenario and returns the folder of its record. On error, nothing was started.
pub(crate) async fn record(options: Options) -> Result<PathBuf> {
    let mut signals = crate::signals::Signals::listen().context("failed to listen for Ctrl-C")?;
    let window = window::Bound::to(options.window).await?;
    // A real control plane starts slowly; dropping the future ends the started parts.
    let prepared = tokio::select! {
        prepared = Box::pin(start::prepare(&options)) => prepared?,
        signal = signals.next() => return Err(Interrupted { signal }.into()),
    };
    let directory = prepared.directory.clone();
    let writer = Writer::create(&directory, &prepared.manifest)
        .with_context(|| format!("failed to create the run record in {}", directory.display()))?;
    let writer = if options.keep_events { writer.keep_events()? } else { writer };
    let world = prepared.world;
    let writer = if world.plane.mock().is_some() { writer.tell_requests()? } else { writer };
    let live = live::live(options.quiet);
    live.say(&format!(
        "longhaul: {} (seed {}) → {}",
        prepared.manifest.name,
        prepared.manifest.seed,
        directory.display()
    ));
    let window = window.open(&directory, |text| live.say(text))?;
    let growth = growth::Growth::new(&prepared.manifest);
    let mut conductor =
        conductor::Conductor::new(&options.source.scenario, &world, directory.clone(), writer, live, signals, growth)
            .audited(options.audit.as_deref());
    let reason = Box::pin(conductor.conduct(prepared.subject, prepared.load)).await;
    // A webhook whose answers the API server refuses ends the load, and its answers are asked for all the same.
    let asks = matches!(reason, EndReason::Completed | EndReason::HarnessError { .. });
    conductor.close(&End { ended_ms: conductor.now_ms(), reason, lost: None, holes: Vec::new() });
    drop(conductor);
    if let Err(error) = world.keep_logs(&directory).await {
        crate::out::err!("longhaul: the control plane's logs could not be kept: {error:#}");
    }
    world.stop().await;
    if asks {
        Box::pin(asking::ask_again(options, &directory)).await?;
    }
    window.end().await;
    Ok(directory)
}

/// Judges the record in `directory` and writes its reports. If the disk is too full for the reports, the verdict stays.
pub(crate) fn judge_record(directory: &Path) -> Result<(Record, Judgement)> {
    let (record, judgement) = read(directory)?;
    if let Err(error) = render::write_reports(directory, &record, &judgement) {
        crate::out::err!("longhaul: the reports could not be written: {:#}", anyhow::Error::from(error));
    }
    Ok((record, judgement))
}

fn read(directory: &Path) -> Result<(Record, Judgement)> {
    let record =
        Record::open(directory).with_context(|| format!("failed to read the record {}", directory.display()))?;
    let judgement = judge::judge(&record);
    Ok((record, judgement))
}

/// Judges the record in `directory`, prints the summary and writes its reports. If the disk is too full for the
/// reports, the verdict stays.
pub(crate) fn conclude(directory: &Path, format: Format) -> Result<Judgement> {
    let (record, judgement) = read(directory)?;
    let colour = if crate::out::has_colours() { Colour::Always } else { Colour::Never };
    let text = match format {
        // `terminal` itself sets colours and removes control characters from other programs' text.
        Format::Text => render::terminal(&record, &judgement, colour),
        Format::Json => serde_json::to_string_pretty(&judgement).context("failed to write the verdict as JSON")?,
    };
    crate::out::note(writeln!(std::io::stdout(), "{}", text.trim_end()));
    match render::write_reports(directory, &record, &judgement) {
        Ok(()) if format == Format::Text => out!("report: {}", directory.join("report.html").display()),
        Ok(()) => {}
        Err(error) => crate::out::err!("longhaul: the reports could not be written: {:#}", anyhow::Error::from(error)),
    }
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") {
        // A failure to write the summary of a CI job must not change the verdict.
        if let Err(error) = render::append_summary(Path::new(&path), &record, &judgement) {
            crate::out::err!("longhaul: {:#}", anyhow::Error::from(error));
        }
    }
    Ok(judgement)
}

fn harness_error(error: &anyhow::Error) -> EndReason {
    EndReason::HarnessError { detail: format!("{error:#}") }
}
