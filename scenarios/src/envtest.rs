//! Runs a project's test suite against the mock API server: sets the suite's environment variables and the faults of
//! each seed, and reads the record after the run.
//!
//! This module runs a suite once; the module `repeat` repeats it. The suite starts `mock-envtest` through links to this
//! program with the names of the real programs. The module `ledger` reads the records of the `mock-envtest` processes.

mod behind;
mod hot;
pub(crate) mod hunt;
mod install;
mod ledger;
mod page;
mod planes;
mod repeat;
mod results;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mock_envtest::{Drawn, Manager, SESSION, Session};
use mock_faults::Fault;
use reports::exit;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Command;

pub(crate) use install::{LinkFolder, install, links};
use ledger::Ledger;
pub(crate) use repeat::Repetition;

use crate::out::err;
use crate::signals::Signals;

/// The default timeout for Gomega, instead of Gomega's own one second. A Go client waits nearly a second before it
/// reopens a watch, so a correct suite would fail.
const GOMEGA: (&str, &str) = ("GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT", "15s");
/// The environment variable for the folder of fabric8's test kit, whose default is in the home folder.
const FABRIC8: &str = "KUBE_API_TEST_DIR";
/// The environment variable for the Kubernetes version that a suite with fabric8's test kit requests.
const FABRIC8_VERSION: &str = "KUBE_API_TEST_API_SERVER_VERSION";
/// Timeout of a suite in a gate; a suite that hangs has failed.
const LIMIT: Duration = Duration::from_hours(1);
/// The file with the settings of a run's control planes.
const SESSION_FILE: &str = "session.json";
/// Maximum number of records of runs with the same start second and seed.
const RECORDS_MAX: usize = 1000;
/// The file for the suite's output, if the output does not go to the terminal.
const OUTPUT: &str = "suite.log";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Chaos {
    /// The first seed of random faults; `None` for no random faults.
    pub seed: Option<u64>,
    /// Whether to change the order of events of different watches.
    pub order: bool,
    /// The number of versions by which caches may be behind.
    pub stale: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Suite {
    pub command: Vec<String>,
    pub faults: Vec<Fault>,
    /// The value of `--faults` as written.
    pub written: Option<String>,
    pub chaos: Chaos,
    /// Seed of all random choices without `--chaos`.
    pub seed: Option<u64>,
    /// Time after which workloads become ready; `None` for never.
    pub workloads: Option<units::Span>,
    /// The minor release of Kubernetes whose kinds the mock serves; `None` for the default.
    pub kubernetes: Option<String>,
    pub manager: Manager,
    pub runs: PathBuf,
    pub results: Vec<PathBuf>,
    pub judged: bool,
    /// The folder in which the suite runs; `None` for the current folder. With a folder, the suite's output goes to a
    /// file.
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub code: u8,
    /// Whether a signal ended the run.
    pub was_ended: bool,
    pub counts: Counts,
}

/// The purpose of a run of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// The first run, which is reported. The suite uses this process's input and output, unless it runs in another
    /// folder.
    Told,
    /// A repetition, with its output in a file of the record.
    Again,
    /// A trial of a hunt, which is ended after this time.
    Trial(Duration),
    WithoutFaults,
}

#[derive(Debug)]
struct Played {
    seed: u64,
    /// The exit code of Longhaul: the suite's own exit code, or the exit code of `--judge`.
    code: u8,
    /// The suite's own exit code.
    suites: u8,
    was_ended: bool,
    /// Whether the suite was ended because it did not end in time.
    hung: bool,
    /// Whether a fault had hits, or the run had no faults.
    is_disturbed: bool,
    began: jiff::Timestamp,
    took: Duration,
    ledger: Ledger,
    record: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub planes: usize,
    pub requests: usize,
    pub conflicts: u64,
    pub hot_loops: usize,
    pub hits: usize,
}

impl Suite {
    fn has_faults(&self) -> bool {
        !self.faults.is_empty() || self.chaos.seed.is_some() || self.chaos.order || self.chaos.stale.is_some()
    }

    /// The settings of `--chaos`: random faults that hit single requests.
    fn drawn(&self) -> Drawn {
        Drawn { chaos: self.chaos.seed.is_some(), order: self.chaos.order, stale: self.chaos.stale }
    }

