//! `longhaul gate init`: workflows for a user's repository.
//!
//! Owns two templates, one for GitHub Actions and one for GitLab CI. Nothing that exists is written over.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Where each lies in a repository, and its text.
const FILES: [(&str, &str); 2] = [
    (".github/workflows/longhaul.yml", include_str!("../../templates/gate/github.yml")),
    ("longhaul.gitlab-ci.yml", include_str!("../../templates/gate/gitlab.yml")),
];

/// What of a project goes into its workflows.
pub(crate) struct Project {
    /// The command that builds the program.
    pub(crate) build: String,
    /// The program, relative to the root of the repository.
    pub(crate) program: String,
    /// The scenario, likewise.
    pub(crate) scenario: String,
}

/// Writes the workflows below a folder, and returns which.
pub(crate) fn write(folder: &Path, project: &Project) -> Result<Vec<PathBuf>> {
    project.check()?;
    for (name, _) in FILES {
        let path = folder.join(name);
        ensure!(
            !path.exists(),
            "{} exists: remove it first, or copy what you want from another folder",
            path.display()
        );
    }
    let write = |(name, template): (&str, &str)| {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
        let mut file =
            std::fs::File::create_new(&path).with_context(|| format!("failed to create {}", path.display()))?;
        file.write_all(project.fill(template).as_bytes())
            .with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    };
    FILES.into_iter().map(write).collect()
}

impl Project {
    /// Refuses what would be no single word or line in a workflow.
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

    fn fill(&self, template: &str) -> String {
        template
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@BUILD@", self.build.trim())
            .replace("@PROGRAM@", self.program.trim_start_matches("./"))
            .replace("@SCENARIO@", &self.scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(build: &str, program: &str) -> Project {
        Project { build: build.to_owned(), program: program.to_owned(), scenario: "longhaul.yaml".to_owned() }
    }

    /// Both are YAML with the jobs in it, nothing is left open, and nothing is written over.
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
                !["@VERSION@", "@BUILD@", "@PROGRAM@", "@SCENARIO@"].iter().any(|open| text.contains(open)),
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
