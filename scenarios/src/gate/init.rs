//! `longhaul gate init`: writes CI workflows into a user's repository.
//!
//! Owns two templates, one for GitHub Actions and one for GitLab CI. Never overwrites existing files. The workflows run
//! the scenario's command with the programs of two checkouts, and compare both.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::placed;
use crate::scenario::Source;

/// A workflow: its path in the repository, its text, and the path of the second checkout in the CI job.
struct Workflow {
    name: &'static str,
    template: &'static str,
    base: &'static str,
}

const WORKFLOWS: [Workflow; 2] = [
    Workflow {
        name: ".github/workflows/longhaul.yml",
        template: include_str!("../../templates/gate/github.yml"),
        base: "$RUNNER_TEMP/base",
    },
    Workflow {
        name: "longhaul.gitlab-ci.yml",
        template: include_str!("../../templates/gate/gitlab.yml"),
        base: "./.longhaul/base",
    },
];

/// The values of a project that its workflows contain.
pub(crate) struct Project {
    pub(crate) build: String,
    /// Path of the program, relative to the root of the repository.
    pub(crate) program: String,
    /// Path of the scenario, relative to the root of the repository.
    pub(crate) scenario: String,
}

/// Writes the workflows below a folder and returns their paths.
pub(crate) fn write(folder: &Path, project: &Project) -> Result<Vec<PathBuf>> {
    project.check()?;
    let command = project.command(folder)?;
    for Workflow { name, .. } in WORKFLOWS {
        let path = folder.join(name);
        ensure!(
            !path.exists(),
            "{} exists: remove it first, or copy what you want from another folder",
            path.display()
        );
    }
    let write = |workflow: Workflow| {
        let path = folder.join(workflow.name);
        let name = Path::new(workflow.name);
        placed::make_room(folder, name).with_context(|| format!("failed to make the folder of {}", path.display()))?;
        placed::write(folder, name, &project.fill(&workflow, &command), false)
            .with_context(|| format!("failed to write {}", path.display()))
    };
    WORKFLOWS.into_iter().map(write).collect()
}

/// The arguments of a command, and the index of the program among them.
struct Command {
    words: Vec<String>,
    program: usize,
}

impl Project {
    /// Refuses text that would not be a single argument or line in a workflow.
    fn check(&self) -> Result<()> {
        for (option, text) in [("--program", &self.program), ("--scenario", &self.scenario)] {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "./_-".contains(letter);
            ensure!(
                !text.is_empty() && text.chars().all(plain) && !text.starts_with(['/', '-']),
                "{option} {text}: write a path relative to the root of the repository, of letters, digits and `./_-`"
            );
        }
        let line =
            !self.build.trim().is_empty() && !self.build.contains(['\n', '\r', '#']) && !self.build.contains(": ");
        ensure!(line, "--build: write one command on one line, such as `make my-controller`, without `#` and `: `");
        Ok(())
    }

    fn program(&self) -> &str {
        self.program.trim_start_matches("./")
    }

    /// The scenario's command with its arguments. If the scenario does not exist yet, returns only the program.
    fn command(&self, folder: &Path) -> Result<Command> {
        let path = folder.join(&self.scenario);
        if !path.exists() {
            return Ok(Command { words: vec![self.program.clone()], program: 0 });
        }
        let source = Source::read(&path.display().to_string()).map_err(anyhow::Error::new)?;
        let subject = &source.scenario.subject;
        let command = subject.command().filter(|command| !command.run.is_empty());
        let words = command.map(|command| command.run.clone()).with_context(|| {
            format!("{}: a gate compares two commands: write `subject: {{command: […]}}`", path.display())
        })?;
        ensure!(
            !words.iter().any(|word| word.contains(['\n', '\r'])),
            "{}: an argument of `command` has a line end, which no workflow can hold: put it into a file",
            path.display()
        );
        let names = |word: &String| word.trim_start_matches("./") == self.program();
        let program = words.iter().position(names).with_context(|| {
            format!(
                "{}: its command `{}` does not name {}: write with --program the word of it that is built",
                path.display(),
                words.join(" "),
                self.program
            )
        })?;
        Ok(Command { words, program })
    }

