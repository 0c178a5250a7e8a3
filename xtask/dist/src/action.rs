//! Runs `action.yml` as GitHub's runner would, by a small interpreter of composite actions.
//!
//! The interpreter handles inputs, expressions, outputs of steps, and the files by which steps give data to the runner.
//! Of the actions that `action.yml` uses, only the cache has an effect. Instead of uploading artifacts, the tests check
//! the artifact's files in the checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::page::{self, PAGE, Page, Project, Ran, bash, printed};

const ACTION: &str = include_str!("../../../action.yml");
/// Environment variables that name the files of a runner to which each step of an action may append.
const FILES: [&str; 3] = ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"];
/// The name of the action's input with the address of the release archives.
const RELEASES: &str = "releases";

/// Runs the action with the release files in a folder.
pub(crate) fn check(out: &Path) -> Result<()> {
    if let Some(what) = page::missing(out) {
        bail!("needs {what}");
    }
    let page = Page::read(PAGE)?;
    // They wait most of the time.
    let results = std::thread::scope(|scope| {
        let plays = CASES.each_ref().map(|case| scope.spawn(|| case.play(out, &page)));
        plays.map(|one| one.join().unwrap_or_else(|_| Err(anyhow::anyhow!("panicked"))))
    });
    results.into_iter().collect()
}

/// A job that uses the action, with its expected results.
struct Case {
    name: &'static str,
    forgetful: bool,
    inputs: &'static [(&'static str, &'static str)],
    /// Accepted exit codes of the job's `longhaul`. On a busy machine a passing run may become undecided, but must not
    /// fail.
    codes: &'static [i32],
    /// A text that the job's output must contain.
    prints: &'static str,
    /// Whether the job runs a second time, without a download.
    again: bool,
}

static CASES: [Case; 6] = [
    Case { name: "a gate", forgetful: false, inputs: &[], codes: &[0, 2, 3], prints: "", again: true },
    Case {
        name: "a gate with a program that forgets deletions",
        forgetful: true,
        inputs: &[("mode", "gate")],
        codes: &[1, 2],
        prints: "::error file=longhaul.yaml,line=",
        again: false,
    },
    Case {
        name: "a report of a program that forgets deletions",
        forgetful: true,
        inputs: &[("mode", "report")],
        codes: &[0],
        prints: "::warning file=longhaul.yaml,line=",
        again: false,
    },
    Case {
        name: "an archive with another digest",
        forgetful: false,
        inputs: &[("sha256", "0000000000000000000000000000000000000000000000000000000000000000")],
        codes: &[1],
        prints: "tar.gz: FAILED",
        again: false,
    },
    Case {
        name: "a suite in which nothing is disturbed",
        forgetful: false,
        inputs: &[("suite", "true"), ("seeds", "2")],
        codes: &[2],
        prints: "::error title=longhaul::The verdict is inconclusive.",
        again: false,
    },
    Case {
        name: "a hunt in a suite that writes nothing",
        forgetful: false,
        inputs: &[("suite", "true"), ("hunt", "1")],
        codes: &[3],
        prints: "nothing to disturb",
        again: false,
    },
];

