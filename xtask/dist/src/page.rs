//! Runs the workflow and the script of docs/ci.md unchanged, as a project's CI pipeline would.
//!
//! The example project has a Makefile, the scenario of docs/ci.md, and the example watcher in Python as its program. In
//! a second project the program ignores deletions, because a gate that always passes would pass all other checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::root;
use crate::target::Target;

pub(crate) const PAGE: &str = include_str!("../../../docs/ci.md");
/// Programs that the commands of docs/ci.md and the example project call.
const PROGRAMS: [&str; 6] = ["bash", "curl", "sha256sum", "tar", "make", "python3"];
/// The expression in the workflow for the address of the release files.
const RELEASES: &str = "${{ vars.LONGHAUL_RELEASES }}";
/// The file that the commands of docs/ci.md download first.
const INSTALL: &str = "install.sh";
/// The program of the example project. In one of the example projects, one line of this program is removed.
pub(crate) const WATCHER: &str = "scenarios/subjects/watcher.py";
pub(crate) const HEARS_OF_DELETIONS: &str = "            self.deleted(metadata)\n";
pub(crate) const HEARS_OF_NOTHING: &str = "            pass\n";

/// Runs the commands of docs/ci.md with the release files in a folder.
pub(crate) fn check(out: &Path) -> Result<()> {
    if let Some(what) = missing(out) {
        bail!("needs {what}");
    }
    let page = Page::read(PAGE)?;
    let play = |name, forgetful, pipeline: fn(&Page, &Project) -> Result<Ran>| {
        let project = Project::new(out, &page, forgetful)?;
        let ran = pipeline(&page, &project).with_context(|| format!("docs/ci.md: {name}"))?;
        project.judge(&ran, forgetful).with_context(|| format!("docs/ci.md: {name}\n{}", ran.printed))?;
        println!("docs/ci.md: {name}: exit code {}, as it should be", ran.code);
        anyhow::Ok(())
    };
    // They wait most of the time.
    let results = std::thread::scope(|scope| {
        let plays = [
            scope.spawn(|| play("the workflow", false, workflow)),
            scope.spawn(|| play("the workflow with a program that forgets deletions", true, workflow)),
            scope.spawn(|| play("the script", false, script)),
            scope.spawn(|| play("the script with a program that forgets deletions", true, script)),
            scope.spawn(|| recipes(out, &page, false)),
            scope.spawn(|| recipes(out, &page, true)),
        ];
        plays.map(|one| one.join().unwrap_or_else(|_| Err(anyhow::anyhow!("panicked"))))
    });
    results.into_iter().collect()
}

/// A requirement of the commands of docs/ci.md that this machine does not meet; `None` if it meets all.
pub(crate) fn missing(out: &Path) -> Option<String> {
    let tarball = tarball(PAGE)?;
    if !out.join(format!("{tarball}.tar.gz")).is_file() {
        return Some(format!("{tarball}.tar.gz in {} (cargo xtask dist)", out.display()));
    }
    if !out.join(INSTALL).is_file() {
        return Some(format!("{INSTALL} in {} (cargo xtask dist)", out.display()));
    }
    if !Target::X86_64.runs_here() {
        return Some("a machine that runs x86_64 programs".to_owned());
    }
    PROGRAMS.iter().find(|program| !there(program)).map(|program| (*program).to_owned())
}

pub(crate) fn there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The name of the tarball that docs/ci.md downloads, without its extension.
pub(crate) fn tarball(page: &str) -> Option<&str> {
    page.lines().find_map(|line| line.trim().strip_prefix("LONGHAUL: "))
}

/// The code blocks of docs/ci.md.
pub(crate) struct Page {
    scenario: String,
    workflow: Value,
    script: String,
    gitlab: Value,
    makefile: String,
}

impl Page {
    pub(crate) fn read(page: &str) -> Result<Self> {
        let block = |language: &str, first: &str| -> Result<String> {
            let mut blocks = page.split("```").skip(1).step_by(2);
            let found = blocks.find_map(|block| {
                block.strip_prefix(language)?.strip_prefix('\n').filter(|body| body.starts_with(first))
            });
            found.map(str::to_owned).with_context(|| format!("the page has no {language} that begins with `{first}`"))
        };
        let yaml = |first: &str| -> Result<Value> {
            serde_saphyr::from_str(&block("yaml", first)?).map_err(|error| anyhow::anyhow!("{first}: no YAML: {error}"))
        };
        Ok(Self {
            scenario: block("yaml", "# longhaul.yaml\n")?,
            workflow: yaml("# .github/workflows/soak.yml\n")?,
            script: block("sh", "set -eu\n")?,
            gitlab: yaml("# .gitlab-ci.yml\n")?,
            makefile: block("make", "# Makefile\n")?,
        })
    }
}

/// A checkout of the example project, and the address of the release files.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    releases: String,
}

/// The result of a CI pipeline.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) printed: String,
    /// The summary of the verdict that the CI pipeline shows to its user.
    pub(crate) summary: String,
}

