//! `longhaul compare SCENARIO --subject NAME=FILE-or-COMMAND …`: the flags, and the YAML file that can replace them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use reports::compare::SUBJECTS;
use reports::exit;
use serde::Deserialize;
use units::Span;

use crate::clients::Chosen;
use crate::compare::{Choice, FILES, Subject, play};
use crate::out::out;
use crate::scenario::Outside;

/// Maximum size of the YAML file with subjects.
const BYTES_MAX: u64 = 256 << 10;

/// Flags for a comparison that runs a scenario with several subjects.
#[derive(Clone, Default, clap::Args)]
pub(super) struct Several {
    /// A subject, as NAME=WHAT or WHAT. Give the flag 2 to 16 times. WHAT is a folder with a `subject.yaml`, a client that `cargo xtask
    /// matrix --list` names, or a command.
    #[arg(long, value_name = "NAME=WHAT", conflicts_with_all = ["into", "scenario", "figure", "draw"])]
    subject: Vec<String>,
    /// Read the subjects from a YAML file with the keys `scenario`, `seed`, `rounds`, `parallel` and `subjects` (a list of NAME=WHAT).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["into", "scenario", "figure", "draw"])]
    subjects: Option<PathBuf>,
    #[command(flatten)]
    outside: Outside,
    /// The seed for all subjects, instead of the scenario's seed.
    #[arg(long)]
    seed: Option<u64>,
    /// The length of the run for all subjects, instead of the scenario's length.
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<Span>,
    /// Run the clock of each subject N times faster.
    #[arg(long, value_name = "N")]
    clock_rate: Option<u32>,
    /// Keep each client's own timeouts for silent watches and its own interval between lists.
    #[arg(long)]
    own_clocks: bool,
    /// Run the scenario N times with each subject, in a different order each time. With several rounds, a subject ranks
    /// above another subject only if its result is better in every round.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Run all subjects at once instead of one after the other. If cgroups can be created, each subject gets an equal share of the
    /// processors.
    #[arg(long)]
    parallel: bool,
    /// The folder for the result and the records. Default: a new folder below `runs`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The keys of the YAML file with subjects.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    scenario: Option<String>,
    seed: Option<u64>,
    rounds: Option<u32>,
    #[serde(default)]
    parallel: bool,
    #[serde(default)]
    subjects: Vec<String>,
}

impl Several {
    /// Whether the flags ask for a comparison that runs a scenario.
    pub(super) fn is_some(&self) -> bool {
        !self.subject.is_empty() || self.subjects.is_some()
    }

    /// The name of the first given flag that only a comparison with a scenario can use.
    pub(super) fn first(&self) -> Option<&'static str> {
        let given = [
            ("--allow-outside", !self.outside.repeated().is_empty()),
            ("--seed", self.seed.is_some()),
            ("--for", self.length.is_some()),
            ("--clock-rate", self.clock_rate.is_some()),
            ("--own-clocks", self.own_clocks),
            ("--rounds", self.rounds.is_some()),
            ("--parallel", self.parallel),
            ("--out", self.out.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Two flags that only a comparison with a scenario can use.
    #[cfg(test)]
    pub(super) fn played_at_once() -> Self {
        Self { rounds: Some(2), parallel: true, ..Self::default() }
    }
}

/// Runs the scenario with all subjects. Returns exit code 0 if there is a result, because a comparison has no verdict.
pub(super) fn compare(several: &Several, what: &[PathBuf], json: bool) -> Result<u8> {
    let choice = choice(several, what, json)?;
    let stop = tokio_util::sync::CancellationToken::new();
    let compared = crate::cli::block_on(async { crate::signals::stoppable(&stop, play(&choice, &stop)).await? })?;
    if json {
        out!("{}", crate::cli::json(&compared)?);
    } else {
        out!("{}", reports::render::compare(&compared).trim_end());
        out!("page: {}", choice.out.join(FILES[0]).display());
    }
    Ok(if stop.is_cancelled() { exit::INVALID } else { exit::PASS })
}

fn choice(several: &Several, what: &[PathBuf], json: bool) -> Result<Choice> {
    let file = several.subjects.as_deref().map(read).transpose()?.unwrap_or_default();
    let named = match what {
        [] => {
            file.scenario.context("a scenario is missing: name one, or write `scenario` in the file of --subjects")?
        }
        [one] => one.to_str().context("the name of the scenario is no UTF-8")?.to_owned(),
        more => bail!("{} scenarios are named: subjects are compared under one", more.len()),
    };
    let mut source = crate::cli::soak::named(&named, several.outside)?;
    ensure!(
        source.scenario.churn.iter().all(|churn| churn.rate.at().is_some()),
        "{}: `churn.rate` cannot be `auto`, because all subjects get the same load: write the rate that a soak of the slowest subject \
         found",
        source.origin
    );
    if let Some(seed) = several.seed.or(file.seed) {
        source.sow(seed)?;
    }
    let mut flags: Vec<String> = several.outside.repeated().split_whitespace().map(str::to_owned).collect();
    let mut flag =
        |name: &str, value: Option<String>| flags.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    flag("--for", several.length.map(|length| length.to_string()));
    flag("--clock-rate", several.clock_rate.map(|rate| rate.to_string()));
    if several.own_clocks {
        flags.push("--own-clocks".to_owned());
    }
    if let Some(length) = several.length {
        source.last(length)?;
    }
    let words: Vec<String> = several.subject.iter().chain(&file.subjects).cloned().collect();
    let subjects = words.iter().map(|word| subject(word)).collect::<Result<Vec<_>>>()?;
    ensure!(
        SUBJECTS.contains(&subjects.len()),
        "{} subjects are named: from {} to {} are compared",
        subjects.len(),
        SUBJECTS.start(),
        SUBJECTS.end()
    );
    let names: BTreeSet<&String> = subjects.iter().map(|subject| &subject.name).collect();
    ensure!(names.len() == subjects.len(), "two subjects have the same name: write NAME=WHAT");
    let rounds = several.rounds.or(file.rounds).unwrap_or(1).clamp(1, 100);
    let side_by_side = several.parallel || file.parallel;
    let repeat = repeat(&named, source.scenario.seed, (rounds, side_by_side), &flags, &words);
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let out = several.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("compare-{now}")));
    let own_clocks = several.own_clocks;
    Ok(Choice { scenario: named, source, subjects, flags, own_clocks, rounds, side_by_side, out, quiet: json, repeat })
}

