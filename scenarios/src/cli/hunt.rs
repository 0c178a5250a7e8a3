//! `longhaul hunt`: searches for bugs that nobody wrote a scenario for.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use units::Span;

use crate::hunt::confirm::PATIENT;
use crate::hunt::files::FILES;
use crate::hunt::rows::Rare;
use crate::hunt::{Choice, hunt};
use crate::out::{err, out};
use crate::scenario::{ControlPlaneKind, Outside, Scenario, Source};
use crate::signals::stoppable;

/// Default time of a hunt.
const LASTS: Span = Span::from_secs(15 * 60);
/// Maximum number of trials at once.
const JOBS_MAX: i64 = 64;
/// Number of trials at once for each processor: a trial mostly waits.
const JOBS_EACH: usize = 3;

/// Arguments of `longhaul hunt`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The scenario file, as `longhaul init` writes it. Its subject, control plane, and the objects of its `churn` or `script` are used.
    scenario: String,
    #[command(flatten)]
    outside: Outside,
    /// The time of the hunt. Plays that confirm a finding may take longer.
    #[arg(long = "for", value_name = "TIME", default_value_t = LASTS)]
    lasts: Span,
    /// The number of trials. Default: as many as fit into the time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    trials: Option<u32>,
    /// The seed of the search. The same seed plays the same trials in the same order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of trials at once. Default: three for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=JOBS_MAX))]
    jobs: Option<u16>,
    /// End the hunt after so many findings.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    findings: Option<u32>,
    /// The time after which a wrong end is a finding in any case. Give a longer time for a program with longer timeouts.
    #[arg(long, value_name = "TIME", default_value_t = Span(PATIENT))]
    patience: Span,
    /// Also try disturbances of watches that many correct clients do not survive; several with commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    rare: Vec<Rare>,
    /// Another program that runs beside the subject, such as 'kube-controller-manager --kubeconfig=${KUBECONFIG}'. May be given several
    /// times.
    #[arg(long, value_name = "COMMAND")]
    beside: Vec<String>,
    /// Run the subject's own clock N times faster. Needs ptrace.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// Do not let the subject's clock jump. The clock needs ptrace, which slows down the start of a program.
    #[arg(long)]
    no_clock: bool,
    /// The folder for hunt.html, hunt.md, hunt.json and junit.xml. It must be empty or not exist yet. Default: a new folder below `runs`.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
    /// Do not print the progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Hunts and prints the result. Exit 0 nothing found, 1 findings, 2 too little was tried; an invalid file exits 64.
pub(super) fn run(arguments: &Arguments) -> Result<u8> {
    let choice = choice(arguments)?;
    let (stop, quiet) = (CancellationToken::new(), arguments.quiet);
    let say = |line: String| {
        if !quiet {
            err!("{}", crate::shown::line(&line));
        }
    };
    let result = super::block_on(async {
        stoppable(&stop, Box::pin(hunt(&choice, &stop, &say))).await.context("failed to listen for Ctrl-C")?
    })?;
    if arguments.json {
        out!("{}", super::json(&result)?);
    } else {
        out!("{}", reports::render::hunt_text(&result).trim_end());
        let page = choice.out.join(FILES[0]);
        if page.is_file() {
            out!("page: {}", page.display());
        }
    }
    Ok(result.exit_code())
}

/// The checked settings.
fn choice(arguments: &Arguments) -> Result<Choice> {
    let path = arguments.scenario.clone();
    ensure!(Path::new(&path).is_file(), "{path}: no such file: write one with `longhaul init`");
    let source = Source::read_within(&path, arguments.outside.reach())?;
    let scenario = &source.scenario;
    ensure!(
        scenario.control_plane.kind == ControlPlaneKind::Mock,
        "{path}: `hunt` needs `controlPlane: {{kind: mock}}`"
    );
    let mut file = Source::raw(&path, arguments.outside.reach())?;
    for (number, command) in arguments.beside.iter().enumerate() {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.with_context(|| format!("--beside '{command}': this is no command"))?;
        beside(&mut file, number, &words).with_context(|| format!("--beside '{command}'"))?;
    }
    if let Some(rate) = arguments.clock_rate {
        keys(&mut file)?.insert("clockRate".to_owned(), rate.into());
    }
    let text = Value::Object(file.clone()).to_string();
    Source::instead(&path, &text, arguments.outside.reach())?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = arguments.jobs.map_or(cores * JOBS_EACH, usize::from);
    let mut every = vec!["--seed".to_owned(), scenario.seed.to_string()];
    every.extend(arguments.outside.repeated().split_whitespace().map(str::to_owned));
    let out = arguments.output.clone().unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        PathBuf::from("runs").join(format!("{now}-hunt"))
    });
    crate::private::folder(&out, "--output")?;
    let command = scenario.subject.command().map(|command| command.run.clone()).unwrap_or_default();
    Ok(Choice {
        path,
        file,
        name: scenario.name.clone(),
        command: crate::secrets::arguments(&command),
        seed: arguments.seed,
        lasts: arguments.lasts.0,
        trials: arguments.trials,
        jobs,
        findings: arguments.findings,
        patience: arguments.patience.0,
        rare: arguments.rare.clone(),
        arguments: every,
        asks: scenario.can_ask(),
        clock: !arguments.no_clock,
        clock_rate: arguments.clock_rate.unwrap_or(scenario.clock_rate()),
        sample: sample(scenario),
        repeat: repeat(arguments),
        out,
    })
}

