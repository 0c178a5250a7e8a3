//! A project's own test-suite against our API server: the variables, the faults of each seed, the ledger afterwards.
//!
//! Owns running a suite, once, many times, and for as long as is wanted. The programs that it starts are `mock-envtest`, called by their
//! names through links to this program; what they left behind is read by `ledger`.

mod install;
mod ledger;
mod page;
mod results;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mock_envtest::{Manager, SESSION, Session};
use mock_faults::Fault;
use reports::exit;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Command;

pub(crate) use install::{Place, install, links};
use ledger::Ledger;

use crate::out::err;
use crate::signals::Signals;

/// The seed of who names none.
const SEED: u64 = 1;
/// Gomega waits for a second where a suite does not say. A client of Go waits nearly as long before it opens a watch again, so that a correct suite
/// would fail of its patience alone.
const GOMEGA: (&str, &str) = ("GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT", "15s");
/// Where fabric8's kit looks, instead of its folder in the home.
const FABRIC8: &str = "KUBE_API_TEST_DIR";
/// The version that a suite for fabric8's kit asks for.
const FABRIC8_VERSION: &str = "KUBE_API_TEST_API_SERVER_VERSION";
/// A suite that a gate waits for; one that hangs has failed.
const LIMIT: Duration = Duration::from_hours(1);
/// Seeds that are named at the end.
const SEEDS_SHOWN: usize = 20;
/// What the control planes of a run are told.
const SESSION_FILE: &str = "session.json";
/// What a suite says, where it is not for the user's terminal.
const OUTPUT: &str = "suite.log";

/// Random faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chaos {
    /// The first seed; without one there is no chaos.
    pub seed: Option<u64>,
    /// Events of different watches in another order.
    pub order: bool,
    /// Caches so many versions behind.
    pub stale: Option<u64>,
}

/// A suite, and what is to happen to it.
#[derive(Debug)]
pub(crate) struct Suite {
    pub command: Vec<String>,
    pub faults: Vec<Fault>,
    /// `--faults` as it was written.
    pub written: Option<String>,
    pub chaos: Chaos,
    /// Of faults that are drawn without `--chaos`.
    pub seed: Option<u64>,
    /// After how long workloads become ready, if they do.
    pub workloads: Option<units::Span>,
    pub manager: Manager,
    pub runs: PathBuf,
    pub results: Vec<PathBuf>,
    pub judged: bool,
    /// The folder that it is run in; this one where none is named. Then what it says goes to a file of its record.
    pub folder: Option<PathBuf>,
}

/// How often a suite is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repetition {
    /// So many times at most, each with the next seed.
    pub times: u64,
    /// No run begins later than this.
    pub lasts: Option<Duration>,
    /// Whether it goes on after a run that failed.
    pub goes_on: bool,
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The exit code.
    pub code: u8,
    /// A signal came meanwhile.
    pub was_ended: bool,
    pub counts: Counts,
}

/// What the control planes of a run counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub planes: usize,
    pub requests: usize,
    pub conflicts: u64,
    pub hot_loops: usize,
    pub hits: usize,
}

impl Suite {
    /// Runs it once a seed; the exit code of the last run, or of the first that failed.
    pub(crate) async fn repeat(&self, repetition: Repetition) -> Result<u8> {
        let first = self.chaos.seed.or(self.seed).unwrap_or(SEED);
        let mut signals = Signals::listen().context("failed to listen for signals")?;
        let (began, mut ran, mut failed, mut ended) = (Instant::now(), 0, Vec::new(), None);
        for seed in (0..repetition.times).map(|number| first.wrapping_add(number)) {
            if ran > 0 && repetition.lasts.is_some_and(|lasts| began.elapsed() >= lasts) {
                break;
            }
            let run = self.once(seed, &mut signals).await?;
            if run.was_ended {
                // That says nothing of its seed.
                ended = Some(run.code);
                break;
            }
            ran += 1;
            if run.code != exit::PASS {
                failed.push((seed, run.code));
            }
            if !failed.is_empty() && !repetition.goes_on {
                break;
            }
        }
        let Some(&(seed, code)) = failed.first() else {
            if ran > 1 {
                err!("longhaul: {ran} runs passed, seeds {first} to {}", first.wrapping_add(ran - 1));
            }
            return Ok(ended.unwrap_or(exit::PASS));
        };
        if ran > 1 {
            let seeds: Vec<String> = failed.iter().take(SEEDS_SHOWN).map(|(seed, _)| seed.to_string()).collect();
            let more = if failed.len() > SEEDS_SHOWN { ", …" } else { "" };
            err!("longhaul: {} of {ran} runs failed: seeds {}{more}", failed.len(), seeds.join(", "));
        }
        if self.has_faults() {
            err!("longhaul: seed {seed} again: {}", self.again(seed));
        }
        Ok(code)
    }

