//! `longhaul init --make --github`: a target of the Makefile and a workflow, as a change of what is there.
//!
//! Owns the templates in `templates/init` and the difference that is shown. Nothing is written here.

use std::io;
use std::path::Path;

/// The templates.
const MAKE: &str = include_str!("../../templates/init/Makefile");
const MAKE_SUITE: &str = include_str!("../../templates/init/suite.mk");
const WORKFLOW: &str = include_str!("../../templates/init/github.yml");
/// The files.
const MAKEFILE: &str = "Makefile";
const WORKFLOW_FILE: &str = ".github/workflows/longhaul-soak.yml";
/// Begins our part of a Makefile. kubebuilder's help shows such lines as headings.
const HEADING: &str = "##@ Longhaul";
/// Begins any part of a Makefile.
const ANY_HEADING: &str = "##@ ";

/// A file that is to be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Relative to the project's folder.
    pub name: &'static str,
    pub text: String,
    /// The lines that differ from the file that is there; none where there is no file.
    pub difference: Option<String>,
}

/// The targets, as a change of the project's Makefile; none where it has them already.
pub(crate) fn make(folder: &Path, scenario: &str) -> io::Result<Option<Change>> {
    let old = there(&folder.join(MAKEFILE))?;
    let targets = old.as_deref().unwrap_or_default();
    let mut part = filled(MAKE, scenario).replace("@BUILD@", if has_target(targets, "build") { " build" } else { "" });
    if has_target(targets, "test") {
        part.push_str(MAKE_SUITE);
    }
    Ok(change(MAKEFILE, old.as_deref(), with_part(targets, &part)))
}

/// The workflow; none where it is there already.
pub(crate) fn github(folder: &Path, scenario: &str) -> io::Result<Option<Change>> {
    let targets = there(&folder.join(MAKEFILE))?.unwrap_or_default();
    let build = if has_target(&targets, "build") {
        "make build"
    } else if folder.join("go.mod").is_file() {
        "go build ./..."
    } else {
        "exit 64 # check: write the command that builds the program"
    };
    let old = there(&folder.join(WORKFLOW_FILE))?;
    Ok(change(WORKFLOW_FILE, old.as_deref(), filled(WORKFLOW, scenario).replace("@BUILD@", build)))
}

fn filled(template: &str, scenario: &str) -> String {
    template.replace("@VERSION@", env!("CARGO_PKG_VERSION")).replace("@SCENARIO@", scenario)
}

/// The text of a file; none where there is no file.
fn there(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a Makefile has a rule for this target.
fn has_target(makefile: &str, target: &str) -> bool {
    let is_rule = |line: &str| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':'));
    makefile.lines().any(is_rule)
}

/// A Makefile with our part at its end, or where an earlier one is.
fn with_part(makefile: &str, part: &str) -> String {
    let begins = |line: &&str| line.trim_end() == HEADING;
    let before: Vec<&str> = makefile.lines().take_while(|line| !begins(line)).collect();
    let after = makefile.lines().skip(before.len() + 1).skip_while(|line| !line.starts_with(ANY_HEADING));
    let mut text = before.join("\n").trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(part);
    for (number, line) in after.enumerate() {
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn change(name: &'static str, old: Option<&str>, text: String) -> Option<Change> {
    (old != Some(text.as_str())).then(|| Change { name, difference: old.map(|old| difference(old, &text)), text })
}

/// The lines between the first and the last that differ.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let shorter = old.len().min(new.len()) - begin;
    let end = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(one, other)| one == other).count();
    let lines = |sign: char, all: &[&str]| -> Vec<String> {
        all[begin..all.len() - end].iter().map(|line| format!("{sign} {line}").trim_end().to_owned()).collect()
    };
    [lines('-', &old), lines('+', &new)].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBEBUILDERS: &str =
        "all: build\n\n##@ Development\n\ntest: fmt\n\tgo test ./...\n\nbuild: fmt\n\tgo build\n";

    #[test]
    fn a_makefile_keeps_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MAKEFILE);
        std::fs::write(&path, KUBEBUILDERS).unwrap();
        let added = make(folder.path(), "longhaul.yaml").unwrap().unwrap();
        assert!(added.text.starts_with(KUBEBUILDERS), "{}", added.text);
        assert!(added.text.contains("longhaul-soak: $(LONGHAUL) build ") && added.text.contains("longhaul-envtest:"));
        let shown = added.difference.unwrap();
        assert!(shown.lines().all(|line| line.starts_with('+')), "{shown}");
        std::fs::write(&path, &added.text).unwrap();
        assert_eq!(make(folder.path(), "longhaul.yaml").unwrap(), None, "it is there");
        // Another version takes its place, and what follows stays.
        let later = added.text.replace(env!("CARGO_PKG_VERSION"), "0.0.1") + "\n##@ Other\n\nother:\n\ttrue\n";
        std::fs::write(&path, later).unwrap();
        let renewed = make(folder.path(), "longhaul.yaml").unwrap().unwrap();
        assert_eq!(renewed.text, added.text + "\n##@ Other\n\nother:\n\ttrue\n");
        let shown = renewed.difference.unwrap();
        assert_eq!(shown.lines().count(), 2, "{shown}");
    }

    #[test]
    fn a_project_without_a_makefile_gets_one() {
        let folder = tempfile::tempdir().unwrap();
        let made = make(folder.path(), "longhaul.yaml").unwrap().unwrap();
        assert_eq!(made.difference, None);
        assert!(made.text.contains("longhaul-soak: $(LONGHAUL) ## ") && !made.text.contains("longhaul-envtest"));
        assert!(!["@VERSION@", "@SCENARIO@", "@BUILD@"].iter().any(|open| made.text.contains(open)), "{}", made.text);
    }

    #[test]
    fn the_workflow_is_yaml_and_builds_as_the_project_does() {
        let folder = tempfile::tempdir().unwrap();
        let build = |folder: &Path| {
            let change = github(folder, "longhaul.yaml").unwrap().unwrap();
            let yaml: serde_json::Value = serde_saphyr::from_str(&change.text).unwrap();
            let steps = yaml["jobs"]["longhaul"]["steps"].as_array().unwrap().clone();
            steps.iter().find(|step| step["name"] == "Build").unwrap()["run"].as_str().unwrap().to_owned()
        };
        assert_eq!(build(folder.path()), "exit 64");
        std::fs::write(folder.path().join("go.mod"), "module x\n").unwrap();
        assert_eq!(build(folder.path()), "go build ./...");
        std::fs::write(folder.path().join(MAKEFILE), KUBEBUILDERS).unwrap();
        assert_eq!(build(folder.path()), "make build");
    }
}
