//! `longhaul init --make --github`: adds a target to the Makefile and a workflow, as a change of existing files.
//!
//! Owns the templates in `templates/init`, and computes the difference to existing files. Writes no file.

use std::io;
use std::path::Path;

use super::folder;

const MAKE: &str = include_str!("../../templates/init/Makefile");
const MAKE_SUITE: &str = include_str!("../../templates/init/suite.mk");
const WORKFLOW: &str = include_str!("../../templates/init/github.yml");
const MAKEFILE: &str = "Makefile";
const WORKFLOW_FILE: &str = ".github/workflows/longhaul-soak.yml";
/// The first line of Longhaul's section in a Makefile. kubebuilder's `make help` shows lines that begin with `##@` as
/// headings.
const HEADING: &str = "##@ Longhaul";
/// The last line of Longhaul's section in a Makefile. Lines after this line belong to the project.
const END: &str = "# End of Longhaul.";
/// Start of the first line of any section of a Makefile.
const ANY_HEADING: &str = "##@ ";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The file name, relative to the project's folder.
    pub name: &'static str,
    pub text: String,
    /// The lines that differ from the existing file; `None` if the file does not exist.
    pub difference: Option<String>,
}

/// The Makefile with Longhaul's targets; `None` if the file already has these targets.
pub(crate) fn make(folder: &Path, scenario: &str) -> io::Result<Option<Change>> {
    let old = there(folder, MAKEFILE)?;
    let targets = old.as_deref().unwrap_or_default();
    let mut part = filled(MAKE, scenario).replace("@BUILD@", if has_target(targets, "build") { " build" } else { "" });
    if has_target(targets, "test") {
        part.push_str(MAKE_SUITE);
    }
    part.extend(["\n", END, "\n"]);
    Ok(change(MAKEFILE, old.as_deref(), with_part(targets, &part)))
}

/// The workflow; `None` if the file already exists with this text.
pub(crate) fn github(folder: &Path, scenario: &str) -> io::Result<Option<Change>> {
    let targets = there(folder, MAKEFILE)?.unwrap_or_default();
    let build = if has_target(&targets, "build") {
        "make build"
    } else if folder.join("go.mod").is_file() {
        "go build ./..."
    } else {
        "exit 64 # check: write the command that builds the program"
    };
    let old = there(folder, WORKFLOW_FILE)?;
    Ok(change(WORKFLOW_FILE, old.as_deref(), filled(WORKFLOW, scenario).replace("@BUILD@", build)))
}

fn filled(template: &str, scenario: &str) -> String {
    template.replace("@VERSION@", env!("CARGO_PKG_VERSION")).replace("@SCENARIO@", scenario)
}

/// The text of a file of the project, or `None` if the file does not exist. Refuses a file with CR LF line ends,
/// because a change would mix the line ends.
fn there(project: &Path, name: &str) -> io::Result<Option<String>> {
    if project.join(name).symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let text = folder::text(project, Path::new(name));
    let text = text.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}")))?;
    if text.contains("\r\n") {
        let why = format!("{name}: its lines end with CR LF; write them with LF (`dos2unix {name}`)");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(Some(text))
}

fn has_target(makefile: &str, target: &str) -> bool {
    let is_rule = |line: &str| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':'));
    makefile.lines().any(is_rule)
}

/// A Makefile with Longhaul's section at its end, or in place of an earlier version of the section.
fn with_part(makefile: &str, part: &str) -> String {
    let begins = |line: &&str| line.trim_end() == HEADING;
    let before: Vec<&str> = makefile.lines().take_while(|line| !begins(line)).collect();
    // A part of an older version has no end line; it ends where the next one begins.
    let has_end = makefile.lines().any(|line| line.trim_end() == END);
    let is_behind = |line: &str| if has_end { line.trim_end() == END } else { line.starts_with(ANY_HEADING) };
    let after = makefile.lines().skip(before.len() + 1).skip_while(|line| !is_behind(line));
    let after = after.skip(usize::from(has_end)).skip_while(|line| line.is_empty());
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

/// The lines from the first to the last difference between the old and the new text.
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
        // The section of another version is replaced, and later lines stay.
        let later = added.text.replace(env!("CARGO_PKG_VERSION"), "0.0.1") + "\n##@ Other\n\nother:\n\ttrue\n";
        std::fs::write(&path, later).unwrap();
        let renewed = make(folder.path(), "longhaul.yaml").unwrap().unwrap();
        assert_eq!(renewed.text, added.text + "\n##@ Other\n\nother:\n\ttrue\n");
        let shown = renewed.difference.unwrap();
        assert_eq!(shown.lines().count(), 2, "{shown}");
    }

    #[test]
    fn targets_behind_our_part_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MAKEFILE);
        std::fs::write(&path, KUBEBUILDERS).unwrap();
        let added = make(folder.path(), "longhaul.yaml").unwrap().unwrap().text;
        let behind = "\nmine:\n\ttrue\n";
        std::fs::write(&path, added.replace(env!("CARGO_PKG_VERSION"), "0.0.1") + behind).unwrap();
        assert_eq!(make(folder.path(), "longhaul.yaml").unwrap().unwrap().text, added.clone() + behind);
        // An older version wrote no end line.
        std::fs::write(&path, added.replace(END, "")).unwrap();
        assert_eq!(make(folder.path(), "longhaul.yaml").unwrap().unwrap().text, added);
    }

    #[test]
    fn a_file_that_cannot_be_changed_line_by_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MAKEFILE);
        std::fs::write(&path, KUBEBUILDERS.replace('\n', "\r\n")).unwrap();
        let refused = make(folder.path(), "longhaul.yaml").unwrap_err().to_string();
        assert!(refused.contains("Makefile: its lines end with CR LF"), "{refused}");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(make(folder.path(), "longhaul.yaml").unwrap_err().to_string().contains("it is not UTF-8"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(make(folder.path(), "longhaul.yaml").is_err(), "a link");
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