    fn fill(&self, workflow: &Workflow, command: &Command) -> String {
        let base = format!("'{}/{}'", workflow.base, self.program());
        workflow
            .template
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@BUILD@", self.build.trim())
            .replace("@SCENARIO@", &self.scenario)
            .replace("@A@", &command.within(&base))
            .replace("@B@", &command.within(&format!("./{}", self.program())))
    }
}

impl Command {
    /// The command with another program, for use inside double quotes in a shell. The gate splits the command into
    /// arguments again.
    fn within(&self, program: &str) -> String {
        let word = |(at, word): (usize, &String)| {
            if at == self.program {
                return program.to_owned();
            }
            let mut out = String::new();
            for letter in crate::quoted(word).chars() {
                if "\\$`\"".contains(letter) {
                    out.push('\\');
                }
                out.push(letter);
            }
            out
        };
        self.words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(build: &str, program: &str) -> Project {
        Project { build: build.to_owned(), program: program.to_owned(), scenario: "longhaul.yaml".to_owned() }
    }

    /// Both written workflows are valid YAML with their jobs and without placeholders, and existing files stay
    /// unchanged.
    #[test]
    fn workflows_are_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let project = project("make my-controller", "./bin/my-controller");
        let written = write(folder.path(), &project).unwrap();
        for path in &written {
            let text = std::fs::read_to_string(path).unwrap();
            let yaml: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
            assert!(!text.contains('@') || path.ends_with("longhaul.yml"), "{text}");
            assert!(
                !["@VERSION@", "@BUILD@", "@A@", "@B@", "@SCENARIO@"].iter().any(|open| text.contains(open)),
                "{text}"
            );
            let jobs = if path.ends_with("longhaul.yml") { yaml["jobs"].clone() } else { yaml };
            let names: Vec<&String> = jobs.as_object().unwrap().keys().collect();
            assert!(names.iter().any(|name| name.contains("gate")) && names.iter().any(|name| name.contains("soak")));
            assert!(text.contains("--b \"./bin/my-controller\""), "{text}");
        }
        let error = write(folder.path(), &project).unwrap_err().to_string();
        assert!(error.contains("exists"), "{error}");
    }

    /// Both builds get the arguments of the scenario's command, split as a shell would.
    #[test]
    fn the_arguments_of_the_scenario_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = "apiVersion: longhaul/v1\nname: x\ndescription: y\nphases: {warmUp: 1s, steady: 2s, drain: 1s}\nsubject: {command: [python3, controller.py, --name, \"it's $5\"], witness: \
            {kind: http}}\nchurn: {resource: packages.longhaul.dev/v1alpha1, population: 10, rate: 5/s}\n";
        std::fs::write(folder.path().join("longhaul.yaml"), scenario).unwrap();
        let error = write(folder.path(), &project("make", "other.py")).unwrap_err().to_string();
        assert!(error.contains("does not name other.py"), "{error}");
        let written = write(folder.path(), &project("make", "./controller.py")).unwrap();
        let text = std::fs::read_to_string(&written[0]).unwrap();
        let line = text.lines().find(|line| line.trim().starts_with("--a ")).unwrap();
        let script = format!("printf '%s' {}", line.trim().trim_end_matches('\\').trim_start_matches("--a "));
        let output =
            std::process::Command::new("sh").args(["-c", &script]).env("RUNNER_TEMP", "/my temp").output().unwrap();
        let words = shlex::split(&String::from_utf8(output.stdout).unwrap()).unwrap();
        assert_eq!(words, ["python3", "/my temp/base/controller.py", "--name", "it's $5"]);
    }

    #[test]
    fn what_would_break_a_workflow_is_refused() {
        for bad in [
            project("make\nrm -rf x", "a"),
            project("make # all", "a"),
            project("", "a"),
            project("make", "a b"),
            project("make", "/bin/a"),
        ] {
            assert!(bad.check().is_err(), "{} {}", bad.build, bad.program);
        }
    }
}
