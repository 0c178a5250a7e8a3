//! `cargo xtask bench kube`: the cost of the mock API server, compared with that of a real kube-apiserver.
//!
//! Each server is a separate process, and the mock has its usual settings. The benchmark's process is the client of
//! both servers, over TLS, with the same code and the same bytes.

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
use measure::{Effort, Measurement, Subject};

/// Number of requests to the mock for each request to the real server, because the mock's cost per request is small.
const WORK: usize = 10;
/// Number of open files in addition to those of the watchers: connections, pipes, the async runtime.
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

/// Measures the mock API server. If `KUBEBUILDER_ASSETS` names a folder with kube-apiserver and etcd, the real server
/// is measured as well. Exit code: 0 if every requirement is met, 1 if one is not, 2 if one could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only this measurement. Default: all measurements except `scale-…`, each of which takes minutes and prints
    /// the memory that it needs.
    #[arg(long, value_name = "PART")]
    only: Option<Measurement>,
    /// Do not measure the real server.
    #[arg(long)]
    mock_only: bool,
    /// Measure the mock of the `longhaul` program at this path.
    #[arg(long, value_name = "PATH", hide = true)]
    program: Option<PathBuf>,
}

/// Runs all measurements except `scale-…`, or the single one that was requested.
pub(crate) async fn measure(arguments: &Arguments, quick: bool, report: &mut Report) -> Result<()> {
    let effort = Effort { only: arguments.only, ..if quick { QUICK } else { FULL } };
    scenarios::descriptors::raise(effort.crowd as u64 + DESCRIPTORS_SPARE)?;
    let (subjects, measured) = match arguments.only {
        None | Some(Measurement::Watchers | Measurement::Lists | Measurement::Events) => {
            beside(arguments, effort).await?
        }
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

/// Measures the memory of watchers on freshly started servers, and all other figures on servers that are started
/// afterwards.
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

/// Starts the mock API server. Starts the real server as well if it is installed and the machine has enough memory.
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