impl Project {
    pub(crate) fn new(out: &Path, page: &Page, forgetful: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = root().join(WATCHER);
        let mut program = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        if forgetful {
            ensure!(
                program.contains(HEARS_OF_DELETIONS),
                "{WATCHER} has changed: what is to be forgotten is not in it"
            );
            program = program.replacen(HEARS_OF_DELETIONS, HEARS_OF_NOTHING, 1);
        }
        fs::write(folder.path().join("controller.py"), program)?;
        fs::write(folder.path().join("Makefile"), "my-controller: controller.py\n\tinstall -m 755 $< $@\n")?;
        fs::write(folder.path().join("longhaul.yaml"), &page.scenario)?;
        let out = out.canonicalize().with_context(|| format!("failed to find {}", out.display()))?;
        Ok(Self { folder, releases: format!("file://{}", out.display()) })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The address of the folder with the archives.
    pub(crate) fn releases(&self) -> &str {
        &self.releases
    }

    /// Runs a shell script in the example project's checkout.
    fn bash(&self, script: &str, variables: &BTreeMap<String, String>) -> Result<Output> {
        bash(self.folder.path(), script, variables)
    }

    /// Checks the files that a CI pipeline leaves.
    fn judge(&self, ran: &Ran, forgetful: bool) -> Result<()> {
        let (code, verdict) = if forgetful { (1, "fail") } else { (0, "pass") };
        ensure!(ran.code == code, "exit code {} instead of {code}", ran.code);
        ensure!(ran.summary.to_lowercase().contains(verdict), "the summary does not say `{verdict}`: {}", ran.summary);
        let runs: Vec<PathBuf> = fs::read_dir(self.folder.path().join("runs"))
            .context("there are no runs")?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        let [run] = runs.as_slice() else { bail!("{} runs instead of one", runs.len()) };
        for (name, begins) in [("report.html", "<!"), ("junit.xml", "<?xml"), ("verdict.json", "{"), ("report.md", "#")]
        {
            let text = fs::read_to_string(run.join(name)).with_context(|| format!("failed to read {name}"))?;
            ensure!(text.trim_start().starts_with(begins), "{name} does not begin with {begins}");
            ensure!(PAGE.contains(&format!("`{name}`")), "the page does not name {name}");
        }
        Ok(())
    }
}

pub(crate) fn bash(folder: &Path, script: &str, variables: &BTreeMap<String, String>) -> Result<Output> {
    let mut command = Command::new("bash");
    // As GitHub's runner starts it.
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(folder);
    command.envs(variables).stdin(Stdio::null()).output().context("failed to start bash")
}

/// Runs the job of the workflow in docs/ci.md.
fn workflow(page: &Page, project: &Project) -> Result<Ran> {
    let job = &page.workflow["jobs"]["soak"];
    let bash = |script: &str, variables: &BTreeMap<String, String>| project.bash(script, variables);
    github(&job["env"], job, &project.releases, BTreeMap::new(), &bash)
}

/// A function that runs a script with environment variables, in a checkout.
pub(crate) type Bash<'a> = dyn Fn(&str, &BTreeMap<String, String>) -> Result<Output> + 'a;

/// Runs the steps of a job as GitHub's runner does. Among the actions that the steps use, only the cache has an effect,
/// and the cache is empty.
pub(crate) fn github(
    env: &Value,
    job: &Value,
    releases: &str,
    more: BTreeMap<String, String>,
    bash: &Bash<'_>,
) -> Result<Ran> {
    let mut variables = more;
    for (name, value) in env.as_object().context("the workflow has no env")? {
        let value = value.as_str().with_context(|| format!("{name} is no text"))?;
        variables.insert(name.clone(), value.replace(RELEASES, releases));
    }
    let runner = tempfile::tempdir()?;
    variables.insert("RUNNER_TEMP".to_owned(), runner.path().display().to_string());
    for name in ["GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
        let path = runner.path().join(name);
        fs::write(&path, "")?;
        variables.insert(name.to_owned(), path.display().to_string());
    }
    let own = std::env::var("PATH").unwrap_or_default();
    let mut ran = Ran { code: 0, printed: String::new(), summary: String::new() };
    for step in job["steps"].as_array().context("the job has no steps")? {
        let wanted = match step["if"].as_str() {
            None | Some("steps.cache.outputs.cache-hit != 'true'") => ran.code == 0,
            Some("always()") => true,
            Some(other) => bail!("this runner does not know `if: {other}`"),
        };
        let Some(script) = step["run"].as_str().filter(|_| wanted) else { continue };
        ensure!(!script.contains("${{"), "this runner fills in no expressions in scripts: {script}");
        let added = fs::read_to_string(&variables["GITHUB_PATH"])?;
        let path = added.lines().rev().chain([own.as_str()]).collect::<Vec<_>>().join(":");
        variables.insert("PATH".to_owned(), path);
        let output = bash(script, &variables)?;
        ran.printed += &printed(&output);
        if !output.status.success() {
            ran.code = output.status.code().unwrap_or(-1);
        }
    }
    ran.summary = fs::read_to_string(&variables["GITHUB_STEP_SUMMARY"])?;
    Ok(ran)
}

/// Runs both CI configurations of docs/ci.md in one checkout. `make` exits with 2 if its command exits with another
/// code than 0.
fn recipes(out: &Path, page: &Page, forgetful: bool) -> Result<()> {
    let project = Project::new(out, page, forgetful)?;
    let job = &page.gitlab["soak"];
    let mut variables = BTreeMap::from([("LONGHAUL_RELEASES".to_owned(), project.releases.clone())]);
    for (name, value) in job["variables"].as_object().context("the job of GitLab has no variables")? {
        variables.insert(name.clone(), value.as_str().context("a variable is no text")?.to_owned());
    }
    let lines: Option<Vec<&str>> = job["script"].as_array().into_iter().flatten().map(Value::as_str).collect();
    let gitlab = project.bash(&lines.context("a line of a script is no text")?.join("\n"), &variables)?;
    let makefile = project.folder.path().join("Makefile");
    let both = fs::read_to_string(&makefile)? + "\n" + &page.makefile;
    fs::write(&makefile, both)?;
    variables.remove("LONGHAUL_DIR");
    let make = project.bash("make soak", &variables)?;
    for (name, output, fails) in [("GitLab", gitlab, 1), ("make", make, 2)] {
        let (code, wanted) = (output.status.code(), if forgetful { fails } else { 0 });
        ensure!(code == Some(wanted), "docs/ci.md: the recipe for {name}: exit code {code:?}\n{}", printed(&output));
        println!("docs/ci.md: the recipe for {name}: exit code {wanted}, as it should be");
    }
    let report = job["artifacts"]["reports"]["junit"].as_str().context("the recipe for GitLab names no JUnit")?;
    ensure!(project.folder.path().join(report).is_file(), "there is no {report}");
    Ok(())
}

/// Runs the script of docs/ci.md. If the script passes, runs it again, when the download exists already.
fn script(page: &Page, project: &Project) -> Result<Ran> {
    let mut variables = BTreeMap::from([("LONGHAUL_RELEASES".to_owned(), project.releases.clone())]);
    let built = project.bash("make my-controller", &variables)?;
    ensure!(built.status.success(), "{}", printed(&built));
    let output = project.bash(&page.script, &variables)?;
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    variables.insert("LONGHAUL_RELEASES".to_owned(), "file:///nowhere".to_owned());
    let until_unpacked = page.script.split("longhaul check").next().unwrap_or_default();
    let again = project.bash(until_unpacked, &variables)?;
    ensure!(again.status.success(), "with what was kept: {}", printed(&again));
    Ok(Ran { code: output.status.code().unwrap_or(-1), printed: printed(&output), summary })
}

pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[cfg(test)]
pub(crate) mod tests {
    use flate2::Compression;

