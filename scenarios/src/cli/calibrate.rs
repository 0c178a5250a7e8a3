//! `cargo xtask calibrate`: checks that the judges catch planted bugs and pass programs without bugs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::calibrate::{self, Calibration, Choice, Expected, PLANTS};
use crate::out::out;

/// File name of the built-in service without planted bugs.
const SERVICE: &str = "longhaul-service";
const PLANTED_SERVICE: &str = "longhaul-service-planted";
/// Default number of generated series for each kind and speed of growth. With 200 series, Wilson's interval of a share
/// is at most 14 percent wide.
const RUNS: u64 = 200;
const RUNS_MAX: u64 = 100_000;
const REPEATS_MAX: u32 = 1000;

/// Arguments of `cargo xtask calibrate`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own on the command line")]
pub(super) struct Arguments {
    /// Only judge generated series of measurements. A calibration of generated series takes seconds and starts no
    /// service.
    #[arg(long, conflicts_with_all = ["only", "repeats", "clean", "gates", "long", "service", "planted"])]
    synthetic: bool,
    /// Number of generated series for each kind and speed of growth.
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    runs: u64,
    /// Number of runs of each planted bug. Without --clean, also the number of runs of each program without the bug.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    repeats: u32,
    /// Number of runs of each program without planted bugs, to measure false alarms of the judges.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    clean: Option<u32>,
    /// Only run gates: compare each build with a planted bug with the same build without the bug, and identical builds
    /// with each other. `--clean 20` takes less than two hours on an idle machine.
    #[arg(long)]
    gates: bool,
    /// Only run these planted bugs, such as `leak-1k-per-object,step`, the same programs without the bugs, and the
    /// control run.
    #[arg(long, value_name = "PLANT", value_delimiter = ',', num_args = 1..)]
    only: Vec<String>,
    /// Also run planted bugs that take longer than two minutes each.
    #[arg(long)]
    long: bool,
    /// Only list the planted bugs: name, scenario, and the judge that must catch the bug.
    #[arg(long)]
    list: bool,
    /// The folder for the result (calibration.html, calibration.md, calibration.json) and the run records. Default: `calibration`; with
    /// --synthetic, no files are written.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print the result as Markdown.
    #[arg(long)]
    markdown: bool,
    /// A service without planted bugs, instead of `longhaul-service` beside `longhaul`.
    #[arg(long, value_name = "PROGRAM")]
    service: Option<PathBuf>,
    /// A service with planted bugs, instead of `longhaul-service-planted` beside `longhaul`.
    #[arg(long, value_name = "PROGRAM")]
    planted: Option<PathBuf>,
}

/// Runs the calibration, and returns the exit code of the result.
pub(super) fn calibrate(arguments: &Arguments) -> anyhow::Result<u8> {
    if arguments.list {
        list();
        return Ok(reports::exit::PASS);
    }
    super::block_on(run(arguments))
}

async fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    if arguments.synthetic {
        let calibration = calibrate::begin(arguments.runs, Vec::new());
        if let Some(folder) = &arguments.out {
            calibrate::write(&calibration, folder)?;
        }
        tell(&calibration, arguments.markdown);
        return Ok(calibration.exit_code());
    }
    let choice = Choice {
        only: arguments.only.clone(),
        long: arguments.long,
        repeats: arguments.repeats,
        clean: arguments.clean.unwrap_or(arguments.repeats),
        gates: arguments.gates,
        service: program(arguments.service.as_deref(), SERVICE, "--service")?,
        planted: program(arguments.planted.as_deref(), PLANTED_SERVICE, "--planted")?,
        out: arguments.out.clone().unwrap_or_else(|| "calibration".into()),
    };
    let rows = calibrate::rows(&choice)?;
    let takes = calibrate::estimate(&rows, &choice)?;
    let runs = rows.iter().map(|row| u64::from(choice.times(row))).sum();
    let takes = reports::words::millis(u64::try_from(takes.as_millis()).unwrap_or(u64::MAX));
    crate::out::err!(
        "{} one after the other take about {takes}; Ctrl-C keeps the finished ones",
        reports::words::counted(runs, "run")
    );
    let mut calibration = calibrate::begin(arguments.runs, rows);
    let stop = tokio_util::sync::CancellationToken::new();
    crate::signals::stoppable(&stop, calibrate::play(&mut calibration, &choice, &stop)).await??;
    calibrate::write(&calibration, &choice.out)?;
    tell(&calibration, arguments.markdown);
    out!("page: {}", choice.out.join("calibration.html").display());
    Ok(calibration.exit_code())
}

/// Prints the table and then the verdict, so that the verdict is the last line on the terminal.
fn tell(calibration: &Calibration, markdown: bool) {
    if markdown {
        out!("{}", calibrate::markdown(calibration).trim_end());
        return;
    }
    for line in calibrate::plain(calibration) {
        out!("{line}");
    }
}

fn list() {
    for plant in PLANTS {
        let long = if plant.long { " (with --long)" } else { "" };
        let expected = match plant.expected {
            Expected::Caught { judge, .. } => format!("caught by {judge}"),
            Expected::LooksAlike => "no judge may fire".to_owned(),
            Expected::Waits { what_for } => format!("waits for {what_for}"),
        };
        out!("{:24} {:26} {expected}{long}", plant.name, plant.stage);
        out!("{:24} {}", "", plant.about);
    }
}

/// The program at the path `named`, which `option` gave, or the program `name` beside `longhaul`.
fn program(named: Option<&Path>, name: &str, option: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        anyhow::ensure!(path.is_file(), "{option} {}: no such file", path.display());
        return Ok(path.to_owned());
    }
    let remedy = format!("build it first: `cargo xtask calibrate` does that, or name one with {option}");
    crate::subject::sibling(name).context(remedy)
}