    fn has_faults(&self) -> bool {
        !self.faults.is_empty() || self.chaos.seed.is_some() || self.chaos.order || self.chaos.stale.is_some()
    }

    /// The faults of one seed.
    fn faults_of(&self, seed: u64) -> Vec<Fault> {
        let mut faults = self.faults.clone();
        if self.chaos.seed.is_some() {
            faults.extend(mock_envtest::chaos(seed, &self.manager));
        }
        if self.chaos.order {
            faults.extend(mock_envtest::disorder(seed, &self.manager));
        }
        if let Some(versions) = self.chaos.stale {
            faults.extend(mock_envtest::lagging(seed, versions, &self.manager));
        }
        faults
    }

    /// Runs it with the faults of a seed.
    pub(crate) async fn once(&self, seed: u64, signals: &mut Signals) -> Result<Run> {
        let began = jiff::Timestamp::now();
        let record = self.runs.join(format!("envtest-{}-{seed}", began.strftime("%Y%m%d-%H%M%S")));
        std::fs::create_dir_all(&record).with_context(|| format!("failed to make {}", record.display()))?;
        let record = std::path::absolute(&record)?;
        let faults = self.faults_of(seed);
        let session = Session {
            runs: Some(record.clone()),
            faults,
            seed,
            manager: self.manager.clone(),
            workloads_ms: self.workloads.map(units::Span::as_millis),
            kubectl: install::real_kubectl(),
        };
        std::fs::write(record.join(SESSION_FILE), serde_json::to_vec_pretty(&session)?)?;
        // A folder of its own: `go test` looks at these variables to say whether a result may come from its cache.
        let programs = tempfile::tempdir().context("failed to make a folder for the programs")?;
        links(Place::At(programs.path()))?;
        let version = std::env::var(FABRIC8_VERSION).unwrap_or_default();
        links(Place::At(&install::layout(programs.path(), &version)))?;
        let started = Instant::now();
        let (status, was_ended) = self.run(programs.path(), &record, signals).await?;
        // Of what is drawn most comes after a suite's end; what somebody wrote was meant to hit.
        let ledger = Ledger::read(&record, &self.results, &self.faults)?;
        ledger.write(&record)?;
        ledger::write(&record, "index.html", &page::html(&ledger, &self.command, seed))?;
        let code = code_of(status);
        self.tell(&ledger, &record, started.elapsed(), code);
        let code = if code == exit::PASS && self.judged { ledger.judged() } else { code };
        Ok(Run { code, was_ended, counts: ledger.counts() })
    }

