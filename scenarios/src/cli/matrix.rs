//! `cargo xtask matrix`: runs real clients against documented bugs.

use std::path::PathBuf;

use reports::exit;

use crate::clients;
use crate::matrix::{self, Choice, RowHead};
use crate::out::out;
use crate::scenario::Source;

/// Default clock rate with `--own-clocks`. The longest period of a client is ten minutes, between two lists of
/// kubernetes-fluent-client; at this rate, the period takes twenty seconds.
const OWN_CLOCK_RATE: u32 = 30;
const OWN_CLOCK_DRAIN: units::Span = units::Span::from_secs(660);

/// Arguments of `cargo xtask matrix`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Only run these clients, such as `kfc-3.11.11,python-37`, or your own folders with a `subject.yaml`.
    #[arg(long, value_delimiter = ',')]
    clients: Vec<String>,
    /// Only run these documented bugs, by name or by row in the catalogue of bugs.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// The time for a client after the last write, if the scenario of the bug gives less. Meant for clients with timeouts that are longer
    /// than the scenario's drain. Default with `--own-clocks`: 11m.
    #[arg(long)]
    drain: Option<units::Span>,
    /// Keep each client's own timeouts for silent watches and its own interval between lists, instead of the short
    /// times of the bug's scenario. With this flag, the clocks of clients run faster: see `--clock-rate`.
    #[arg(long)]
    own_clocks: bool,
    /// Run the clocks of the clients N times faster. Default: 1 (unchanged), with `--own-clocks` 30. All times in the table are times on
    /// the client's clock.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    clock_rate: Option<u32>,
    /// The number of runs at the same time. Too many runs slow each other down, and results then show the machine
    /// instead of the client.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=32))]
    jobs: u8,
    /// The folder for the result (matrix.html, matrix.md, matrix.json) and the run records.
    #[arg(long, default_value = "matrix")]
    out: PathBuf,
    /// Keep the results that an earlier call with the same folder decided.
    #[arg(long)]
    resume: bool,
    /// Only list clients and bugs, and print the command of each installed client.
    #[arg(long)]
    list: bool,
}

/// Runs the matrix. The exit code says whether the table is complete, not whether clients pass.
pub(super) async fn matrix(arguments: Arguments) -> anyhow::Result<u8> {
    let clock_rate = arguments.clock_rate.unwrap_or(if arguments.own_clocks { OWN_CLOCK_RATE } else { 1 });
    let drain = arguments.drain.or(arguments.own_clocks.then_some(OWN_CLOCK_DRAIN));
    let bugs = rows(drain, arguments.own_clocks, clock_rate)?;
    if arguments.list {
        list(&bugs).await;
        return Ok(exit::PASS);
    }
    let Arguments { clients, rows, own_clocks, jobs, out, resume, .. } = arguments;
    let choice = Choice { clients, rows, drain, own_clocks, clock_rate, jobs: usize::from(jobs), out, resume };
    let (mut table, columns) = matrix::table_for(&choice, bugs)?;
    let stop = tokio_util::sync::CancellationToken::new();
    crate::signals::stoppable(&stop, matrix::fill(&mut table, columns, &choice, &stop)).await??;
    anyhow::ensure!(!stop.is_cancelled(), "interrupted; `--resume` goes on from {}", choice.out.display());
    out!("table: {}", choice.out.join("matrix.html").display());
    Ok(exit::PASS)
}

/// The documented bugs of the library, with the length of each run.
fn rows(drain: Option<units::Span>, own_clocks: bool, clock_rate: u32) -> anyhow::Result<Vec<RowHead>> {
    let head = |source: Source| {
        let mut scenario = source.scenario;
        if let Some(drain) = drain {
            scenario.phases.drain = scenario.phases.drain.max(units::Span(drain.0 / clock_rate));
        }
        let repro = scenario.repro?;
        let question = scenario.description.trim().to_owned();
        let length_ms = u64::try_from((scenario.phases.total() * clock_rate).as_millis()).unwrap_or(u64::MAX);
        let (row, reference, http) = (repro.row.0, repro.reference, repro.http_versions);
        // The scenario sets these timeouts for the built-in service. Every client with such options gets the same
        // values.
        let settings =
            scenario.subject.service_mut().and_then(|service| service.settings.take()).filter(|_| !own_clocks);
        let watch = settings.as_ref().and_then(|settings| settings.get("watch"));
        let clock = |key: &str| watch.and_then(|watch| watch.get(key)?.as_str()?.parse::<units::Span>().ok());
        let (silence_s, relist_s) = (clock("silenceLimit"), clock("relistInterval"));
        let (silence_s, relist_s) = (silence_s.map(|span| span.0.as_secs()), relist_s.map(|span| span.0.as_secs()));
        Some(RowHead { id: scenario.name, row, question, reference, length_ms, silence_s, relist_s, http })
    };
    Ok(Source::bugs()?.into_iter().filter_map(head).collect())
}

async fn list(bugs: &[RowHead]) {
    out!("clients:");
    for column in clients::columns() {
        let what = format!("{} {}, {}", column.client(), column.version(), column.mode());
        match column.command().await {
            Ok(command) => out!("  {:<18} {what}\n{:21}{}", column.id(), "", command.join(" ")),
            Err(needs) => out!("  {:<18} {what}\n{:21}needs {needs}", column.id(), ""),
        }
    }
    out!("rows:");
    for row in bugs {
        out!("  {:<4} {:<30} {}", row.row, row.id, row.question);
    }
}
