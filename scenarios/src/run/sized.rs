//! One start of a subject against a mock that already holds objects, for `longhaul size`.
//!
//! Owns the mock control plane and the subject, and stops both. The caller decides when to start, what to measure and
//! how long to wait.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use mock_faults::{Fault, FaultId, Name};
use tokio_util::task::AbortOnDropHandle;

use super::Options;
use super::attach::Who;
use super::ready::{NotReady, Ready, Requested, wait_until_ready};
use super::sink::Sink;
use super::start::{self, Prepared};
use super::validators::Validators;
use super::world::World;
use crate::scenario;
use crate::subject::{Launch, Log, Running};
use crate::witness::{Open, Reporter};

/// The number of the fault that answers 410.
const GONE: FaultId = FaultId(1);
/// Maximum time that the subject gets to end after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(5);
/// The shell command: the shell enters a cgroup, then replaces itself with the program.
const ENTER: &str = "echo $$ > \"$0\" && exec \"$@\"";

/// A subject and its mock control plane.
pub(crate) struct Sized {
    world: World,
    launch: Launch,
    log: Log,
    ready: Ready,
    subject: Option<Running>,
    stop_timeout: Duration,
    pub(crate) digest: Option<String>,
    /// Receives the subject's observations.
    _sink: Sink,
    /// Keeps the proxies of the subject's validators (the processes that verify signatures) running.
    _validators: Validators,
    /// Keeps the witness listening, and reads its channel so that the channel never fills up.
    _witness: (Reporter, Open, AbortOnDropHandle<()>),
}

impl Sized {
    /// Starts the control plane, but not the subject.
    pub(crate) async fn open(options: &Options) -> Result<Self> {
        let Prepared { directory, manifest, world, subject: plan, .. } = Box::pin(start::prepare(options)).await?;
        let origin = &options.source.origin;
        if world.plane.mock().is_none() {
            world.stop().await;
            bail!("{origin}: `size` needs `controlPlane: {{kind: mock}}`");
        }
        let launch = match &plan.who {
            Who::Started(launches) => launches.as_slice(),
            _ => &[],
        };
        let [launch] = launch else {
            world.stop().await;
            bail!("{origin}: `size` starts one program: write `subject: {{command: [program, …]}}`");
        };
        let mut launch = launch.clone();
        let sink = Sink::open().await?;
        report_to(&mut launch, &sink);
        let mut witness = plan.witness;
        let lines = witness.lines.take().map(|lines| (lines, plan.reporter.clone()));
        plan.clock.start(Instant::now());
        let mut statements = plan.reported.statements;
        let drains = tokio::spawn(async move { while statements.recv().await.is_some() {} });
        let log = Log::create(&directory, lines)?;
        Ok(Self {
            world,
            launch,
            log,
            ready: plan.ready,
            subject: None,
            stop_timeout: options
                .source
                .scenario
                .subject
                .upkeep()
                .stop_timeout
                .map_or(STOP_MAX, |timeout| timeout.0.min(STOP_MAX)),
            digest: manifest.subject.digest,
            _sink: sink,
            _validators: plan.validators,
            _witness: (plan.reporter, witness, AbortOnDropHandle::new(drains)),
        })
    }

    /// The mock control plane.
    pub(crate) fn server(&self) -> Result<&mock_kube::Server> {
        Ok(&self.world.plane.mock().context("the control plane is not the mock")?.server)
    }

    /// The user name of the subject.
    pub(crate) fn user(&self) -> &str {
        self.world.plane.subject()
    }

    /// Starts the subject and returns its process id. `cgroup` is the file `cgroup.procs` of the cgroup for it.
    pub(crate) fn start(&mut self, cgroup: Option<PathBuf>) -> Result<u32> {
        let mut launch = self.launch.clone();
        if let Some(procs) = cgroup {
            let program = std::mem::replace(&mut launch.program, PathBuf::from("/bin/sh"));
            let before =
                ["-c".to_owned(), ENTER.to_owned(), procs.display().to_string(), program.display().to_string()];
            launch.arguments.splice(0..0, before);
        }
        let running = launch.start(self.log.clone())?;
        let pid = running.pid();
        self.subject = Some(running);
        Ok(pid)
    }

    /// The subject's exit status and last output, if it has ended.
    pub(crate) async fn ended(&mut self) -> Option<(std::process::ExitStatus, String)> {
        let subject = self.subject.as_mut()?;
        let status = subject.exited()?;
        Some((status, subject.last_words().await))
    }

    /// The unmet part of the scenario's readiness condition; `None` if the subject is ready.
    pub(crate) async fn missing(&self) -> Option<String> {
        let asked = || match self.server() {
            Ok(server) if server.traffic(self.user()).requests > 0 => Requested::Judged,
            _ => Requested::Nothing,
        };
        let error = wait_until_ready(self.ready.clone(), Instant::now(), asked).await.err()?;
        Some(error.downcast_ref::<NotReady>().map_or_else(|| error.to_string(), |error| error.missing().to_owned()))
    }

    /// Ends every watch and answers 410 to its resumption, until [`Self::heal`].
    pub(crate) fn disturb(&self) -> Result<()> {
        let fault = Fault { at: Some(units::Span::from_secs(0)), ..Fault::armed(Name::Watch410) };
        self.world.begin(GONE, &fault)
    }

    /// Ends the fault that [`Self::disturb`] began.
    pub(crate) fn heal(&self) {
        self.world.end(GONE, &Fault::armed(Name::Watch410));
    }

    /// Stops the subject and the control plane.
    pub(crate) async fn stop(mut self) {
        if let Some(mut subject) = self.subject.take() {
            subject.stop(self.stop_timeout).await;
        }
        self.world.stop().await;
    }
}

/// Makes a subject post its observations to the sink, if the scenario's witness receives posts.
fn report_to(launch: &mut Launch, sink: &Sink) {
    let told = launch.environment.iter().find(|(name, _)| name == scenario::WITNESS_URL);
    let Some(told) = told.map(|(_, url)| url.clone()).filter(|url| !url.is_empty()) else { return };
    let url = format!("http://{}/observe", sink.address);
    let values = launch.environment.iter_mut().map(|(_, value)| value).chain(&mut launch.arguments);
    values.for_each(|text| *text = text.replace(&told, &url));
}