    pub(crate) async fn once(&self, seed: u64, signals: &mut Signals) -> Result<Run> {
        let played = self.play(seed, How::Told, signals).await?;
        Ok(Run { code: played.code, was_ended: played.was_ended, counts: played.ledger.counts() })
    }

    /// Runs the suite and writes the record.
    async fn play(&self, seed: u64, how: How, signals: &mut Signals) -> Result<Played> {
        let began = jiff::Timestamp::now();
        let record = self.record(seed, began)?;
        let is_plain = how == How::WithoutFaults;
        let session = Session {
            runs: Some(record.clone()),
            faults: if is_plain { Vec::new() } else { self.faults.clone() },
            drawn: if is_plain { Drawn::default() } else { self.drawn() },
            seed,
            manager: self.manager.clone(),
            workloads_ms: self.workloads.map(units::Span::as_millis),
            kubernetes: self.kubernetes.clone(),
            kubectl: install::real_kubectl(),
        };
        std::fs::write(record.join(SESSION_FILE), serde_json::to_vec_pretty(&session)?)?;
        // Each run has a folder of its own, because `go test` reads these variables to decide whether a result may come
        // from its cache.
        let programs = tempfile::tempdir().context("failed to make a folder for the programs")?;
        links(LinkFolder::At(programs.path()))?;
        let version = std::env::var(FABRIC8_VERSION).unwrap_or_default();
        links(LinkFolder::At(&install::layout(programs.path(), &version)))?;
        let started = Instant::now();
        let (status, was_ended, hung) = self.run(programs.path(), &record, how, signals).await?;
        let took = started.elapsed();
        // Only faults that the user wrote must have hits: most random faults are planned after the end of the suite.
        let ledger = Ledger::read(&record, &self.results, &session.faults, &self.manager)?;
        ledger.write(&record)?;
        let suites = code_of(status);
        let code = if suites == exit::PASS && self.judged && !is_plain { ledger.exit_code() } else { suites };
        let is_disturbed = is_plain || !self.has_faults() || ledger.hits > 0;
        let played = Played { seed, code, suites, was_ended, hung, is_disturbed, began, took, ledger, record };
        page::write(self, &played, &[])?;
        if how == How::Told && self.folder.is_none() {
            self.tell(&played);
        }
        Ok(played)
    }