/// An object as the user would create it: the template of the load, or the first sample that the API must accept.
fn sample(scenario: &Scenario) -> Option<Value> {
    let churn = scenario.churn.first()?;
    let accepted = churn.templates.iter().filter(|sample| sample.expect == loadgen::churn::Expect::Allowed);
    churn.template.clone().or_else(|| accepted.into_iter().find_map(|sample| sample.object.clone()))
}

/// The keys of the subject's `command`; a list of words becomes `run`.
fn keys(file: &mut Map<String, Value>) -> Result<&mut Map<String, Value>> {
    let command = file.get_mut("subject").and_then(|subject| subject.get_mut("command"));
    let Some(command) = command else { bail!("the subject must be a `command`") };
    if command.is_array() {
        *command = json!({"run": command.take()});
    }
    command.as_object_mut().context("the subject must be a `command`")
}

/// Adds a program beside the subject's own.
fn beside(file: &mut Map<String, Value>, number: usize, words: &[String]) -> Result<()> {
    let keys = keys(file)?;
    if let Some(run) = keys.remove("run") {
        keys.insert("processes".to_owned(), json!([{"name": "subject", "run": run}]));
    }
    let Some(Value::Array(processes)) = keys.get_mut("processes") else { bail!("the subject names no program") };
    processes.push(json!({"name": format!("beside-{}", number + 1), "run": words}));
    Ok(())
}

/// The command that repeats this hunt.
fn repeat(arguments: &Arguments) -> String {
    let mut words = vec![crate::started_as(), "hunt".to_owned(), crate::quoted(&arguments.scenario)];
    words.push(format!("--for {}", arguments.lasts));
    words.extend(arguments.trials.map(|trials| format!("--trials {trials}")));
    words.push(format!("--seed {}", arguments.seed));
    words.extend(arguments.jobs.map(|jobs| format!("--jobs {jobs}")));
    words.extend(arguments.findings.map(|findings| format!("--findings {findings}")));
    words.extend((arguments.patience.0 != PATIENT).then(|| format!("--patience {}", arguments.patience)));
    let rare = arguments.rare.iter().filter_map(clap::ValueEnum::to_possible_value);
    words.extend(rare.map(|rare| format!("--rare {}", rare.get_name())));
    words.extend(arguments.beside.iter().map(|command| format!("--beside {}", crate::quoted(command))));
    words.extend(arguments.clock_rate.map(|rate| format!("--clock-rate {rate}")));
    words.extend(arguments.no_clock.then(|| "--no-clock".to_owned()));
    words.join(" ") + arguments.outside.repeated()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_beside_is_a_process() {
        let mut file = json!({"subject": {"command": ["./manager", "-v"]}}).as_object().cloned().unwrap();
        beside(&mut file, 0, &["kcm".to_owned()]).unwrap();
        beside(&mut file, 1, &["other".to_owned(), "-x".to_owned()]).unwrap();
        let processes = json!([
            {"name": "subject", "run": ["./manager", "-v"]},
            {"name": "beside-1", "run": ["kcm"]},
            {"name": "beside-2", "run": ["other", "-x"]},
        ]);
        assert_eq!(file["subject"]["command"], json!({"processes": processes}));
        let mut service = json!({"subject": {"service": {}}}).as_object().cloned().unwrap();
        assert!(beside(&mut service, 0, &["x".to_owned()]).is_err());
    }
}