    use super::*;
    use crate::archive::{self, Entry, Sums};

    #[test]
    fn the_page_names_the_version_that_is_built() {
        let name = format!("longhaul-{}-{}", env!("CARGO_PKG_VERSION"), Target::X86_64.triple());
        assert_eq!(tarball(PAGE), Some(name.as_str()));
        let page = Page::read(PAGE).unwrap();
        assert!(page.script.contains(&format!("LONGHAUL={name}\n")));
        assert!(page.makefile.contains(&format!("LONGHAUL_VERSION ?= {}\n", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    #[ignore = "slow"]
    fn the_commands_of_the_page_do_what_it_says() {
        with_shipped(check);
    }

    /// Passes the release files in `$LONGHAUL_DIST` or `target/dist` to the function `check`. If no release was built,
    /// passes a tarball with the tests' programs, so that every document and workflow is tested.
    pub(crate) fn with_shipped(check: impl Fn(&Path) -> Result<()>) {
        let out = std::env::var_os("LONGHAUL_DIST").map_or_else(|| root().join("target/dist"), PathBuf::from);
        let stand_in = tempfile::tempdir().unwrap();
        let out = if missing(&out).is_some_and(|what| what.contains(".tar.gz")) {
            println!("against the programs of development: no tarball in {}", out.display());
            pack(stand_in.path());
            stand_in.path()
        } else {
            &out
        };
        match missing(out) {
            Some(what) => println!("skipped: needs {what}"),
            None => check(out).unwrap(),
        }
    }

    /// Packs the programs in the folder of this test into a tarball. If a program is missing, nothing is packed.
    fn pack(out: &Path) {
        let test = std::env::current_exe().unwrap();
        let beside = test.ancestors().nth(2).unwrap();
        let programs: Vec<Entry> = ["longhaul", "longhaul-service"]
            .into_iter()
            .filter_map(|name| Some(Entry::program(name, fs::read(beside.join(name)).ok()?)))
            .collect();
        if programs.len() < 2 {
            return;
        }
        let folder = tarball(PAGE).unwrap();
        let packed = archive::tarball(folder, programs, 0, Compression::fast()).unwrap();
        let mut sums = Sums::default();
        sums.add(out, &format!("{folder}.tar.gz"), &packed).unwrap();
        crate::installation::script(out, &mut sums).unwrap();
        sums.write(out).unwrap();
    }
}
