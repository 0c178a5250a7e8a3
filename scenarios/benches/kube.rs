//! What the mock API server costs beside a real one: `cargo xtask bench kube`.
//!
//! Owns the order of things. Each server is a process of its own, the mock as anybody would start it; this process is the client of both, over
//! TLS, with the same code and the same bytes.

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

/// Work of the mock for each unit of work of the real server.
const WORK: usize = 10;
/// Descriptors besides those of the watchers: connections, pipes, the runtime.
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

/// Measures the mock API server and, when `KUBEBUILDER_ASSETS` names a folder with its programs, a real one beside it.
/// Exit 0 when every requirement is met, 1 when not, 2 when it could not be measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// One part alone. Without it all but the `scale-…`, each of which takes minutes and says how much memory.
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Leave the real server out.
    #[arg(long)]
    mock_only: bool,
    /// Another build of `longhaul`.
    #[arg(long, value_name = "PATH", hide = true)]
    program: Option<PathBuf>,
}

/// Everything but what goes far, or one part.
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

/// The memory of watchers on servers that have done nothing before, and everything else on others.
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

/// Starts the mock and, if it is there and has room, the real server.
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