impl Case {
    fn play(&self, out: &Path, page: &Page) -> Result<()> {
        let project = Project::new(out, page, self.forgetful)?;
        let kept = tempfile::tempdir()?;
        let mut inputs = BTreeMap::from([(RELEASES.to_owned(), project.releases().to_owned())]);
        inputs.extend(self.inputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let built = bash(project.folder(), "make my-controller", &BTreeMap::new())?;
        ensure!(built.status.success(), "{}", printed(&built));
        let ran = play(project.folder(), kept.path(), &inputs)?;
        self.judge(&ran).with_context(|| format!("action.yml: {}\n{}", self.name, ran.printed))?;
        // The cache keeps nothing of a job that failed.
        if self.again && ran.code == 0 {
            // What was kept is enough, and is checked again.
            inputs.insert(RELEASES.to_owned(), "file:///nowhere".to_owned());
            fs::remove_dir_all(project.folder().join("longhaul-runs"))?;
            let again = play(project.folder(), kept.path(), &inputs)?;
            self.judge(&again)
                .with_context(|| format!("action.yml: {}, from the cache\n{}", self.name, again.printed))?;
        }
        println!("action.yml: {}: exit code {}, as it should be", self.name, ran.code);
        Ok(())
    }

    fn judge(&self, ran: &Ran) -> Result<()> {
        ensure!(self.codes.contains(&ran.code), "exit code {} instead of one of {:?}", ran.code, self.codes);
        ensure!(ran.printed.contains(self.prints), "it does not print `{}`", self.prints);
        let is_run = !self.inputs.iter().any(|(name, _)| *name == "sha256");
        ensure!(ran.summary.is_empty() != is_run, "the summary of the job: {}", ran.summary);
        Ok(())
    }
}

/// The state of a job while its steps run.
struct Runner<'a> {
    checkout: &'a Path,
    /// The folder in which the simulated cache stores folders by their keys.
    kept: &'a Path,
    inputs: BTreeMap<String, String>,
    /// The outputs of the job's steps, by `step.name`.
    outputs: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    /// The path and the key of each folder that the cache stores at the end.
    to_keep: Vec<(PathBuf, String)>,
    ran: Ran,
}

/// Runs the steps of `action.yml` in a checkout.
fn play(checkout: &Path, kept: &Path, inputs: &BTreeMap<String, String>) -> Result<Ran> {
    let action: Value = serde_saphyr::from_str(ACTION).map_err(|error| anyhow::anyhow!("no YAML: {error}"))?;
    let known = action["inputs"].as_object().context("the action has no inputs")?;
    if let Some(other) = inputs.keys().find(|name| !known.contains_key(*name)) {
        bail!("the action has no input `{other}`");
    }
    let default = |input: &Value| input["default"].as_str().map(str::to_owned);
    let mut all = BTreeMap::new();
    for (name, input) in known {
        let value = inputs.get(name).cloned().or_else(|| default(input));
        all.insert(name.clone(), value.with_context(|| format!("the default of {name} is no text"))?);
    }
    let temp = tempfile::tempdir()?;
    let mut variables = BTreeMap::from([
        ("RUNNER_TEMP".to_owned(), temp.path().display().to_string()),
        ("GITHUB_RUN_NUMBER".to_owned(), "1".to_owned()),
    ]);
    for name in FILES {
        let path = temp.path().join(name);
        fs::write(&path, "")?;
        variables.insert(name.to_owned(), path.display().to_string());
    }
    let ran = Ran { code: 0, printed: String::new(), summary: String::new() };
    let (outputs, to_keep) = (BTreeMap::new(), Vec::new());
    let mut runner = Runner { checkout, kept, inputs: all, outputs, variables, to_keep, ran };
    for step in action["runs"]["steps"].as_array().context("the action has no steps")? {
        runner.step(step)?;
    }
    runner.end()
}

