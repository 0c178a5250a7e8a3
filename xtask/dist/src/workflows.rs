//! Runs the workflows that `longhaul gate init` writes, as the runners of GitHub and GitLab do, in a repository with a
//! change.
//!
//! The repository contains the example project of docs/ci.md: a watcher in Python. The first change of the repository
//! is harmless. With the second change the program ignores deletions, because a gate that always passes would pass all
//! other checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::page::{self, HEARS_OF_DELETIONS, HEARS_OF_NOTHING, PAGE, Ran, WATCHER, bash, printed};
use crate::root;

/// A scenario with a steady phase of one second, which `--quick` does not shorten.
const SCENARIO: &str = "\
apiVersion: longhaul/v1
name: mine
description: Does my controller see every change?
seed: 9
phases: {warmUp: 300ms, steady: 1s, drain: 2s}
subject: {command: [./my-controller, --flag, \"two words\"], witness: {kind: http}}
churn: {resource: packages.longhaul.dev/v1alpha1, population: 20, rate: 150/s, mix: {create: 2, update: 5, delete: 2}}
budgets: {events: {missed: 0, ghost: 0}}
";
/// The files that both CI pipelines keep after a gate, each with its first characters.
const LEFT: [(&str, &str); 4] = [("gate.html", "<!"), ("junit.xml", "<?xml"), ("gate.json", "{"), ("gate.md", "#")];

/// Runs both workflows with the release files in a folder.
pub(crate) fn check(out: &Path) -> Result<()> {
    if let Some(what) = page::missing(out) {
        bail!("needs {what}");
    }
    ensure!(page::there("git"), "needs git");
    // Other tests show that a gate finds the ignored deletions, which takes minutes.
    for forgetful in [false, true] {
        let about = if forgetful { "a change that forgets deletions" } else { "a change of nothing" };
        let repository = Repository::new(out, forgetful)?;
        let jobs: &[&str] = if forgetful { &["soak"] } else { &["soak", "gate"] };
        // Side by side: only the workflows are tested here, and two gates that disturb each other may report that.
        let (github, gitlab) = std::thread::scope(|scope| {
            let github = scope.spawn(|| repository.github(jobs));
            let gitlab = repository.gitlab(jobs);
            (github.join().unwrap_or_else(|_| Err(anyhow::anyhow!("panicked"))), gitlab)
        });
        github.with_context(|| format!("longhaul gate init: GitHub, {about}"))?;
        gitlab.with_context(|| format!("longhaul gate init: GitLab, {about}"))?;
        println!("longhaul gate init: both workflows, {about}: as it should be");
    }
    Ok(())
}

/// A git clone of the example project, with a change on a branch and with the workflows.
struct Repository {
    folder: tempfile::TempDir,
    releases: String,
    /// The path of `longhaul` from the tarball.
    longhaul: PathBuf,
    forgetful: bool,
    base: String,
}

impl Repository {
    fn new(out: &Path, forgetful: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let out = out.canonicalize().with_context(|| format!("failed to find {}", out.display()))?;
        let tarball = page::tarball(PAGE).context("docs/ci.md names no tarball")?;
        let mut repository = Self {
            longhaul: folder.path().join(tarball).join("longhaul"),
            releases: format!("file://{}", out.display()),
            folder,
            forgetful,
            base: String::new(),
        };
        let (here, origin) = (repository.folder.path().to_owned(), repository.folder.path().join("origin"));
        Self::run(&here, &format!("tar -xzf '{}/{tarball}.tar.gz'", out.display()))?;
        fs::create_dir(&origin)?;
        Self::run(&origin, "git init --quiet --initial-branch=main .")?;
        let path = root().join(WATCHER);
        let program = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        ensure!(program.contains(HEARS_OF_DELETIONS), "{WATCHER} has changed: what is to be forgotten is not in it");
        fs::write(origin.join("controller.py"), &program)?;
        fs::write(origin.join("Makefile"), "my-controller: controller.py\n\tinstall -m 755 $< $@\n")?;
        fs::write(origin.join("longhaul.yaml"), SCENARIO)?;
        let init = "init --build 'make my-controller' --program ./my-controller";
        Self::run(&origin, &format!("'{}' gate {init}", repository.longhaul.display()))?;
        let commit =
            "git -c user.name=x -c user.email=x@localhost -c commit.gpgsign=false commit --quiet --all --message";
        Self::run(&origin, &format!("git add . && {commit} base"))?;
        Self::run(&origin, "git rev-parse HEAD")?.trim().clone_into(&mut repository.base);
        Self::run(&origin, "git checkout --quiet -b change")?;
        let changed =
            if forgetful { program.replacen(HEARS_OF_DELETIONS, HEARS_OF_NOTHING, 1) } else { program + "# nothing\n" };
        fs::write(origin.join("controller.py"), changed)?;
        Self::run(&origin, &format!("{commit} change"))?;
        Ok(repository)
    }

    /// Runs a shell script that must succeed, and returns its output.
    fn run(folder: &Path, script: &str) -> Result<String> {
        let output = bash(folder, script, &BTreeMap::new())?;
        ensure!(output.status.success(), "{script}: {}", printed(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Clones the branch with the change, as a CI runner does.
    fn checkout(&self, name: &str) -> Result<PathBuf> {
        let checkout = self.folder.path().join(name);
        Self::run(self.folder.path(), &format!("git clone --quiet --branch change origin '{name}'"))?;
        Ok(checkout)
    }

    fn github(&self, jobs: &[&str]) -> Result<()> {
        let text = fs::read_to_string(self.folder.path().join("origin/.github/workflows/longhaul.yml"))?;
        let workflow: Value = serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("no YAML: {error}"))?;
        for name in jobs.iter().copied() {
            let checkout = self.checkout(&format!("github {name}"))?;
            let more = BTreeMap::from([("GITHUB_BASE_REF".to_owned(), "main".to_owned())]);
            let in_checkout = |script: &str, variables: &BTreeMap<String, String>| bash(&checkout, script, variables);
            let job = &workflow["jobs"][name];
            let ran = page::github(&workflow["env"], job, &self.releases, more, &in_checkout)?;
            self.judge(name, &ran, &checkout).with_context(|| format!("{name}: {}", ran.printed))?;
            ensure!(!ran.summary.is_empty(), "{name}: the page of the job says nothing");
        }
        Ok(())
    }

    fn gitlab(&self, jobs: &[&str]) -> Result<()> {
        let text = fs::read_to_string(self.folder.path().join("origin/longhaul.gitlab-ci.yml"))?;
        let pipeline: Value = serde_saphyr::from_str(&text).map_err(|error| anyhow::anyhow!("no YAML: {error}"))?;
        for name in jobs.iter().copied() {
            let (checkout, job) = (self.checkout(&format!("gitlab {name}"))?, &pipeline[format!("longhaul-{name}")]);
            let template = &pipeline[job["extends"].as_str().context("the job extends nothing")?];
            let mut variables = BTreeMap::from([
                ("LONGHAUL_RELEASES".to_owned(), self.releases.clone()),
                ("CI_MERGE_REQUEST_DIFF_BASE_SHA".to_owned(), self.base.clone()),
            ]);
            for (name, value) in template["variables"].as_object().context("the template has no variables")? {
                variables.insert(name.clone(), value.as_str().context("a variable is no text")?.to_owned());
            }
            let lines = [&template["before_script"], &job["script"]].into_iter().filter_map(|lines| lines.as_array());
            let lines: Option<Vec<&str>> = lines.flatten().map(Value::as_str).collect();
            // One shell for all of them, which ends at the first failure.
            let output = bash(&checkout, &lines.context("a line of a script is no text")?.join("\n"), &variables)?;
            let ran =
                Ran { code: output.status.code().unwrap_or(-1), printed: printed(&output), summary: String::new() };
            self.judge(name, &ran, &checkout).with_context(|| format!("{name}: {}", ran.printed))?;
            let report = job["artifacts"]["reports"]["junit"].as_str().context("no JUnit is named")?;
            ensure!(checkout.join(report).is_file(), "{name}: there is no {report}");
            let in_requests = job["rules"].to_string();
            ensure!(
                in_requests.contains("merge_request_event") || in_requests.contains("CI_MERGE_REQUEST"),
                "{name} does not run for merge requests"
            );
        }
        Ok(())
    }

    /// Checks the files that a workflow leaves.
    fn judge(&self, job: &str, ran: &Ran, checkout: &Path) -> Result<()> {
        let folder = checkout.join(format!("longhaul-{job}"));
        match (job, self.forgetful) {
            (_, true) => ensure!(ran.code == 1, "exit code {} instead of 1", ran.code),
            ("soak", false) => ensure!(ran.code == 0, "exit code {} instead of 0", ran.code),
            // A gate may report that this machine is too busy to decide, but never that the same program is worse.
            (_, false) => ensure!(matches!(ran.code, 0 | 2 | 3), "exit code {} instead of 0, or of 2 or 3", ran.code),
        }
        if job == "soak" {
            return Ok(());
        }
        for (name, begins) in LEFT {
            let text = fs::read_to_string(folder.join(name)).with_context(|| format!("failed to read {name}"))?;
            ensure!(text.trim_start().starts_with(begins), "{name} does not begin with {begins}");
        }
        let judgement: Value = serde_json::from_slice(&fs::read(folder.join("gate.json"))?)?;
        for (side, base) in [("a", true), ("b", false)] {
            let command = judgement["header"][side]["command"].as_str().unwrap_or_default();
            ensure!(
                command.ends_with("my-controller --flag 'two words'")
                    || command.ends_with("my-controller' --flag 'two words'"),
                "{side} is {command}"
            );
            ensure!(command.contains("/base/") == base, "{side} is {command}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[ignore = "slow"]
    fn nightly_the_commands_of_the_page_and_of_written_workflows_do_what_they_say() {
        crate::page::tests::with_shipped(super::check);
    }
}