    /// A folder for the record of one run. The folder's name is unique, because a short suite may run several times
    /// within a second.
    fn record(&self, seed: u64, began: jiff::Timestamp) -> Result<PathBuf> {
        std::fs::create_dir_all(&self.runs).with_context(|| format!("failed to make {}", self.runs.display()))?;
        let name = format!("envtest-{}-{seed}", began.strftime("%Y%m%d-%H%M%S"));
        for number in 1..RECORDS_MAX {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let record = self.runs.join(name);
            match std::fs::create_dir(&record) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    made.with_context(|| format!("failed to make {}", record.display()))?;
                    return Ok(std::path::absolute(&record)?);
                }
            }
        }
        anyhow::bail!("{} has too many records of one second", self.runs.display())
    }

    /// Starts the suite and waits for it. Returns the suite's status, whether a signal came, and whether the suite was
    /// ended because it took too long. The suite uses the input and output of this process, or writes to files of the
    /// record.
    async fn run(
        &self,
        programs: &Path,
        record: &Path,
        how: How,
        signals: &mut Signals,
    ) -> Result<(ExitStatus, bool, bool)> {
        let (program, words) = self.command.split_first().context("the suite's command is empty")?;
        let mut suite = Command::new(program);
        suite.args(words).env(SESSION, record.join(SESSION_FILE)).env("KUBEBUILDER_ASSETS", programs);
        let is_group = self.folder.is_some() || how != How::Told;
        if is_group {
            let path = record.join(OUTPUT);
            let output = File::create(&path).with_context(|| format!("failed to make {}", path.display()))?;
            suite.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
            // It has its own process group, so that the processes of `make` end with it.
            suite.process_group(0);
        }
        if let Some(folder) = &self.folder {
            suite.current_dir(folder);
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
        let (mut was_ended, mut hung) = (false, false);
        let mut running = suite.spawn().with_context(|| format!("failed to start `{program}`"))?;
        let limit = tokio::time::sleep(if let How::Trial(limit) = how { limit } else { LIMIT });
        tokio::pin!(limit);
        loop {
            let signal = tokio::select! {
                status = running.wait() => return Ok((status.context("failed to wait for the suite")?, was_ended, hung)),
                signal = signals.next() => Some(signal),
                () = &mut limit, if is_group && !limit.is_elapsed() => None,
            };
            hung |= signal.is_none();
            let is_second = signal.is_some() && std::mem::replace(&mut was_ended, true);
            let pid = running.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            if let Some(group) = pid.filter(|_| is_group) {
                let how = if is_second || signal.is_none() { Signal::KILL } else { Signal::TERM };
                let _ = kill_process_group(group, how);
            } else if is_second {
                // A second signal ends it at once.
                running.start_kill().context("failed to end the suite")?;
            } else if let Some(pid) = pid.filter(|_| signal == Some("SIGTERM")) {
                // Ctrl-C reaches the whole group by itself; SIGTERM came to this process alone. The ledger is written
                // in both cases.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    fn tell(&self, played: &Played) {
        let (took, ledger) = (played.took.as_secs_f64(), &played.ledger);
        let what = match (played.suites == exit::PASS, played.is_disturbed) {
            (true, true) => "passed",
            (true, false) => "passed, but no fault hit anything,",
            (false, _) => "failed",
        };
        err!("longhaul: the suite {what} in {took:.1} s; {}", ledger.line());
        for line in ledger.notable().into_iter().chain(ledger.failed()) {
            err!("longhaul:   {line}");
        }
        if self.has_faults() {
            err!("longhaul:   faults were for {}", self.touched());
        }
        err!("longhaul:   {}", played.record.join(page::FILE).display());
    }

    /// A text on how requests of the manager are distinguished from requests of the suite.
    fn touched(&self) -> String {
        match (&self.manager.agent, &self.manager.user) {
            (Some(agent), _) => format!("requests with `{agent}` in their user agent"),
            (None, Some(user)) => format!("requests of the user `{user}`"),
            (None, None) => "all caches: watches and the lists before them; `--manager-agent` or `--manager-user` names the manager, and \
                             then faults also hit its writes".to_owned(),
        }
    }

    /// The command that repeats a seed.
    pub(crate) fn again(&self, seed: u64) -> String {
        self.command_line(&[], seed)
    }

    /// The command that runs the suite with a seed and further flags.
    fn command_line(&self, flags: &[String], seed: u64) -> String {
        let mut words = vec![crate::started_as(), "envtest".to_owned()];
        words.extend(flags.iter().cloned());
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
        let chosen = self.kubernetes.clone().filter(|release| release != mock_kube::DEFAULT_RELEASE);
        add("--kubernetes", chosen);
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

/// The exit code of a suite, by the convention of shells.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = || status.signal().map_or(i32::from(exit::SOFTWARE), |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(exit::FAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite() -> Suite {
        Suite {
            command: vec!["make".to_owned(), "test it".to_owned()],
            faults: Vec::new(),
            written: None,
            chaos: Chaos { seed: Some(7), order: true, stale: Some(2) },
            seed: None,
            workloads: None,
            kubernetes: None,
            manager: Manager { agent: Some("mgr".to_owned()), user: None },
            runs: PathBuf::from("runs"),
            results: Vec::new(),
            judged: false,
            folder: None,
        }
    }

    /// The printed command contains the seed that failed, not the first seed.
    #[test]
    fn a_seed_is_played_again_by_the_printed_command() {
        let suite = suite();
        let again = suite.again(9);
        assert!(
            again.ends_with("envtest --chaos 9 --stale 2 --manager-agent mgr --order -- make 'test it'"),
            "{again}"
        );
        assert_eq!(suite.drawn(), Drawn { chaos: true, order: true, stale: Some(2) });
    }

    /// Two runs within the same second have different folders.
    #[test]
    fn no_two_runs_share_a_record() {
        let runs = tempfile::tempdir().unwrap();
        let suite = Suite { runs: runs.path().join("runs"), ..suite() };
        let now = jiff::Timestamp::now();
        let records: std::collections::BTreeSet<PathBuf> = (0..3).map(|_| suite.record(4, now).unwrap()).collect();
        assert_eq!(records.len(), 3);
    }
}