    /// Starts the suite and waits for it, and says whether a signal came meanwhile; with this process's input and output, or those of the record.
    async fn run(&self, programs: &Path, record: &Path, signals: &mut Signals) -> Result<(ExitStatus, bool)> {
        let (program, words) = self.command.split_first().context("the suite's command is empty")?;
        let mut suite = Command::new(program);
        suite.args(words).env(SESSION, record.join(SESSION_FILE)).env("KUBEBUILDER_ASSETS", programs);
        if let Some(folder) = &self.folder {
            let path = record.join(OUTPUT);
            let output = File::create(&path).with_context(|| format!("failed to make {}", path.display()))?;
            suite.current_dir(folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
            // A group of its own: what `make` started is ended with it.
            suite.process_group(0);
        }
        if std::env::var_os(FABRIC8).is_none() {
            suite.env(FABRIC8, programs);
        }
        if self.has_faults() && std::env::var_os(GOMEGA.0).is_none() {
            suite.env(GOMEGA.0, GOMEGA.1);
        }
        let variables = ["TEST_ASSET_KUBE_APISERVER", "TEST_ASSET_ETCD", "TEST_ASSET_KUBECTL"];
        for (variable, name) in variables.into_iter().zip(mock_envtest::PROGRAMS) {
            suite.env(variable, programs.join(name));
        }
        let (mut was_ended, is_group) = (false, self.folder.is_some());
        let mut running = suite.spawn().with_context(|| format!("failed to start `{program}`"))?;
        let limit = tokio::time::sleep(LIMIT);
        tokio::pin!(limit);
        loop {
            let signal = tokio::select! {
                status = running.wait() => return Ok((status.context("failed to wait for the suite")?, was_ended)),
                signal = signals.next() => Some(signal),
                () = &mut limit, if is_group && !limit.is_elapsed() => None,
            };
            let is_second = signal.is_some() && std::mem::replace(&mut was_ended, true);
            let pid = running.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            if let Some(group) = pid.filter(|_| is_group) {
                let how = if is_second || signal.is_none() { Signal::KILL } else { Signal::TERM };
                let _ = kill_process_group(group, how);
            } else if is_second {
                // The second time: at once.
                running.start_kill().context("failed to end the suite")?;
            } else if let Some(pid) = pid.filter(|_| signal == Some("SIGTERM")) {
                // Ctrl-C goes to the whole group by itself; SIGTERM came to this process alone. The ledger is written in both cases.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    fn tell(&self, ledger: &Ledger, record: &Path, took: Duration, code: u8) {
        if self.folder.is_some() {
            return;
        }
        let passed = if code == exit::PASS { "passed" } else { "failed" };
        err!("longhaul: the suite {passed} in {:.1} s; {}", took.as_secs_f64(), ledger.line());
        for line in ledger.notable() {
            err!("longhaul:   {line}");
        }
        if self.has_faults() {
            err!("longhaul:   faults were for {}", self.touched());
        }
        err!("longhaul:   {}", record.join("index.html").display());
    }

    /// How the manager was told from the suite.
    fn touched(&self) -> String {
        match (&self.manager.agent, &self.manager.user) {
            (Some(agent), _) => format!("requests with `{agent}` in their user agent"),
            (None, Some(user)) => format!("requests of the user `{user}`"),
            (None, None) => "the watches of caches and the lists before them, of everybody; `--manager-agent` or `--manager-user` names the manager, and its writes are touched too".to_owned(),
        }
    }

    /// The command that plays a seed again.
    pub(crate) fn again(&self, seed: u64) -> String {
        let mut words = vec![crate::started_as(), "envtest".to_owned()];
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_owned(), crate::quoted(&value)]);
            }
        };
        add("--faults", self.written.clone());
        add("--chaos", self.chaos.seed.map(|_| seed.to_string()));
        add("--seed", self.chaos.seed.is_none().then(|| seed.to_string()));
        add("--stale", self.chaos.stale.map(|versions| versions.to_string()));
        add("--workloads", self.workloads.map(|after| after.to_string()));
        add("--manager-agent", self.manager.agent.clone());
        add("--manager-user", self.manager.user.clone());
        let usual = self.folder.is_some() || self.runs == Path::new("runs");
        add("--runs", (!usual).then(|| self.runs.display().to_string()));
        for file in &self.results {
            add("--results", Some(file.display().to_string()));
        }
        for (flag, is_on) in [("--order", self.chaos.order), ("--judge", self.judged)] {
            words.extend(is_on.then(|| flag.to_owned()));
        }
        words.push("--".to_owned());
        words.extend(crate::secrets::arguments(&self.command).iter().map(|word| crate::quoted(word)));
        words.join(" ")
    }
}

/// A suite's exit code, as a shell tells it.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = || status.signal().map_or(i32::from(exit::SOFTWARE), |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(exit::FAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command that is printed has the seed that failed, not the one that was begun with.
    #[test]
    fn a_seed_is_played_again_by_the_printed_command() {
        let suite = Suite {
            command: vec!["make".to_owned(), "test it".to_owned()],
            faults: Vec::new(),
            written: None,
            chaos: Chaos { seed: Some(7), order: true, stale: Some(2) },
            seed: None,
            workloads: None,
            manager: Manager { agent: Some("mgr".to_owned()), user: None },
            runs: PathBuf::from("runs"),
            results: Vec::new(),
            judged: false,
            folder: None,
        };
        let again = suite.again(9);
        assert!(
            again.ends_with("envtest --chaos 9 --stale 2 --manager-agent mgr --order -- make 'test it'"),
            "{again}"
        );
        let plain = Suite { chaos: Chaos { order: false, stale: None, ..suite.chaos }, ..suite };
        assert_eq!(plain.faults_of(7), mock_envtest::chaos(7, &plain.manager));
    }
}
