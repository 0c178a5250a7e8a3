//! The files of a hunt: the result in all its forms, and the saved findings.
//!
//! Owns their names. A file is replaced whole, so a full disk keeps the result that was written before.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use reports::hunt::Hunt;
use serde_json::{Map, Value};

use super::Choice;

/// The files of a result.
pub(crate) const FILES: [&str; 4] = ["hunt.html", "hunt.md", "hunt.json", "junit.xml"];
/// Maximum number of saved findings in one folder.
const SAVED_MAX: u32 = 1000;

/// Saves the scenario of a finding, which `scenario` makes for its name. Returns the path and the command that plays it. If it
/// cannot be saved, notes why.
pub(super) fn saved(
    choice: &Choice,
    scenario: impl FnOnce(&str) -> Map<String, Value>,
    notes: &mut Vec<String>,
) -> (Option<String>, Option<String>) {
    match save(choice, scenario) {
        Ok(path) => {
            // The saved seed is that of the hunt; what the user allowed is needed again.
            let allowed = choice.arguments.iter().filter(|word| word.starts_with("--allow"));
            let mut play = vec![crate::started_as(), "soak".to_owned(), crate::quoted(&path)];
            play.extend(allowed.cloned());
            (Some(path), Some(play.join(" ")))
        }
        Err(error) => {
            notes.push(format!("The scenario of a finding could not be saved: {error:#}."));
            (None, None)
        }
    }
}

/// Saves a scenario beside the user's file, under a free name; returns the path.
fn save(choice: &Choice, scenario: impl FnOnce(&str) -> Map<String, Value>) -> Result<String> {
    let path = Path::new(&choice.path);
    let target = free_name(path.parent().unwrap_or(Path::new("")), "yaml")?;
    let name = target.file_stem().and_then(|stem| stem.to_str()).unwrap_or("hunt");
    let mut scenario = scenario(name);
    scenario.insert("seed".to_owned(), choice.seed.into());
    let text = serde_saphyr::to_string(&Value::Object(scenario)).context("the scenario has no YAML form")?;
    std::fs::write(&target, text).with_context(|| format!("failed to write {}", target.display()))?;
    Ok(target.display().to_string())
}

/// A free name `hunt-N.ENDING` in a folder.
pub(crate) fn free_name(folder: &Path, ending: &str) -> Result<PathBuf> {
    let mut names = (1..SAVED_MAX).map(|number| folder.join(format!("hunt-{number}.{ending}")));
    names.find(|path| !path.exists()).with_context(|| format!("there are too many files hunt-N.{ending}: remove some"))
}

/// Writes the result in all its forms.
pub(crate) fn write(folder: &Path, hunt: &Hunt) -> Result<()> {
    let json = serde_json::to_string_pretty(hunt).context("failed to write the result as JSON")? + "\n";
    let texts = [
        reports::render::hunt_html(hunt)?,
        reports::render::hunt_markdown(hunt),
        json,
        reports::render::hunt_junit(hunt)?,
    ];
    for (name, text) in FILES.into_iter().zip(texts) {
        let path = folder.join(name);
        replace(folder, &path, &text).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn replace(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failed write keeps the earlier file and leaves no other file.
    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hunt.md");
        replace(folder.path(), &path, "first").unwrap();
        assert!(replace(&folder.path().join("absent"), &path, "second").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(free_name(folder.path(), "md").unwrap(), folder.path().join("hunt-1.md"));
    }
}
