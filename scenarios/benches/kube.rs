//! The cost of the mock API server beside that of a real one: `cargo xtask bench kube`.
//!
//! Owns the order. Each server is a separate process, the mock with its usual settings; this process is the client of
//! both, over TLS, with the same code and the same bytes.

mod figures;
mod lags;
mod load;
mod measure;
mod scale;
mod table;
mod watchers;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::kit::apiserver::ApiServer;
use crate::kit::report::Report;
use measure::{Effort, Part, Subject};

/// Units of work of the mock per unit of work of the real server.
const WORK: usize = 10;
/// Descriptors beside those of the watchers: connections, pipes, the runtime.
const DESCRIPTORS_SPARE: u64 = 200;

const FULL: Effort = Effort {
    only: None,
    rounds: 3,
    list_objects: &[5_000, 50_000],
    divisor: 1,
    crowd: 10_000,
    objects: 100_000,
    window: Duration::from_secs(10),
};
const QUICK: Effort = Effort {
    rounds: 1,
    list_objects: &[5_000],
    divisor: 2,
    crowd: 2_000,
    objects: 10_000,
    window: Duration::from_secs(4),
    ..FULL
};

/// Measures the mock API server. If `KUBEBUILDER_ASSETS` names a folder with the programs of a real one, that is measured as well. Exit 0
/// if every requirement is met, 1 if one is not, 2 if one could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Measure one part only. Default: all parts except `scale-…`, each of which takes minutes and prints the memory it needs.
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Skip the real server.
    #[arg(long)]
    mock_only: bool,
    /// Use another build of `longhaul`.
    #[arg(long, value_name = "PATH", hide = true)]
    program: Option<PathBuf>,
}

/// Runs all parts except for the `scale-…` ones, or one part.
pub(crate) async fn measure(arguments: &Arguments, quick: bool, report: &mut Report) -> Result<()> {
    let effort = Effort { only: arguments.only, ..if quick { QUICK } else { FULL } };
    scenarios::descriptors::raise(effort.crowd as u64 + DESCRIPTORS_SPARE)?;
    let (subjects, measured) = match arguments.only {
        None | Some(Part::Watchers | Part::Lists | Part::Events) => beside(arguments, effort).await?,
        Some(part) => {
            let has_room = scale::has_room(part, effort)?;
            let mut subjects = start(arguments, has_room).await?;
            let measured = scale::measure(&mut subjects, part, effort).await;
            (subjects, measured)
        }
    };
    let [mock, rest @ ..] = &subjects[..] else { bail!("nothing was measured") };
    table::show(mock, rest.first(), report);
    for subject in subjects {
        subject.server.stop().await;
    }
    measured
}

/// Measures the memory of watchers on fresh servers, and everything else on others.
async fn beside(arguments: &Arguments, effort: Effort) -> Result<(Vec<Subject>, Result<()>)> {
    let mut fresh = start(arguments, true).await?;
    let measured = measure::fresh(&mut fresh, effort).await;
    let mut figures = Vec::new();
    for subject in fresh {
        subject.server.stop().await;
        figures.push(subject.figures);
    }
    measured?;
    let mut subjects = start(arguments, true).await?;
    for (subject, figures) in subjects.iter_mut().zip(figures) {
        subject.figures = figures;
    }
    let measured = measure::all(&mut subjects, effort).await;
    Ok((subjects, measured))
}

/// Starts the mock and, if it is installed and has room, the real server.
async fn start(arguments: &Arguments, has_room: bool) -> Result<Vec<Subject>> {
    let mock = ApiServer::process(arguments.program.as_deref()).await?;
    let mut subjects = vec![Subject::new(mock, WORK).await.context("on the mock")?];
    if !has_room {
        println!("the real API server is left out: skipped: needs more free memory");
    } else if !arguments.mock_only
        && let Some(real) = ApiServer::real().await?
    {
        subjects.push(Subject::new(real, 1).await.context("on the real server")?);
    }
    Ok(subjects)
}