impl Runner<'_> {
    fn step(&mut self, step: &Value) -> Result<()> {
        let condition = step["if"].as_str();
        let always = condition.is_some_and(|text| text.contains("always()"));
        let holds = condition.map_or(Ok(true), |text| Ok::<_, anyhow::Error>(!self.value(text)?.is_empty()))?;
        if !holds || !(self.ran.code == 0 || always) {
            return Ok(());
        }
        match (step["uses"].as_str(), step["run"].as_str()) {
            (Some("actions/cache@v4"), None) => self.cache(step),
            // What it would hold is in the checkout.
            (Some("actions/upload-artifact@v4"), None) => Ok(()),
            (None, Some(script)) => self.script(step, script),
            (uses, _) => bail!("this runner does not know a step that uses {uses:?}"),
        }
    }

    fn script(&mut self, step: &Value, script: &str) -> Result<()> {
        ensure!(step["shell"] == "bash", "a step of a composite action names its shell");
        ensure!(!script.contains("${{"), "an expression in a script is an injection: {script}");
        let mut variables = self.variables.clone();
        let own = std::env::var("PATH").unwrap_or_default();
        let added = fs::read_to_string(&variables["GITHUB_PATH"])?;
        variables.insert("PATH".to_owned(), added.lines().rev().chain([own.as_str()]).collect::<Vec<_>>().join(":"));
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            let text = value.as_str().with_context(|| format!("{name} is no text"))?;
            variables.insert(name.clone(), self.filled(text)?);
        }
        fs::write(&variables["GITHUB_OUTPUT"], "")?;
        let output = bash(self.checkout, script, &variables)?;
        self.ran.printed += &printed(&output);
        if !output.status.success() {
            self.ran.code = output.status.code().unwrap_or(-1);
        }
        let written = fs::read_to_string(&variables["GITHUB_OUTPUT"])?;
        for line in written.lines() {
            let (name, value) = line.split_once('=').with_context(|| format!("no output: {line}"))?;
            let id = step["id"].as_str().context("a step with outputs has an id")?;
            self.outputs.insert(format!("{id}.{name}"), value.to_owned());
        }
        Ok(())
    }

    fn cache(&mut self, step: &Value) -> Result<()> {
        let part = |name: &str| step["with"][name].as_str().with_context(|| format!("the cache has no {name}"));
        let (path, key) = (PathBuf::from(self.filled(part("path")?)?), self.filled(part("key")?)?);
        let id = step["id"].as_str().context("the cache has no id")?;
        let is_kept = self.kept.join(&key).is_dir();
        self.outputs.insert(format!("{id}.cache-hit"), is_kept.to_string());
        if is_kept {
            copy(&self.kept.join(key), &path)
        } else {
            self.to_keep.push((path, key));
            Ok(())
        }
    }

    /// Stores folders in the cache if the job succeeded.
    fn end(mut self) -> Result<Ran> {
        for (path, key) in self.to_keep.iter().filter(|_| self.ran.code == 0) {
            copy(path, &self.kept.join(key))?;
        }
        self.ran.summary = fs::read_to_string(&self.variables["GITHUB_STEP_SUMMARY"])?;
        Ok(self.ran)
    }

    /// Replaces the expressions `${{ … }}` in a text by their values.
    fn filled(&self, text: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${{") {
            let (expression, more) = after.split_once("}}").with_context(|| format!("not closed: {text}"))?;
            filled.push_str(before);
            filled.push_str(&self.value(expression)?);
            rest = more;
        }
        Ok(filled + rest)
    }

    /// The value of an expression of `action.yml`; false gives an empty text.
    fn value(&self, expression: &str) -> Result<String> {
        let expression = expression.trim();
        if let Some((one, other)) = expression.split_once(" || ") {
            let value = self.value(one)?;
            return if value.is_empty() { self.value(other) } else { Ok(value) };
        }
        if let Some((one, other)) = expression.split_once(" && ") {
            let value = self.value(one)?;
            return if value.is_empty() { Ok(value) } else { self.value(other) };
        }
        let truth = |is_true: bool| if is_true { "true".to_owned() } else { String::new() };
        if let Some((one, other)) = expression.split_once(" == ") {
            return Ok(truth(self.value(one)? == self.value(other)?));
        }
        if let Some((one, other)) = expression.split_once(" != ") {
            return Ok(truth(self.value(one)? != self.value(other)?));
        }
        if let Some(text) = expression.strip_prefix('\'') {
            return text.strip_suffix('\'').map(str::to_owned).with_context(|| format!("not closed: {expression}"));
        }
        if expression == "always()" {
            return Ok(truth(true));
        }
        let (context, name) = expression.split_once('.').with_context(|| format!("unknown: {expression}"))?;
        match context {
            "inputs" => self.inputs.get(name).cloned().with_context(|| format!("the action has no input `{name}`")),
            // As on GitHub, an output that no step wrote is empty.
            "steps" => Ok(self.outputs.get(&name.replacen(".outputs.", ".", 1)).cloned().unwrap_or_default()),
            // A push to a branch, with the action of a local folder.
            "github" => Ok(if name == "event_name" { "push".to_owned() } else { String::new() }),
            _ => bail!("unknown: {expression}"),
        }
    }
}