fn repeat(named: &str, seed: u64, (rounds, parallel): (u32, bool), flags: &[String], words: &[String]) -> String {
    let mut parts = vec![crate::started_as(), "compare".to_owned(), crate::quoted(named), format!("--seed {seed}")];
    parts.extend(flags.iter().map(|word| crate::quoted(word)));
    if rounds > 1 {
        parts.push(format!("--rounds {rounds}"));
    }
    if parallel {
        parts.push("--parallel".to_owned());
    }
    let masked = |word: &String| crate::secrets::arguments(std::slice::from_ref(word)).concat();
    parts.extend(words.iter().map(|word| format!("--subject {}", crate::quoted(&masked(word)))));
    parts.join(" ")
}

/// Parses `NAME=WHAT`, or WHAT alone, from which the name is then derived.
fn subject(word: &str) -> Result<Subject> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let (name, what) = match word.split_once('=') {
        Some((name, what)) if plain(name) => (Some(name), what),
        _ => (None, word),
    };
    let chosen = Chosen::of(what).with_context(|| format!("--subject {word}"))?;
    let name = name.map_or_else(|| chosen.name(), str::to_owned);
    ensure!(plain(&name), "--subject {word}: `{name}` is no name of a folder: write NAME=WHAT");
    Ok(Subject { name, chosen, word: what.to_owned() })
}

fn read(path: &Path) -> Result<File> {
    let failed = || format!("failed to read {}", path.display());
    ensure!(
        std::fs::metadata(path).with_context(failed)?.len() <= BYTES_MAX,
        "{} has more than {BYTES_MAX} bytes",
        path.display()
    );
    let text = std::fs::read_to_string(path).with_context(failed)?;
    serde_saphyr::from_str(&text).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_a_name_or_gets_one() {
        let name = |word: &str| subject(word).map(|subject| (subject.name, subject.word));
        assert_eq!(name("good=bin/watch --a=b").unwrap(), ("good".to_owned(), "bin/watch --a=b".to_owned()));
        assert_eq!(name("bin/watch --a=b").unwrap().0, "watch");
        assert_eq!(name("service").unwrap().0, "service");
        assert!(format!("{:#}", name("good='open").unwrap_err()).contains("--subject good='open: "));
    }

    fn choice_of(file: &str, what: &[&str]) -> Result<Choice> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("these.yaml");
        std::fs::write(&path, file).unwrap();
        let several = Several { subjects: Some(path), ..Several::default() };
        choice(&several, &what.iter().map(PathBuf::from).collect::<Vec<_>>(), true)
    }

    /// A scenario with `rate: auto` is refused, because each subject would get a different load.
    #[test]
    fn a_rate_that_is_found_out_is_refused() {
        let scenario = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 5s, steady: 20s, drain: 15s}\nsubject: {command: [x], \
                        witness: {kind: status}}\nchurn: {resource: packages.longhaul.dev/v1alpha1, population: 5, rate: RATE}\n";
        let refused = |rate: &str| {
            let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
            std::fs::write(file.path(), scenario.replace("RATE", rate)).unwrap();
            let asked = choice_of("subjects: [a=bin/a, b=bin/b]\n", &[file.path().to_str().unwrap()]);
            asked.err().map(|error| format!("{error:#}"))
        };
        assert_eq!(refused("5/s"), None);
        let why = refused("auto").unwrap();
        assert!(
            why.contains("`churn.rate` cannot be `auto`, because all subjects get the same load: write the rate"),
            "{why}"
        );
    }

    #[test]
    fn a_file_says_all_of_it() {
        let file = "scenario: example-watcher\nseed: 5\nrounds: 2\nparallel: true\nsubjects: [a=bin/a, 'b=bin/b -x']\n";
        let choice = choice_of(file, &[]).unwrap();
        assert_eq!((choice.source.scenario.seed, choice.rounds, choice.side_by_side), (5, 2, true));
        let end = "compare example-watcher --seed 5 --rounds 2 --parallel --subject a=bin/a --subject 'b=bin/b -x'";
        assert!(choice.repeat.ends_with(end), "{}", choice.repeat);
        let wrong = |file: &str, what: &[&str]| format!("{:#}", choice_of(file, what).err().unwrap());
        assert!(wrong("subjects: [a=bin/a, b=bin/b]\n", &[]).contains("a scenario is missing"));
        assert!(wrong("subjects: [a=bin/a]\n", &["smoke"]).contains("1 subjects are named: from 2 to 16"));
        assert!(wrong("subjects: [bin/a, other/a]\n", &["smoke"]).contains("two subjects have the same name"));
        assert!(wrong("subject: [a]\n", &["smoke"]).contains("failed to read"));
    }
}