/// Copies a folder and its files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let path = entry?.path();
        ensure!(path.is_file(), "{} is no file: what is kept are archives", path.display());
        fs::copy(&path, to.join(path.file_name().context("a file without a name")?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner(kept: &Path) -> Runner<'_> {
        let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Runner {
            checkout: kept,
            kept,
            inputs: pair("mode", "gate"),
            outputs: pair("run.verdict", "fail"),
            variables: BTreeMap::new(),
            to_keep: Vec::new(),
            ran: Ran { code: 0, printed: String::new(), summary: String::new() },
        }
    }

    #[test]
    fn expressions_have_the_values_that_github_gives() {
        let folder = tempfile::tempdir().unwrap();
        let runner = runner(folder.path());
        for (expression, value) in [
            ("inputs.mode", "gate"),
            ("steps.run.outputs.verdict", "fail"),
            ("steps.run.outputs.other", ""),
            ("inputs.mode == 'gate' && 'error' || 'warning'", "error"),
            ("inputs.mode == 'report' && 'error' || 'warning'", "warning"),
            ("always() && steps.run.outputs.verdict != 'pass'", "true"),
            ("always() && inputs.mode == ''", ""),
        ] {
            assert_eq!(runner.value(expression).unwrap(), value, "{expression}");
        }
        assert_eq!(runner.filled("a ${{ inputs.mode }}-${{ 'b' }}").unwrap(), "a gate-b");
        for wrong in ["inputs.other", "secrets.token", "'open", "hashFiles()"] {
            assert!(runner.value(wrong).is_err(), "{wrong}");
        }
    }

    /// Runs the step that marks lines of a scenario after a failed run.
    fn annotations(folder: &Path, scenario: &str) -> Ran {
        let mut runner = runner(folder);
        for (name, value) in [("mode", "report"), ("suite", "")] {
            runner.inputs.insert(name.to_owned(), value.to_owned());
        }
        runner.outputs.insert("run.scenario".to_owned(), scenario.to_owned());
        for name in FILES {
            let path = folder.join(name);
            fs::write(&path, "").unwrap();
            runner.variables.insert(name.to_owned(), path.display().to_string());
        }
        let action: Value = serde_saphyr::from_str(ACTION).unwrap();
        let steps = action["runs"]["steps"].as_array().unwrap();
        runner.step(steps.iter().find(|step| step["name"] == "Annotate the scenario").unwrap()).unwrap();
        runner.ran
    }

    #[test]
    fn a_scenario_without_a_file_gets_no_annotations() {
        if let Some(program) = ["bash", "awk", "jq"].into_iter().find(|program| !page::there(program)) {
            return println!("skipped: needs {program}");
        }
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("longhaul-runs/one");
        fs::create_dir_all(&run).unwrap();
        let verdict = r#"{"findings": [{"budget": "events.missed", "verdict": "fail", "text": "3 are missed"}]}"#;
        fs::write(run.join("verdict.json"), verdict).unwrap();
        fs::write(folder.path().join("longhaul.yaml"), "name: mine\nbudgets:\n  events: {missed: 0}\n").unwrap();
        for (scenario, prints) in [
            ("longhaul.yaml", "::warning file=longhaul.yaml,line=3,title=events.missed fail::3 are missed"),
            ("steady", "annotations: skipped: steady is no file"),
        ] {
            let ran = annotations(folder.path(), scenario);
            assert_eq!((ran.code, ran.printed.trim()), (0, prints), "{scenario}");
        }
    }

    #[test]
    fn the_action_names_the_version_that_is_built() {
        let action: Value = serde_saphyr::from_str(ACTION).unwrap();
        assert_eq!(action["inputs"]["version"]["default"], env!("CARGO_PKG_VERSION"));
        for (name, input) in action["inputs"].as_object().unwrap() {
            assert!(input["description"].is_string() && input["default"].is_string(), "{name}");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn the_action_does_what_it_says() {
        page::tests::with_shipped(check);
    }
}
